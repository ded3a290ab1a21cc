"""Checks of arguments that several public functions take: one line that says what is allowed."""

from __future__ import annotations

import math
from os import PathLike
from pathlib import Path

from calibrant.dsl.errors import CalibrantError, short_repr


def path_argument(value: object, label: str) -> Path:
    """Return the path that a text or a path names; `CalibrantError` for anything else.

    label: name of the argument in the error
    """
    path = value.__fspath__() if isinstance(value, PathLike) else value
    if not isinstance(path, str):
        raise CalibrantError(f"{label} must be a path or its text, got {type(value).__name__}")
    if not path or "\0" in path:
        raise CalibrantError(f"{label} must be a path, got {short_repr(path)}")
    return Path(path)


def seed_argument(value: object) -> int:
    """Return a seed; `CalibrantError` if it is no whole number."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise CalibrantError(f"a seed is a whole number, not {type(value).__name__}")
    return value


def check_execution(workers: object, budget: object, cluster: object, retry_crashed: object) -> None:
    """Raise `CalibrantError` for what is no way to run: before a process is started, which would not say."""
    if isinstance(workers, bool) or not isinstance(workers, int) or workers < 1:
        raise CalibrantError(f"workers must be a whole number from 1, got {short_repr(workers)}")
    if budget is not None:
        number = isinstance(budget, int | float) and not isinstance(budget, bool)
        if not number or not math.isfinite(budget) or budget <= 0:  # type: ignore[arg-type,operator]  # a number
            raise CalibrantError(f"budget must be seconds above 0 or None, got {short_repr(budget)}")
    if cluster is not None and (not isinstance(cluster, str) or not cluster or "\0" in cluster):
        raise CalibrantError(f"cluster must be an address tcp://HOST:PORT or None, got {short_repr(cluster)}")
    if not isinstance(retry_crashed, bool):
        raise CalibrantError(f"retry_crashed must be True or False, got {type(retry_crashed).__name__}")
