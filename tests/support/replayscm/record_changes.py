"""Changes to pool records by dotted path, and the check that a changed file is refused where it was changed."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from calibrant.dsl.errors import PoolError
from calibrant.dsl.replayscm.pools.files import read_pool
from tests.support.replayscm.pool_texts import Record

Change = Callable[[Record], object]


def put(path: str, value: Any) -> Change:
    """Replace what stands at a dotted path; numbers are positions in lists."""

    def change(record: Record) -> None:
        inner: Any = record
        *parents, last = path.split(".")
        for key in parents:
            inner = inner[int(key) if isinstance(inner, list) else key]
        inner[int(last) if isinstance(inner, list) else last] = copy.deepcopy(value)

    return change


def drop(path: str) -> Change:
    def change(record: Record) -> None:
        inner: Any = record
        *parents, last = path.split(".")
        for key in parents:
            inner = inner[int(key) if isinstance(inner, list) else key]
        del inner[int(last) if isinstance(inner, list) else last]

    return change


def both(*changes: Change) -> Change:
    return lambda record: [change(record) for change in changes]


def check_refused(path: Path, instance: str, field: str, words: str) -> None:
    with pytest.raises(PoolError) as caught:
        read_pool(path)
    error = caught.value
    assert (error.file, error.field) == (path.name, field)
    assert words in error.problem
    if field.startswith("line "):  # the line is no instance yet
        assert str(error).startswith(f"{path.name}: {field}: ")
    else:
        assert str(error).startswith(f"{path.name}: {instance}: {field}: ")
    assert str(error).isprintable()
