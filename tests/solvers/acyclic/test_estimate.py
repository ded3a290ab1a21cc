"""Estimates of sums: unbiased against exact sums, honest about their spread, the same for the same seed."""

from __future__ import annotations

from itertools import combinations
from math import prod
from random import Random

import numpy as np
import pytest

from solvers.acyclic.count import Weights, total
from solvers.acyclic.estimate import EXACT, Estimate, estimate, together
from solvers.budget import BudgetSpent

SEEDS = 8


def dense(num_vars: int, most: int, seed: int, terms: int | None = None) -> Weights:
    """Behind root 0 two in five of all sets of up to two others, of weights that are apart; some can come first."""
    rng = Random(f"dense {num_vars} {seed}")
    options: dict[int, dict[int, int]] = {}
    for v in range(1, num_vars + 1):
        others = [u for u in range(1, num_vars + 1) if u != v]
        sets = [chosen for k in range(3) for chosen in combinations(others, k) if rng.random() < 0.4]
        options[v] = {1 | sum(1 << u for u in chosen): rng.randint(1, most) ** len(chosen) for chosen in sets}
    options[1][1] = 1
    return Weights(options, 1, terms=terms)


@pytest.mark.parametrize("most", [1, 9])
def test_estimates_lie_around_the_sum_as_far_as_they_say(most: int) -> None:
    """The mean within four of its standard errors, two thirds within two of their own."""
    exact = total(dense(11, most, 0))
    assert exact > 10**6
    rough = dense(11, most, 0, terms=1)
    assert len(rough.components()) == 1
    found = [estimate(rough, np.random.SeedSequence(s), particles=20, runs=4) for s in range(SEEDS)]
    values = np.array([one.value / exact for one in found])
    assert 0 < values.std(ddof=1) < 0.5
    assert abs(values.mean() - 1) < 4 * values.std(ddof=1) / SEEDS**0.5
    assert sum(abs(one.value - exact) < 2 * one.standard_error for one in found) > 2 * SEEDS / 3
    assert {one.method for one in found} == {"estimate by sequential Monte Carlo over orders, 4 runs of 20 particles"}


def test_more_particles_come_closer() -> None:
    rough = dense(11, 9, 0, terms=1)
    spread = [estimate(rough, np.random.SeedSequence(1), particles=p, runs=6).standard_error for p in (10, 1_000)]
    assert spread[1] < spread[0] / 3


def test_the_matrix_tree_theorem_at_twenty_variables() -> None:
    """Every one has the root or any other for its parent: spanning trees from the root."""
    free = {i: {1: 20, **{1 << j: 1 for j in range(1, 21) if j != i}} for i in range(1, 21)}
    exact, rough = 20 * (20 + 20) ** 19, Weights(free, 1, terms=10)
    found = [estimate(rough, np.random.SeedSequence(s), particles=80, runs=4) for s in (0, 0, 1)]
    assert abs(found[0].value - exact) < 4 * found[0].standard_error < exact
    assert found[0] == found[1] != found[2]


def test_weights_far_beyond_floating_point_sums() -> None:
    """Everybody behind the root only, but for two that compete: nothing but a product of large numbers."""
    options = {i: {1: 10**15} for i in range(1, 31)}
    options[1][1 << 2], options[2][1 << 1] = 7, 7
    exact = estimate(Weights(options, 1), np.random.SeedSequence(0))
    assert exact == Estimate(10**420 * (10**30 + 14 * 10**15), 0, EXACT)


def test_where_every_order_ends_early_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("solvers.acyclic.estimate._Run._drawn_again", lambda run: -np.inf)
    with pytest.raises(BudgetSpent, match="all 20 orders of 11 variables ended where nothing can come next"):
        estimate(dense(11, 1, 0, terms=1), np.random.SeedSequence(0), particles=10, runs=2)


def test_estimates_add_up_and_say_what_they_are() -> None:
    parts = [Estimate(10, 3, "rough"), Estimate(5, 0, EXACT), Estimate(7, 4, "rougher")]
    assert together(parts) == Estimate(22, 5, "rougher")
    assert together(parts[1:2]) == parts[1]
    assert together([]) == Estimate(0, 0, EXACT)
    assert [str(one) for one in parts[:2]] == ["about 10 +- 3", "5"]
    assert str(Estimate(prod([10] * 99) * 123, 10**98, "rough")) == "about 1.23e101 +- 1.00e98"
