"""Libraries in the structure benchmark: they do the work that they are timed for, and it is visible who is missing."""

from __future__ import annotations

import sys
import tempfile
from fractions import Fraction
from math import log
from pathlib import Path

import pytest

from calibrant.baselines.replayscm.discovery import intervention_targets
from calibrant.baselines.replayscm.fit import frame_from_panel
from calibrant.baselines.structure_learning.constraints import Frame
from calibrant.baselines.structure_learning.scores import bde
from calibrant.bench.core.registry import bundled_pool
from calibrant.bench.lab.speed.__main__ import main
from calibrant.bench.lab.speed.replayscm import structures
from calibrant.bench.lab.speed.replayscm.structures import (
    agrum_climbed,
    exact_searchers,
    hill_climbers,
    interventional_searchers,
    missing_libraries,
    resampled_climbers,
    score_rivals,
    tabu_searchers,
    without_interventions,
)
from calibrant.bench.lab.speed.report import Discipline
from calibrant.dsl.replayscm.pools.files import read_pool
from tests.support.structure_learning import counted, likelihood_score, urn_score


@pytest.fixture(scope="module")
def frame() -> Frame:
    return frame_from_panel(read_pool(bundled_pool("hidden-order")).problems[0].task.training)


def test_all_libraries_of_the_tests_are_there() -> None:
    assert missing_libraries() == []


@pytest.mark.parametrize("kind", ["bdeu", "k2"])
def test_libraries_score_the_marginal_likelihood(frame: Frame, kind: str) -> None:
    pooled = without_interventions(frame)
    for rival in score_rivals(kind):
        score = rival.make(pooled)
        if rival.tolerance is None:  # pyAgrum's bdeu
            continue
        for child, parents in ((0, ()), (0, (1,)), (2, (0, 1)), (3, (0, 1, 2))):
            cell = Fraction(1, 2 << len(parents)) if kind == "bdeu" else Fraction(1)
            expected = urn_score(counted(pooled, child, sum(1 << p for p in parents), False), cell)
            assert score(child, parents) == pytest.approx(expected, rel=rival.tolerance)


def test_libraries_score_bic_with_half_a_logarithm_per_parameter(frame: Frame) -> None:
    pooled = without_interventions(frame)
    for rival in score_rivals("bic"):
        score = rival.make(pooled)
        for child, parents in ((0, ()), (2, (0, 1))):
            rows = counted(pooled, child, sum(1 << p for p in parents), False)
            expected = likelihood_score(rows) - 0.5 * log(len(rows)) * 2 ** len(parents)
            assert score(child, parents) == pytest.approx(expected, rel=1e-9)


def test_which_libraries_take_part(frame: Frame) -> None:
    targets = [[0], [1]]
    assert [r.name for r in hill_climbers(frame, 5)] == ["pgmpy", "pyAgrum", "causal-learn GES"]
    assert [r.name for r in tabu_searchers(frame, 5)] == ["pyAgrum"]
    assert [r.name for r in interventional_searchers(frame, targets)] == ["gies"]
    assert [r.name for r in exact_searchers(frame, 5)] == ["causal-learn, Gaussian BIC"]
    assert [(r.name, r.num_items) for r in resampled_climbers(frame, 5, [[0, 1, 2]])] == [("pgmpy", 1), ("pyAgrum", 1)]


def test_pyagrum_keeps_the_maximum_of_parents(frame: Frame) -> None:
    dag = agrum_climbed(without_interventions(frame), 1)
    assert 1 <= len(dag.arcs()) < frame.num_vars  # type: ignore[attr-defined]  # no types


def test_no_library_leaves_a_file_behind(frame: Frame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    targets = intervention_targets(read_pool(bundled_pool("hidden-order")).problems[0].task.training)
    for rival in (*hill_climbers(frame, 2), *tabu_searchers(frame, 2), *interventional_searchers(frame, targets)):
        rival.call()
    assert list(tmp_path.iterdir()) == []


def test_scores_that_differ_are_reported(frame: Frame, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(structures, "SHARED_SCORES", {"bic": bde()})  # another score than the libraries compute
    assert [(row.rival, row.met) for row in structures.agreements(frame)] == [("pgmpy", False), ("pyAgrum", False)]


def test_missing_libraries_are_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for module in ("pgmpy", "causallearn", "gies", "pyagrum"):
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setattr("calibrant.bench.lab.speed.report.QUICK", Discipline(1, 0.0))
    assert main(["structures", "--quick", "--pool", str(bundled_pool("ordered"))]) == 0
    printed = capsys.readouterr().out
    for name in ("pgmpy", "causal-learn", "gies", "pyAgrum"):
        assert [line.split("│")[2].strip() for line in printed.splitlines() if name in line] == [name]
    assert printed.count("not installed") == 4
    assert "tabu 10, mbde" in printed
