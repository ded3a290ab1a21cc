"""Rows on extended items: what they submit, refusals, twins, and records of runs that resume."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from calibrant.bench.core.registry import benchmark, bundled_pool
from calibrant.bench.protocols.registry import applicable_protocols, protocols_of, read_pool_once
from calibrant.bench.replayscm.rows.episodes import EXTENDED
from calibrant.bench.runs.records import folder_records
from calibrant.bench.runs.runner import run
from calibrant.dsl.episode import Action, Step, verify_transcript
from calibrant.dsl.records import StoredItems
from calibrant.dsl.replayscm.episode import ScmEpisode
from calibrant.dsl.replayscm.item import Pool
from calibrant.dsl.replayscm.pools.files import read_pool, write_pool
from tests.support.replayscm.extensions.problems import small_problem
from tests.support.replayscm.gold_problems import gold_problem

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
