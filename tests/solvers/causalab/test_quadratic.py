"""The space of quadratic laboratories: the truth stays, counts agree with enumeration, settings decide the graph."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant.dsl.causalab.configs import item_of_config
from calibrant.dsl.causalab.episode import LabEpisode
from calibrant.dsl.causalab.generation import PLANS, SQUARE_WEIGHTS, Plan, generate_items
from calibrant.dsl.causalab.item import Family
from calibrant.dsl.causalab.mechanism import FREQUENCY
from calibrant.dsl.causalab.reference import Reading
from calibrant.solvers.causalab.evidence import Evidence, evidence_of
from calibrant.solvers.causalab.exact import solve
from calibrant.solvers.causalab.quadratic import (
    ROUNDING,
    fit_rationally,
    least_norm_fit,
    quadratic_dags,
    solve_quadratic,
    solve_to_six_decimals,
)
from calibrant.solvers.outcome import BudgetSpent, Found
from tests.support.benchmarks.causalab import released_suite
from tests.support.effort import examples

THREE = Plan("3quad", 3, Family.QUADRATIC)


def completed(evidence: Evidence, node: int, squares: dict[int, float]) -> bool:
    """Whether linear weights exist that leave residuals within rounding: by projection, not by a solver's fit."""
    rows = [i for stretch in evidence.stretches(node) for i in stretch]
    own = [n for n, stretch in enumerate(evidence.stretches(node)) for _ in stretch]
    table = evidence.table[rows]
    goal = table[:, node] - sum((w * table[:, p] ** 2 for p, w in squares.items()), start=np.zeros(len(rows)))
    known = [(np.array(own) == n).astype(float) for n in sorted(set(own))] + [table[:, p] for p in squares]
    basis, sizes, _ = np.linalg.svd(np.array(known).T, full_matrices=False)
    basis = basis[:, sizes > 1e-9 * sizes.max()]
    left = goal - basis @ (basis.T @ goal)
    alone = sum(len(stretch) == 1 for stretch in evidence.stretches(node))
    return bool(np.sum(left**2) <= (len(rows) - alone) * (ROUNDING + 1e-6) ** 2 + 1e-12)


def count_by_definition(evidence: Evidence) -> int:
    a, b, f = range(3)
    weights = (0.0, *SQUARE_WEIGHTS)
    count = 0
    for ab, ba, af, bf in product(weights, repeat=4):
        if (ab and ba) or not (af or bf):
            continue
        parents = {a: {b: ba}, b: {a: ab}, f: {a: af, b: bf}}
        count += all(completed(evidence, n, {p: w for p, w in own.items() if w}) for n, own in parents.items())
    return count


@pytest.mark.parametrize("seed", range(8))
def test_three_nodes_count_as_the_definition_does(seed: int) -> None:
    item = next(generate_items(THREE, seed, 1))
    episode = LabEpisode(item)
    for i, name in enumerate([*item.task.properties, *item.task.properties]):
        evidence = evidence_of(item.task, episode.steps)
        assert quadratic_dags(evidence).count == count_by_definition(evidence)
        episode.act({"set": name, "value": 90 - 31 * i})


@settings(max_examples=examples(40), deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(Reading), st.data())
def test_the_truth_is_a_member_after_any_settings(seed: int, reading: Reading, data: st.DataObject) -> None:
    item = next(generate_items(Plan("quad", 4, Family.QUADRATIC, reading=reading), seed, 1))
    episode = LabEpisode(item)
    space = quadratic_dags(evidence_of(item.task))
    for _ in range(data.draw(st.integers(0, 5))):
        name = data.draw(st.sampled_from(item.task.properties))
        value = data.draw(st.floats(-200, 300) | st.just(3e5))
        step = episode.act({"set": name, "value": value})
        assert step.reading is not None
        before, space = space.count, space.after((name, value), step.reading)
        assert space.count <= before
    assert space.fits(item.sealed.mechanism)
    assert sum(space.verdicts().values()) == space.count
    assert space.having_graph(item.sealed.mechanism.edges) >= 1


def test_two_settings_of_every_property_decide_graph_and_frequency() -> None:
    for made in released_suite("4nodes_quad_hard")[:15]:
        item = item_of_config(made, 0)
        episode = LabEpisode(item)
        assert isinstance(solve(episode), Found)
        space = quadratic_dags(evidence_of(item.task, episode.steps))
        assert space.graph_decided
        assert space.certain_edges == made.mechanism.edges
        (frequency,) = space.verdicts()
        assert abs(frequency - item.sealed.target) <= 0.1


def test_other_families_have_no_such_space() -> None:
    for suite in ("4nodes", "4nodes_hidden_n1"):
        with pytest.raises(BudgetSpent, match="quadratic"):
            quadratic_dags(evidence_of(next(generate_items(PLANS[suite], 0, 1)).task))
    with pytest.raises(BudgetSpent, match="6 properties"):
        quadratic_dags(evidence_of(next(generate_items(Plan("big", 7, Family.QUADRATIC), 0, 1)).task))


def test_further_settings_give_the_frequencys_weights_to_six_decimals() -> None:
    for item in generate_items(PLANS["4nodes_quad_hard"], 31, 12):
        first, further = LabEpisode(item), LabEpisode(item)
        coarse, fine = solve_quadratic(first), solve_to_six_decimals(further)
        assert isinstance(coarse, Found)
        assert isinstance(fine, Found)
        true, found = item.sealed.mechanism.weights(FREQUENCY), fine.value.mechanism.weights(FREQUENCY)
        assert {parent: round(weight, 6) for parent, weight in true.items()} == found
        assert fine.value.mechanism.edges == coarse.value.mechanism.edges
        assert fine.value.frequency == coarse.value.frequency
        settings = sum(step.cost for step in further.steps)
        assert sum(step.cost for step in first.steps) < settings <= item.task.allowance


def test_without_settings_left_the_answer_is_that_of_the_exact_solver() -> None:
    for item in generate_items(replace(PLANS["4nodes_quad_hard"], allowance=6), 32, 4):
        assert solve_to_six_decimals(LabEpisode(item)) == solve_quadratic(LabEpisode(item))


def test_rational_fits_are_those_of_linear_algebra() -> None:
    rng = Random(2)
    for num_columns in (1, 2, 4):
        design = [[Fraction(rng.randint(-9_999, 9_999), 100) for _ in range(num_columns)] for _ in range(7)]
        goal = [Fraction(rng.randint(-9_999, 9_999), 100) for _ in range(7)]
        fitted = fit_rationally(design, goal)
        assert fitted is not None
        weights, residual = fitted
        matrix, values = np.array(design, float), np.array(goal, float)
        expected = np.linalg.lstsq(matrix, values, rcond=None)[0]
        assert weights == pytest.approx(expected, rel=1e-9)
        assert residual == pytest.approx(np.sqrt(np.mean((matrix @ expected - values) ** 2)), rel=1e-9)
        dependent = [[*row, 2 * row[0]] for row in design]
        assert fit_rationally(dependent, goal) is None
        for rows in (dependent, design[:2], dependent[:1]):  # more weights than equations, and the other way round
            shortest = np.linalg.lstsq(np.array(rows, float), values[: len(rows)], rcond=None)[0]
            assert list(map(float, least_norm_fit(rows, goal[: len(rows)]))) == pytest.approx(shortest, rel=1e-9)
