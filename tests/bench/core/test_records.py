"""Records of items of every benchmark: through JSON and back they are the item; other records are refused in a line."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from calibrant.bench.core.registry import NAMES, benchmark, bundled_pools
from calibrant.bench.pools.generated import write_drawn
from calibrant.dsl.errors import PoolError
from calibrant.dsl.records import convert_object
from calibrant.dsl.replayscm.pools.records import ProblemRecord


def _items(name: str, folder: Path) -> Sequence[Any]:
    """Two items of every suite, or of every bundled pool."""
    of = benchmark(name)
    if name == "replayscm":
        return [item for path in bundled_pools() for item in of.items.read_pool(path).items[:2]]
    path = folder / "pool.jsonl"
    write_drawn(of, path, list(of.suites.names), 5, 2)
    return of.items.read_pool(path).items


@pytest.fixture(scope="module", params=NAMES)
def given(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Sequence[Any]]:
    return request.param, _items(request.param, tmp_path_factory.mktemp("pool"))


def test_an_item_comes_back_from_its_record(given: tuple[str, Sequence[Any]]) -> None:
    name, items = given
    assert len(items) >= 8
    for item in items:
        assert benchmark(name).items.item_of_record(json.loads(json.dumps(benchmark(name).items.record(item)))) == item


def test_what_is_sealed_is_under_one_key_of_the_record(given: tuple[str, Sequence[Any]]) -> None:
    name, items = given
    assert {"id", "sealed"} <= benchmark(name).items.record(items[0]).keys()


def test_a_record_that_cannot_be_meant_is_one_line(given: tuple[str, Sequence[Any]]) -> None:
    name, items = given
    of, record = benchmark(name), benchmark(name).items.record(items[0])
    for wrong in (
        {},
        {**record, "sealed": 3},
        {**record, "id": 3},
        {**record, "no such field": 0},
        {**record, "sealed": {**record["sealed"], "no such field": 0}},
        {**record, "id": {1, 2}},
    ):
        with pytest.raises(PoolError) as refused:
            of.items.item_of_record(wrong)
        assert "\n" not in str(refused.value)


def test_messages_are_the_prompt(given: tuple[str, Sequence[Any]]) -> None:
    name, items = given
    for item in items:
        messages = benchmark(name).items.messages(item)
        assert "\n\n".join(message["content"] for message in messages) == benchmark(name).items.prompt(item)
        assert [message["role"] for message in messages] in (["user"], ["system", "user"])


def test_an_object_becomes_a_record_as_strictly_as_a_line() -> None:
    deep: dict[str, Any] = {}
    for _ in range(2_000):
        deep = {"id": deep}
    for wrong in (deep, {"id": "a", "results": [float("nan")]}, {"id": "\ud800"}):
        with pytest.raises(PoolError):
            convert_object(wrong, ProblemRecord)
