"""`calibrant bench evaluator`: rates are ratios of turns in one process, and all ways count the same."""

from __future__ import annotations

import json

import pytest

from calibrant.bench.cli import main
from calibrant.bench.core.registry import bundled_sample
from calibrant.bench.replayscm.rows import rates
from calibrant.bench.replayscm.rows.rates import RowwisePanels, gold_of, measure_evaluator, random_candidates
from calibrant.dsl.replayscm.pools.files import read_pool
from calibrant.dsl.replayscm.reference import replay_world
from calibrant.dsl.replayscm.scm import Scm
from tests.support.commands import refused

NAMES = ["evaluator, compiled before", "evaluator, from formulas", "Python integers", "NumPy, a byte a row"]


def test_the_command_prints_each_way_and_a_ratio(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rates, "BATCH", 300)
    assert main(["bench", "evaluator", "--seconds", "0", "--json"]) == 0
    measured = json.loads(capsys.readouterr().out)
    assert (measured["variables"], measured["rounds"], measured["candidates_compared"]) == (10, 3, 100)
    first, *others = measured["rates"]
    assert [rate["name"] for rate in measured["rates"]] == NAMES
    assert "ratio" not in first
    for rate in others:
        assert len(rate["ratios"]) == 3
        assert min(rate["ratios"]) <= rate["ratio"] <= max(rate["ratios"])
    assert main(["bench", "evaluator", "--seconds", "0"]) == 0
    printed = capsys.readouterr().out
    assert all(name in printed for name in NAMES)
    assert max(map(len, printed.splitlines())) <= 80
    assert "--seconds" in refused(capsys, "bench", "evaluator", "--seconds", "-1")


def test_the_rivals_count_the_mistakes_of_the_reference() -> None:
    problem = read_pool(bundled_sample("ordered")).problems[0]
    panel, wrong = problem.task.training, []
    candidates = random_candidates(problem, 20, 1)
    for candidate in candidates:
        model = Scm(gold_of(problem).roots, candidate.mechanisms)
        number = 0
        for world in panel.worlds:
            number += sum(cell.predicted != cell.expected for cell in replay_world(model, world, candidate.order))
        wrong.append(number)
    assert [int(RowwisePanels([panel]).replay(candidate)[0, 1]) for candidate in candidates] == wrong
    assert any(wrong)


def test_other_counts_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = read_pool(bundled_sample("ordered")).problems[0]
    monkeypatch.setattr(rates, "BATCH", 100)
    monkeypatch.setattr(rates, "mismatches", lambda candidate, panel: {"X1": 0})
    with pytest.raises(AssertionError, match="count other mistakes"):
        measure_evaluator(problem, 0)
