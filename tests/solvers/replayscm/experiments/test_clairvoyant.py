"""The clairvoyant minimum against the shared vectors, and its certificate against forgeries."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from calibrant.dsl.errors import MissingExtraError
from calibrant.dsl.replayscm.episode import candidate_worlds, task_class
from calibrant.solvers import highs
from calibrant.solvers.replayscm.experiments.clairvoyant import (
    ClairvoyantMinimum,
    ClairvoyantSearch,
    CoverRow,
    RowWeight,
    _fewest_by_maxsat,
    _fewest_by_program,
    certified_bound,
    feasible_weights,
)
from tests.support.effort import effort
from tests.support.replayscm.extensions.vectors import frontier_vectors, problem_of

with_highs = pytest.mark.skipif(not highs.has_highs(), reason="no highspy in this environment")


def search_of(line: dict[str, Any]) -> ClairvoyantSearch:
    problem = problem_of(line)
    extension, gold = problem.task.extension, problem.sealed.gold
    assert extension is not None
    assert extension.allowance is not None
    assert gold is not None
    worlds = candidate_worlds(extension.variables, extension.allowance.max_targets)
    return ClairvoyantSearch(problem.task, task_class(problem.task), gold.local_functions, worlds)


def _plain(line: dict[str, Any]) -> bool:
    return "clairvoyant" in line and not line["item"]["class"]["hidden"]


def test_minima_of_the_vectors_without_highs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "highspy", None)
    lines = [line for line in frontier_vectors("episode") if _plain(line)][2::16]
    searches = [search_of(line) for line in lines]
    for line, search in zip(lines, searches, strict=True):
        fewest = search.fewest()
        assert (len(fewest.worlds), fewest.floor) == (line["clairvoyant"], line["floor"])
        assert search.count(fewest.worlds) == fewest.floor
    with pytest.raises(MissingExtraError, match=r"highspy is missing; run: pip install 'calibrant\[large\]'"):
        searches[0].solve()


def test_both_engines_meet_rows_of_alternatives_with_fewest_worlds() -> None:
    rng = Random("covers")
    for _ in range(40):
        rows = [CoverRow(str(i), _alternatives(rng)) for i in range(rng.randint(1, 6))]
        sizes = (len(some) for k in range(7) for some in combinations(range(6), k) if _meets(rows, some))
        least = next(sizes)
        engines = [_fewest_by_maxsat(rows)]
        if highs.has_highs():
            engines.append(_fewest_by_program(rows, 6))
        for chosen in engines:
            assert _meets(rows, chosen)
            assert len(chosen) == least


def test_the_banner_of_highs_is_discarded(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    class Highs:
        def __init__(self) -> None:
            os.write(1, b"Running HiGHS")

        def setOptionValue(self, name: str, value: object) -> None:  # noqa: N802 (name of HiGHS)
            print(name)

    monkeypatch.setitem(sys.modules, "highspy", SimpleNamespace(Highs=Highs))
    highs.empty_program()
    assert capfd.readouterr().out == "output_flag\nthreads\n"


def _alternatives(rng: Random) -> tuple[tuple[frozenset[int], ...], ...]:
    return tuple(
        tuple(frozenset(rng.sample(range(6), rng.randint(1, 3))) for _ in range(rng.randint(1, 2)))
        for _ in range(rng.randint(1, 3))
    )


def _meets(rows: Sequence[CoverRow], chosen: Sequence[int]) -> bool:
    return all(row.is_met(frozenset(chosen)) for row in rows)


@with_highs
@pytest.mark.soak
def test_minima_of_the_vectors_are_proven() -> None:
    """A fourth of the lines, in which sizes and orders take turns; all of them in a soak."""
    lines = [line for line in frontier_vectors("episode") if _plain(line)][:: effort(4, 1)]
    for line in lines:
        search = search_of(line)
        minimum = search.solve()
        assert (len(minimum.worlds), minimum.floor) == (line["clairvoyant"], line["floor"])
        assert search.count(minimum.worlds) == minimum.floor
        assert certified_bound(minimum.rows, minimum.weights) == minimum.bound <= len(minimum.worlds)
        assert minimum.is_certified  # the relaxation was tight in all of these
    assert lines


def _minimum() -> ClairvoyantMinimum:
    line = next(line for line in frontier_vectors("episode") if _plain(line) and line["clairvoyant"] > 1)
    return search_of(line).solve()


@with_highs
@pytest.mark.parametrize("forgery", ["more", "negative", "missing"])
def test_forged_weights_prove_nothing(forgery: str) -> None:
    minimum = _minimum()
    weights = list(minimum.weights)
    place = next(i for i, weight in enumerate(weights) if weight.weight > 0)
    if forgery == "more":
        weights[place] = replace(weights[place], weight=weights[place].weight + len(weights))
    elif forgery == "negative":
        weights[place] = replace(weights[place], weight=Fraction(-1))
    else:
        weights = weights[:-1]
    with pytest.raises(ValueError, match=r"weighs|negative|shorter"):
        certified_bound(minimum.rows, weights)


def test_weights_are_scaled_until_no_world_exceeds_its_cost() -> None:
    rows = [
        CoverRow("a", ((frozenset({0, 1}),),)),
        CoverRow("b", ((frozenset({1, 2}),),)),
        CoverRow("c", ((frozenset({0}), frozenset({3})), (frozenset({4}), frozenset({5})))),
    ]
    weights = feasible_weights(rows, [0.9, 0.9, 1.0], [[], [], [[0.5, 0.5], [0.25, 0.25]]])
    assert certified_bound(rows, weights) == 2  # 0.9 + 0.9 + 0.5 over the load 1.8 of world 1, rounded up
    assert max(weight.weight for weight in weights) <= 1
    heavy = [RowWeight(Fraction(1)), RowWeight(Fraction(0)), RowWeight(Fraction(1), ((Fraction(1, 2),) * 2,) * 2)]
    with pytest.raises(ValueError, match="world 0 weighs 3/2"):
        certified_bound(rows, heavy)
    above = [RowWeight(Fraction(0))] * 2 + [RowWeight(Fraction(1), ((Fraction(1, 2), Fraction(1, 4)),) * 2)]
    with pytest.raises(ValueError, match="an alternative weighs more than its sets"):
        certified_bound(rows, above)
