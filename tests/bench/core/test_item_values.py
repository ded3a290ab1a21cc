"""Values of items are computed once, whoever made the item, and their number is bounded."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import calibrant.audits.replayscm.attribution
from calibrant.audits.replayscm.attribution import HeldoutDecision
from calibrant.bench.core import item_values
from calibrant.bench.core.item_values import ItemValues
from calibrant.bench.replayscm.benchmark import ReplayScm
from calibrant.dsl.replayscm.pools.files import read_pool, write_pool
from calibrant.dsl.replayscm.problem import Problem
from tests.support.stub_protocols import small_pool

SCORE = {"trainExact": True, "heldoutExact": False}


def test_a_value_is_computed_once_for_equal_items(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    computed: list[Problem] = []

    def decision(problem: Problem) -> HeldoutDecision:
        computed.append(problem)
        return HeldoutDecision(problem.id.endswith("0"), len(computed), "a class")

    monkeypatch.setattr(calibrant.audits.replayscm.attribution, "heldout_decision", decision)
    path = tmp_path / "pool.jsonl"
    write_pool(small_pool(["good", "or"]), path)
    benchmark = ReplayScm()
    said = []
    for _ in range(200):
        for item in read_pool(path).problems:
            said.append(benchmark.attribution(item, {}, (), SCORE))
    assert len(computed) == 2
    assert [one and one["members"] for one in said] == ["1", "2"] * 200
    other = replace(read_pool(path).problems[0], sealed=read_pool(path).problems[1].sealed)
    assert (benchmark.attribution(other, {}, (), SCORE) or {})["members"] == "3"  # the same id is not the same item


def test_the_number_of_values_and_of_items_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(item_values, "MAX_VALUES", 3)
    monkeypatch.setattr(item_values, "MAX_AT_HAND", 2)
    computed: list[str] = []

    def compute(item: str) -> int:
        computed.append(item)
        return len(computed)

    values = ItemValues[str, int](str.encode, compute)
    for item in "abcabcabc":
        assert values.value(item) == "abc".index(item) + 1
    assert computed == ["a", "b", "c"]
    assert values.value("d") == 4
    assert values.value("b") == 2  # used later than a
    assert values.value("a") == 5
    assert len(values) == 3
