"""Presentations of episodes: one for all spellings, and steps that come back as the item's own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random

import pytest

from calibrant.bench.core.registry import benchmark
from calibrant.bench.lab.renamings import measure
from calibrant.bench.lab.replayscm import rename
from calibrant.bench.protocols.registry import protocols_of
from calibrant.bench.replayscm.rows.presentation import present_episode
from calibrant.bench.runs.workers import timed_answer
from calibrant.dsl.episode import verify_transcript
from calibrant.dsl.replayscm.episode import ScmEpisode
from calibrant.dsl.replayscm.item import Problem
from calibrant.dsl.replayscm.pools.files import record_from_problem
from tests.support.replayscm.extensions.problems import small_problem

REPLAYSCM = benchmark("replayscm")
FORMS = [("all", False), ("drawn", True), ("chosen", False)]


def _items() -> Iterator[Problem]:
    for contexts, is_forecast in FORMS:
        for rate, num_hidden in ((None, 0), (None, 1), ("1/10", 0), ("1/10", 1)):
            yield small_problem(1, rate=rate, num_hidden=num_hidden, contexts=contexts, is_forecast=is_forecast)


def test_all_spellings_have_one_presentation() -> None:
    for item in _items():
        forms = [
            present_episode(other).content for other in (item, *(rename(item, Random(seed)).item for seed in (1, 2)))
        ]
        starts = [ScmEpisode(form).steps[0].reading for form in forms]
        assert forms[0].task == forms[1].task == forms[2].task
        assert starts[0] == starts[1] == starts[2]


def test_a_renamed_episode_shows_the_readings_under_other_names() -> None:
    """Flips and contexts stay, so every row is a row of the item with its columns permuted."""
    for item in _items():
        renamed = rename(item, Random(3))
        variables, new_variables = item.task.extension.variables, renamed.item.task.extension.variables  # type: ignore[union-attr]
        episodes = ScmEpisode(item), ScmEpisode(renamed.item)
        do = {variables[0]: 1, variables[3]: 0}
        extra = {} if item.task.extension.allowance.contexts.value != "chosen" else {"contexts": ["00", "11"]}  # type: ignore[union-attr]
        episodes[0].act({"do": do, **extra})
        episodes[1].act({"do": {renamed.names[v]: bit for v, bit in do.items()}, **extra})
        for one, other in zip(episodes[0].steps, episodes[1].steps, strict=True):
            places = [new_variables.index(renamed.names[v]) for v in variables]
            back = ["".join(row[place] for place in places) for row in other.reading["rows"]]  # type: ignore[index]
            assert sorted(back) == sorted(one.reading["rows"])  # type: ignore[index]


@pytest.mark.parametrize("row", ["random", "abstain"])
def test_steps_come_back_over_the_names_of_the_item(row: str) -> None:
    protocol = protocols_of(REPLAYSCM)[row]()
    for item in list(_items())[::3]:
        answer = timed_answer(protocol, REPLAYSCM.handout(item))
        assert answer.result.outcome == "found"
        verify_transcript(ScmEpisode(item), answer.steps or ())


def test_rates_and_answers_do_not_move() -> None:
    items = [*list(_items())[1::4], small_problem(2, rate="1/10", is_episode=False)]
    for row in ("greedy", "random"):
        result = measure(REPLAYSCM, items, protocols_of(REPLAYSCM)[row](), times=2, seed=5)
        assert (result.moved, result.num_different, result.num_crashed) == ({}, 0, 0)


def test_what_the_start_shows_comes_before_what_is_sealed() -> None:
    """Twins with other gold and the same start: variables that the start tells apart have the same names."""
    item = small_problem(0)
    twin = replace(item, sealed=replace(item.sealed, heldout=small_problem(5).sealed.heldout, labels={"x": "y"}))
    names = []
    for problem in (item, twin):
        start = ScmEpisode(present_episode(problem).content).steps[0].reading
        assert start is not None
        names.append(sorted(start["rows"]))
    assert names[0] == names[1]


def test_a_renamed_episode_is_not_written() -> None:
    renamed = rename(small_problem(0, rate="1/10"), Random(1)).item
    with pytest.raises(ValueError, match="was renamed"):
        record_from_problem(renamed)
