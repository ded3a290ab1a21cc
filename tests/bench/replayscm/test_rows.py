"""Methods on extended items, and their answers in canonical presentation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from calibrant.bench.core.registry import benchmark, bundled_pool
from calibrant.bench.lab.renamings import measure
from calibrant.bench.lab.replayscm import rename
from calibrant.bench.protocols import applicable_protocols, protocols_of, read_pool_once
from calibrant.bench.replayscm.rows.episodes import EXTENDED
from calibrant.bench.replayscm.rows.presentation import present_episode
from calibrant.bench.runs.records import folder_records
from calibrant.bench.runs.runner import run
from calibrant.bench.runs.workers import timed_answer
from calibrant.dsl.episode import Action, Step, verify_transcript
from calibrant.dsl.records import StoredItems
from calibrant.dsl.replayscm.episode import ScmEpisode
from calibrant.dsl.replayscm.item import Pool, Problem
from calibrant.dsl.replayscm.pools.files import read_pool, record_from_problem, write_pool
from tests.support.replayscm.extensions.problems import small_problem
from tests.support.replayscm.random_problems import gold_problem

# --- Rows on extended items: what they submit, refusals, twins, and records of runs that resume -----------------------
REPLAYSCM = benchmark("replayscm")
ROWS = ("exact", "posterior", "greedy", "random", "noise-blind", "hidden-blind", "majority", "abstain")


class Twin:
    """An episode that answers from a recorded one: whatever else it would need is missing."""

    def __init__(self, recorded: ScmEpisode) -> None:
        self._recorded = list(recorded.steps)
        self.id, self.task = recorded.id, recorded.task
        self.steps: list[Step[Any]] = self._recorded[:1]

    @property
    def left(self) -> int:
        extension = self.task.extension
        assert extension is not None
        assert extension.allowance is not None
        return extension.allowance.worlds - sum(step.cost for step in self.steps)

    @property
    def closed(self) -> bool:
        return any("submit" in step.action for step in self.steps)

    def act(self, action: Action) -> Step[Any]:
        step = self._recorded[len(self.steps)]
        assert dict(step.action) == dict(action)
        self.steps.append(step)
        return step


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("rate", [None, "1/20"])
def test_rows_read_nothing_that_is_sealed(name: str, rate: str | None) -> None:
    protocol = protocols_of(REPLAYSCM)[name]()
    problem = small_problem(1, rate=rate, num_worlds=3)
    episode = ScmEpisode(problem)
    first = protocol.answer(episode)
    assert first.outcome == "found"
    assert episode.closed
    twin = Twin(episode)
    assert protocol.answer(twin) == first
    assert len(twin.steps) == len(episode.steps)
    verify_transcript(ScmEpisode(problem), episode.steps)


@pytest.mark.parametrize("name", ["greedy", "random"])
def test_other_sealed_fields_change_nothing_until_readings_differ(name: str) -> None:
    """Two items of one task, with other gold: the actions agree as long as the readings do."""
    protocol = protocols_of(REPLAYSCM)[name]()
    differing = 0
    for seed in range(4):
        one = small_problem(seed, rate="1/10", num_worlds=3)
        other = small_problem(seed, rate="1/10", num_worlds=3, item_seed=99)  # other flips
        episodes = [ScmEpisode(problem) for problem in (one, other)]
        for episode in episodes:
            protocol.answer(episode)
        for step, twin in zip(episodes[0].steps, episodes[1].steps, strict=False):
            assert dict(step.action) == dict(twin.action)
            if step.reading != twin.reading:
                differing += 1
                break
    assert differing


def test_exact_is_right_where_the_evidence_decides() -> None:
    decided = 0
    for seed in range(6):
        problem = small_problem(seed)
        episode = ScmEpisode(problem)
        protocols_of(REPLAYSCM)["greedy"]().answer(episode)
        score = REPLAYSCM.scoring.score(problem, {}, episode.steps)
        attribution = REPLAYSCM.attribution(problem, {}, episode.steps, score)
        assert attribution is not None
        assert score["trainExact"]
        if attribution["decided"]:
            decided += 1
            assert score["correct"]
    assert decided >= 3


def test_rows_of_plain_items_refuse_extended_ones_and_the_other_way_round() -> None:
    plain = read_pool(bundled_pool("hidden-order")).problems[0].task
    episode = ScmEpisode(small_problem(0))
    for protocol in EXTENDED:
        assert protocol().refusal(plain)
        assert not protocol().refusal(episode)
    for name, make in protocols_of(REPLAYSCM).items():
        answers = name in ROWS or make in EXTENDED
        assert bool(make().refusal(episode)) is not answers, name
        assert bool(make().refusal(plain)) is (make in EXTENDED), name


def test_runs_resume_to_the_same_records(tmp_path: Path) -> None:
    pool = tmp_path / "pool.jsonl"
    items = (small_problem(0), small_problem(1, rate="1/10"), small_problem(2, num_hidden=1, is_episode=False))
    write_pool(Pool("pool", items), pool)
    protocol = protocols_of(REPLAYSCM)["greedy"]()
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    run(protocol, [pool], whole)
    from calibrant.bench.runs.runner import Selection

    run(protocol, [pool], parts, selection=Selection(limit=1))
    assert run(protocol, [pool], parts).skipped == 1
    assert _timeless(whole) == _timeless(parts)
    by_id = {record.instance: record for record in folder_records(whole)}
    assert by_id[items[0].id].attribution


def _timeless(folder: Path) -> Sequence[Any]:
    import msgspec

    records = [msgspec.to_builtins(record) for record in folder_records(folder)]
    for record in records:
        del record["timing"]
    return records


@pytest.mark.parametrize("search", ["optimum", "hill-climbing", "posterior"])
@pytest.mark.parametrize("name", ["noisy-weights", "mbde-majority"])
def test_structure_learning_answers_noisy_items(name: str, search: str) -> None:
    protocol = protocols_of(REPLAYSCM)[name](search=search)
    problem = small_problem(2, rate="1/10", is_episode=False)
    result = protocol.answer(problem.task)
    assert result.outcome == "found"
    assert REPLAYSCM.scoring.score(problem, result.answer or {}, ())["valid"]
    assert protocol.answer(small_problem(2, is_episode=False).task).outcome == "impossible"


@pytest.mark.parametrize("max_cached", [0, 2000])
def test_all_reads_a_pool_once_and_needs_none_of_its_items(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, max_cached: int
) -> None:
    monkeypatch.setattr("calibrant.dsl.records.MAX_CACHED_ITEMS", max_cached)
    monkeypatch.setattr(StoredItems, "_item", None)
    plain, extended = tmp_path / "plain.jsonl", tmp_path / "extended.jsonl"
    write_pool(Pool("plain", (gold_problem(1),)), plain)
    write_pool(Pool("extended", (gold_problem(2), small_problem(1))), extended)
    assert not set(applicable_protocols(REPLAYSCM, [plain])) & {row.name for row in EXTENDED}
    assert set(applicable_protocols(REPLAYSCM, [plain, extended])) >= {row.name for row in EXTENDED}
    monkeypatch.setattr(type(REPLAYSCM.items), "read_pool", None)
    assert read_pool_once(REPLAYSCM, extended)[1].name == "extended"


# --- Presentations of episodes: one for all spellings, and steps that come back as the item's own ---------------------
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
