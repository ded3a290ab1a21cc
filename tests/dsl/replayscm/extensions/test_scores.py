"""Legal maps, clean replay, training match and proper scores against gold's exact law."""

from __future__ import annotations

from collections import Counter
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
from calibrant.dsl.replayscm.extensions.extension import Prior, num_essential_functions, parent_weights
from calibrant.dsl.replayscm.extensions.reference import (
    EvidenceWorld,
    enumerate_scms,
    posterior_weights,
    replay_row,
    visible_rows,
)
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
from tests.support.replayscm.extensions.vectors import class_of, evidence_of, frontier_vectors, problem_of


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


# --- The enumerated meaning against vectors that were made elsewhere, also by enumeration -----------------------------
MAX_MEMBERS = 130  # the reference is slow: a class of 112 with three rates takes 50 ms


def _small(name: str, max_members: int, number: int) -> list[dict[str, Any]]:
    return [line for line in frontier_vectors(name) if line["expect"]["members"] <= max_members][:number]


def test_masses_edges_and_best_of_small_noisy_classes() -> None:
    lines = _small("noise", MAX_MEMBERS, 12)
    assert len(lines) == 12
    for line in lines:
        _check(line)


def test_masses_meanings_and_negations_of_small_hidden_classes() -> None:
    lines = _small("hidden", 1_000, 4)
    assert len(lines) == 4
    for line in lines:
        _check(line)


def _check(line: dict[str, Any]) -> None:
    scm_class = class_of(line["class"], line["noise"])
    expect = line["expect"]
    weighed = list(posterior_weights(scm_class, evidence_of(line["worlds"])))
    mass = sum((weight for _, weight in weighed), start=Fraction(0))
    assert len(weighed) == expect["members"]
    assert mass == Fraction(expect["mass"])
    if not mass or "edges" not in expect:
        return
    edges: Counter[str] = Counter()
    for mechanisms, weight in weighed:
        for variable, function in mechanisms.items():
            edges.update({f"{parent}>{variable}": weight for parent in function.parents})
    assert {edge: share / mass for edge, share in edges.items() if share} == {
        edge: Fraction(share) for edge, share in expect["edges"].items()
    }
    top = max(weight for _, weight in weighed)
    assert {"share": top / mass, "number": sum(weight == top for _, weight in weighed)} == {
        "share": Fraction(expect["best"]["share"]),
        "number": expect["best"]["number"],
    }
    if "meanings" in expect:
        meanings = {visible_rows(scm_class, mechanisms) for mechanisms, weight in weighed if weight}
        assert len(meanings) == expect["meanings"]


def test_clean_rows_admit_only_tables_that_agree() -> None:
    line = next(line for line in frontier_vectors("noise") if line["noise"] == "1/3" and "query" in line)
    scm_class = class_of(line["class"], line["noise"])
    query = EvidenceWorld(line["query"]["do"], tuple(line["query"]["rows"]), is_clean=True)
    weighed = posterior_weights(scm_class, [query])
    agreeing = sum(1 for _, weight in weighed if weight)
    assert 0 < agreeing < sum(1 for _ in enumerate_scms(scm_class))


@pytest.mark.parametrize(("num_parents", "count"), [(0, 2), (1, 2), (2, 10), (3, 218), (4, 64594)])
def test_numbers_of_functions_that_depend_on_all_variables(num_parents: int, count: int) -> None:
    assert num_essential_functions(num_parents) == count


def test_weights_by_parents_of_three_variables() -> None:
    assert parent_weights(Prior.BY_PARENTS, 3, 2) == (Fraction(1, 2), Fraction(1, 4), Fraction(1, 10))
    assert parent_weights(Prior.BY_PARENTS, 2, 2)[2] == 0
