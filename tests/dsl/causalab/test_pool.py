"""Native pools: round trip, and recomputation of every number that is shown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from calibrant.dsl.causalab.generation import PLANS, generate_items
from calibrant.dsl.causalab.item import LabItem
from calibrant.dsl.causalab.records import item_of_record, read_pool, record_of_item, write_pool
from calibrant.dsl.errors import PoolError
from calibrant.dsl.item import Pool
from tests.support.causalab.laboratories import SUITES, items, made_item
from tests.support.effort import examples


@pytest.mark.parametrize("suite", SUITES)
def test_pools_round_trip(suite: str, tmp_path: Path) -> None:
    pool = Pool(suite, "causalab", tuple(generate_items(PLANS[suite], 1, 4)), {"seed": 1})
    write_pool(pool, tmp_path / "pool.jsonl")
    first = (tmp_path / "pool.jsonl").read_bytes()
    assert read_pool(tmp_path / "pool.jsonl") == pool
    write_pool(read_pool(tmp_path / "pool.jsonl"), tmp_path / "again.jsonl")
    assert (tmp_path / "again.jsonl").read_bytes() == first


@settings(max_examples=examples(100), deadline=None)
@given(items())
def test_item_to_record_to_item_is_the_identity(item: LabItem) -> None:
    assert item_of_record(record_of_item(item)) == item


def damaged(tmp_path: Path, path: list[Any], value: Any, suite: str = "4nodes_hidden_n1") -> Path:
    file = tmp_path / "pool.jsonl"
    write_pool(Pool("p", "causalab", (made_item(suite),), {}), file)
    header, line = file.read_text(encoding="utf-8").splitlines()
    raw = json.loads(line)
    at = raw
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    file.write_text(f"{header}\n{json.dumps(raw)}\n", encoding="utf-8")
    return file


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (["baseline", "resonanceFreq"], 1.5, "baseline: states"),
        (["sealed", "target"], -3.0, "sealed.target: states"),
        (["records", 0], {}, "records: states"),
        (["noise"], False, "noise: states"),
        (["allowance"], -1, "allowance: below 0"),
        (["reading"], "mood", "reading"),
        (["sealed", "equations"], {}, "sealed.equations: no equation for resonanceFreq"),
        (["sealed", "hidden", "values"], [], "sealed.hidden.values: empty"),
        (["sealed", "hidden", "affected"], ["x"], "sealed.hidden.affected"),
        (["properties"], ["a"], "properties: does not agree"),
        (["surprise"], 1, "surprise"),
        (["sealed", "target"], 1e999, "Infinity is not a JSON number"),
    ],
)
def test_what_disagrees_is_named(tmp_path: Path, path: list[Any], value: Any, said: str) -> None:
    file = damaged(tmp_path, path, value)
    with pytest.raises(PoolError) as caught:
        read_pool(file)
    assert said in str(caught.value)
    assert str(caught.value).startswith("pool.jsonl: ")


def test_two_items_of_one_id_are_refused(tmp_path: Path) -> None:
    item = made_item("3nodes")
    write_pool(Pool("p", "causalab", (item, item), {}), tmp_path / "p.jsonl")
    with pytest.raises(PoolError, match="second item of that id"):
        read_pool(tmp_path / "p.jsonl")
