"""Native blicket pools: written and read back, and refused in one line with item and field."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings

from calibrant.dsl.blickets.item import BlicketItem, Form, Rule, all_rules
from calibrant.dsl.blickets.prompt import instructions, observation
from calibrant.dsl.blickets.records import ItemRecord, item_from_record, read_pool, record_from_item, write_pool
from calibrant.dsl.episode import Step
from calibrant.dsl.errors import PoolError
from tests.support.blickets.items import items, static_item


@settings(deadline=None)
@given(items())
def test_an_item_survives_its_record_as_json(item: BlicketItem) -> None:
    line = msgspec.json.encode(record_from_item(item))
    assert item_from_record(msgspec.json.decode(line, type=ItemRecord)) == item


def test_a_pool_survives_its_file(tmp_path: Path) -> None:
    made = [static_item(rule, 3) for rule in all_rules(3)]
    path = tmp_path / "pool.jsonl"
    write_pool(path, "all rules", made)
    with pytest.raises(PoolError, match=r"pool.jsonl: line 3 \('static'\): id: a second item"):
        read_pool(path)
    write_pool(path, "one rule", made[:1], {"seed": 3})
    pool = read_pool(path)
    assert (pool.name, pool.benchmark, pool.items, pool.metadata) == ("one rule", "blickets", (made[0],), {"seed": 3})


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"n": 4}, "n: 4, but 3 objects are listed"),
        ({"objects": ["A"], "n": 1}, "objects: 1 objects; 2 to 8 are allowed"),
        ({"objects": ["A", "B", "B"]}, "objects: a name occurs twice"),
        ({"objects": ["A", "B", "\n"]}, "objects: .* is no name"),
        ({"budget": 0}, "budget: 0; 1 to 100000 moves are allowed"),
        ({"budget": True}, "budget"),
        ({"condition": "gravity"}, "condition"),
        ({"start": "random"}, "start: random goes with sealed.start_on"),
        ({"sealed": {"rule1": {"rule": "conjunctive", "blickets": []}}}, "sealed.rule1: expected a non-empty list"),
        ({"sealed": {"rule1": {"rule": "conjunctive", "blickets": ["Z"]}}}, "sealed.rule1: unknown object 'Z'"),
        ({"sealed": {"rule1": {"rule": "both", "blickets": ["A"]}}}, "rule1.rule"),
        (
            {"sealed": {"rule1": {"rule": "conjunctive", "blickets": ["A", "B"], "order": ["A", "C"]}}},
            "sealed.rule1.order: is not an order of the blickets",
        ),
        (
            {"sealed": {"rule1": {"rule": "conjunctive", "blickets": ["A"]}, "switch": 3}},
            "rule2 and switch go together",
        ),
        ({"sealed": {"rule1": {"rule": "conjunctive", "blickets": ["A"]}, "p": 0}}, "sealed.p: 0"),
        ({"sealed": {"rule1": {"rule": "conjunctive", "blickets": ["A"]}, "draws": [1.0]}}, "sealed.draws"),
        ({"surprise": 1}, "surprise"),
    ],
)
def test_a_record_that_cannot_be_meant_is_refused(tmp_path: Path, change: dict[str, Any], says: str) -> None:
    record = msgspec.to_builtins(record_from_item(static_item(Rule(Form.CONJUNCTIVE, 3), 3)))
    path = tmp_path / "pool.jsonl"
    header = {"format": "calibrant-pool", "version": 1, "benchmark": "blickets"}
    path.write_text(f"{json.dumps(header)}\n{json.dumps({**record, **change})}\n")
    with pytest.raises(PoolError, match=says) as refused:
        read_pool(path)
    assert str(refused.value).startswith("pool.jsonl: line 2")
    assert str(refused.value).isprintable()


def test_the_prompt_tells_the_task_and_nothing_that_is_sealed() -> None:
    text = instructions(static_item(Rule(Form.CONJUNCTIVE, 3), 3, 41).task)
    assert "A, B, C" in text
    assert "41 moves" in text
    assert "order" not in text
    assert "fail" not in text
    assert "change" not in text


def test_an_observation_says_reading_detector_and_moves_left() -> None:
    assert observation(Step({"place": "A"}, "ACTIVE", "", 1), ["A"], 3) == (
        "The detector is ACTIVE. On the detector: A. Moves left: 3."
    )
    assert observation(Step({"remove": "A"}, None, "A is not on the detector", 1), [], 3) == (
        "Refused: A is not on the detector. The detector is empty. Moves left: 3."
    )
