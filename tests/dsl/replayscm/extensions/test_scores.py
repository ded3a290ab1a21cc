"""Legal maps, clean replay, training match and proper scores against gold's exact law."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import log2
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrant.dsl.formulas.text import STANDARD
from calibrant.dsl.replayscm.episode import task_class
from calibrant.dsl.replayscm.extensions.reference import replay_row
from calibrant.dsl.replayscm.extensions.scores import (
    FreeRow,
    SubmittedMap,
    cell_law,
    check_map,
    gold_law,
    implied_law,
    score_forecast,
    score_map,
    world_rows,
)
from calibrant.dsl.replayscm.item import Problem
from calibrant.dsl.replayscm.submission import Rejection
from calibrant.dsl.replayscm.world import Intervention, World
from tests.support.replayscm.extensions.vectors import frontier_vectors, problem_of


def _problem(kind: str) -> Problem:
    return problem_of(next(x for x in frontier_vectors("episode") if x["id"].endswith(f"-{kind}")))


HIDDEN = {"H1": "(and X3 X4)", "X1": "(xor X3 H1)", "X2": "(not X3)"}


@pytest.mark.parametrize(
    ("changes", "stage"),
    [
        ({}, ""),
        ({"H1": None, "X1": "X4"}, ""),
        ({"H1": None}, "legal"),
        ({"X1": None}, "keys"),
        ({"X3": "X4"}, "keys"),
        ({"H2": "X4"}, "keys"),
        ({"X1": "(and X3"}, "parse"),
        ({"X1": ""}, "parse"),
        ({"X1": 3}, "parse"),
        ({"H1": "(and X1 X4)"}, "legal"),
        ({"X2": "(and X1 X4)"}, "legal"),
    ],
)
def test_hidden_names_are_optional_and_mentions_are_checked(changes: dict[str, Any], stage: str) -> None:
    """hidden0 is Ordered: X3, X4, H1, X2, X1; so X2 may not mention X1."""
    scm_class = task_class(_problem("hidden0").task)
    mechanisms = {v: text for v, text in {**HIDDEN, **changes}.items() if text is not None}
    result = check_map(scm_class, STANDARD, {"mechanisms": mechanisms})
    assert (result.stage if isinstance(result, Rejection) else "") == stage


def test_rates_and_cycles_of_a_map() -> None:
    scm_class = task_class(_problem("plain0").task)
    a, b = scm_class.endogenous
    cycle = check_map(scm_class, STANDARD, {"mechanisms": {a: b, b: a}})
    assert isinstance(cycle, Rejection)
    assert cycle.stage == "acyclic"
    root = scm_class.roots[0]
    good = check_map(scm_class, STANDARD, {"mechanisms": {a: root, b: a}, "noise": "1/10"})
    assert isinstance(good, SubmittedMap)
    assert good.rate == Fraction(1, 10)


def _world(problem: Problem, constants: dict[str, int], rows: list[dict[str, int]]) -> World:
    variables = problem.task.variables
    columns = tuple(sum(row[v] << r for r, row in enumerate(rows)) for v in variables)
    return World("w", Intervention(constants), variables, tuple(f"r{r}" for r in range(len(rows))), columns)


@pytest.mark.parametrize("kind", ["plain1", "hidden0", "ordered1"])
def test_gold_is_right_and_a_wrong_map_is_not(kind: str) -> None:
    problem = _problem(kind)
    scm_class, gold = task_class(problem.task), problem.sealed.gold
    assert gold is not None
    functions = gold.local_functions
    contexts = [dict(zip(scm_class.roots, bits, strict=True)) for bits in product((0, 1), repeat=len(scm_class.roots))]
    world = _world(problem, {}, [replay_row(scm_class, functions, context, {}) for context in contexts])
    right = SubmittedMap(gold.mechanisms, gold.order)
    score = score_map(scm_class, right, [world], [world])
    assert (score.heldout_exact, score.world_accuracy, score.train_match) == (True, 1.0, Fraction(1))
    assert score.train_exact
    last = gold.order[-1]
    flipped = replace(
        world,
        columns=tuple(
            column ^ (1 if v == last else 0) for v, column in zip(world.variables, world.columns, strict=True)
        ),
    )
    score = score_map(scm_class, right, [flipped], [flipped])
    cells = len(contexts) * len(scm_class.endogenous)
    assert (score.heldout_exact, score.train_match) == (False, Fraction(cells - 1, cells))


def test_the_law_of_cells_is_that_of_all_flips() -> None:
    rng = Random(2)
    for kind in ("noise0", "plain2", "hidden1"):
        problem = _problem(kind)
        scm_class, gold = task_class(problem.task), problem.sealed.gold
        assert gold is not None
        rates = {v: Fraction(rng.randint(0, 4), 10) for v in scm_class.endogenous}
        context = {root: rng.getrandbits(1) for root in scm_class.roots}
        clamped = {scm_class.endogenous[0]: 1} if kind == "plain2" else {}
        free = tuple(v for v in scm_class.endogenous if v not in clamped)
        law = dict.fromkeys(free, Fraction(0))
        for flips in product((False, True), repeat=len(free)):
            flipped = frozenset(v for v, flips_it in zip(free, flips, strict=True) if flips_it)
            share = Fraction(1)
            for v in free:
                share *= rates[v] if v in flipped else 1 - rates[v]
            values = replay_row(scm_class, gold.local_functions, context, clamped, flipped)
            for v in free:
                law[v] += share * values[v]
        row = FreeRow(context, clamped, free, {})
        assert gold_law(gold, rates, row) == law
        assert cell_law(gold.mechanisms, gold.order, row, {}) == {
            v: replay_row(scm_class, gold.local_functions, context, clamped)[v] for v in free
        }


@given(st.fractions(0, 1), st.floats(0, 1))
def test_no_forecast_beats_the_law(pi: Fraction, p: float) -> None:
    score = score_forecast([[{"A": pi}]], [[{"A": p}]])
    assert score.excess_brier == pytest.approx((p - float(pi)) ** 2)
    assert score.excess_log_loss >= -1e-5  # the law itself is clamped to 20 bits
    assert score.brier >= score.excess_brier


def test_forecasts_are_averaged_over_cells_then_worlds() -> None:
    half, one = Fraction(1, 2), Fraction(1)
    score = score_forecast([[{"A": one, "B": one}], [{"A": half}], []], [[{"A": 1.0, "B": 0.5}], [{"A": 0.5}], []])
    assert score.brier == pytest.approx(((0 + 0.25) / 2 + 0.25) / 2)
    assert score.log_loss == pytest.approx(((-log2(1 - 2**-20) + 1) / 2 + 1) / 2)
    with pytest.raises(ValueError, match="no free cells"):
        score_forecast([[{}]], [[{}]])


def test_a_map_implies_a_forecast_with_at_least_the_least_rate() -> None:
    problem = _problem("plain1")
    scm_class, gold = task_class(problem.task), problem.sealed.gold
    assert gold is not None
    values = replay_row(scm_class, gold.local_functions, dict.fromkeys(scm_class.roots, 0), {})
    (row,) = world_rows(scm_class, _world(problem, {}, [values]))
    law = implied_law(SubmittedMap(gold.mechanisms, gold.order), Fraction(0), row)
    assert set(law) == set(scm_class.endogenous)
    assert all(0 < share < 1 for share in law.values())
