"""The cache of evaluators: a value is made once, whoever made the item, and the number of values is bounded."""

from __future__ import annotations

import gc
import pickle
import weakref
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import calibrant.audits.replayscm.attribution
from calibrant.audits.replayscm.attribution import HeldoutDecision
from calibrant.bench.core.scoring import EvaluatorCache
from calibrant.bench.replayscm.scoring import ReplayScmAttribution
from calibrant.dsl import records
from calibrant.dsl.replayscm.item import Problem
from calibrant.dsl.replayscm.pools.files import read_pool, write_pool
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
    attribute = ReplayScmAttribution()
    said = []
    for _ in range(200):
        for item in read_pool(path).problems:
            said.append(attribute(item, {}, (), SCORE))
    assert len(computed) == 2
    assert [one and one["members"] for one in said] == ["1", "2"] * 200
    other = replace(read_pool(path).problems[0], sealed=read_pool(path).problems[1].sealed)
    assert (attribute(other, {}, (), SCORE) or {})["members"] == "3"  # the same id is not the same item


def test_the_least_recently_used_values_are_dropped() -> None:
    made: list[str] = []

    def make(key: str) -> int:
        made.append(key)
        return len(made)

    cache: EvaluatorCache[int] = EvaluatorCache(3)

    def value(key: str) -> int:
        return cache.get(("pool", key), partial(make, key))

    for key in "abcabcabc":
        assert value(key) == "abc".index(key) + 1
    assert made == ["a", "b", "c"]
    assert value("d") == 4
    assert value("b") == 2  # used later than a
    assert value("a") == 5
    assert len(cache) == 3


@given(st.lists(st.integers(0, 5), max_size=60), st.integers(1, 4))
def test_a_cache_equals_a_list_of_the_latest_keys(keys: list[int], max_entries: int) -> None:
    cache: EvaluatorCache[list[int]] = EvaluatorCache(max_entries)
    latest: list[tuple[int, list[int]]] = []  # the model: keys by their last use, with the very objects
    for key in keys:
        value = cache.get(key, lambda key=key: [key])  # type: ignore[misc]
        expected = next((entry for entry in latest if entry[0] == key), None)
        assert value == [key]
        assert expected is None or value is expected[1]
        latest = [*(entry for entry in latest if entry[0] != key), (key, value)][-max_entries:]
        assert len(cache) == len(latest)


def test_two_equal_objects_and_two_options_have_values_of_their_own() -> None:
    cache: EvaluatorCache[object] = EvaluatorCache()
    first, second = ["item"], ["item"]
    assert cache.get_for(first, object) is cache.get_for(first, object)
    assert cache.get_for(first, object) is not cache.get_for(second, object)
    assert cache.get_for(first, object) is not cache.get_for(first, object, "published")


def test_an_object_stays_alive_as_long_as_its_value() -> None:
    class Item:
        pass

    cache: EvaluatorCache[int] = EvaluatorCache(1)
    item = Item()
    alive = weakref.ref(item)
    cache.get_for(item, lambda: 1)
    del item
    assert alive() is not None  # another object could have its id otherwise
    cache.get_for(Item(), lambda: 2)
    gc.collect()
    assert alive() is None


def test_a_copy_in_another_process_starts_empty_and_holds_as_many() -> None:
    cache: EvaluatorCache[int] = EvaluatorCache(2)
    cache.get("a", lambda: 1)
    copy: EvaluatorCache[int] = pickle.loads(pickle.dumps(cache))
    assert len(copy) == 0
    for key in "abc":
        copy.get(key, lambda: 1)
    assert len(copy) == 2


def test_attributions_of_a_large_pool_leave_one_entry_an_item(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Items of a file above `MAX_CACHED_ITEMS` are made anew at each access, so that no object is met twice."""
    monkeypatch.setattr(records, "MAX_CACHED_ITEMS", 1)
    monkeypatch.setattr(calibrant.audits.replayscm.attribution, "heldout_decision", lambda problem: None)
    path = tmp_path / "pool.jsonl"
    write_pool(small_pool(["good", "or", "xor"]), path)
    attribute, problems = ReplayScmAttribution(), read_pool(path).problems
    for _ in range(3):
        for item in problems:
            attribute(item, {}, (), SCORE)
    assert problems[0] is not problems[0]
    assert len(attribute._decisions) == 3
