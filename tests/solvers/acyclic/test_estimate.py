"""Estimates of sums: unbiased against exact sums, honest about their spread, the same for the same seed."""

from __future__ import annotations

from itertools import combinations
from math import exp, log, prod
from random import Random

import numpy as np
import pytest

from calibrant.solvers.acyclic.count import Weights, total
from calibrant.solvers.acyclic.estimate import EXACT, Estimate, add_estimates, estimate
from calibrant.solvers.outcome import BudgetSpent
from tests.support.effort import effort

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
    monkeypatch.setattr("calibrant.solvers.acyclic.estimate._Run._resample", lambda run: -np.inf)
    with pytest.raises(BudgetSpent, match="all 20 orders of 11 variables ended where nothing can come next"):
        estimate(dense(11, 1, 0, terms=1), np.random.SeedSequence(0), particles=10, runs=2)


def heavy(seed: int, terms: int | None = None) -> Weights:
    """Behind root 0 sets of up to four of six others, of weights like counts of functions: few sets hold most."""
    rng = Random(f"heavy {seed}")
    options: dict[int, dict[int, int]] = {}
    for v in range(1, 8):
        others = [u for u in range(1, 8) if u != v]
        sets = [chosen for k in range(5) for chosen in combinations(others, k) if rng.random() < 0.2]
        options[v] = {1 | sum(1 << u for u in chosen): 1 << rng.randrange(2 ** len(chosen) + 1) for chosen in sets}
        options[v][1] = 1
    options[1] = {mask: weight << 64 for mask, weight in options[1].items()}  # no words
    return Weights(options, 1, terms=terms)


@pytest.mark.soak
def test_intervals_hold_the_sum_as_often_as_they_say() -> None:
    """In 20 problems, in a soak 400, with little effort, so that few runs meet what weighs most: 95 in 100 at least."""
    held = least = asked = 0
    number = effort(20, 400)
    for seed in range(number):
        exact, rough = total(heavy(seed)), heavy(seed, terms=1)
        found = estimate(rough, np.random.SeedSequence(seed), particles=20, runs=8)
        asked += bool(found.runs)
        low, high = found.interval
        held += low <= exact <= high
        least += found.at_least <= exact
        assert found.at_least <= low <= found.value <= high
    assert asked == number
    assert held >= 0.95 * number
    assert least >= 0.95 * number


def test_the_interval_is_of_a_lognormal_mean() -> None:
    """Five numbers, of logarithms 46 to 54, variance 10: with four degrees t is 2.776, chi-square 0.4844 or 11.143."""
    runs = tuple(round(exp(power)) for power in (46, 48, 50, 52, 54))
    found = add_estimates([Estimate(1, 1, "rough", runs)])
    most = 4 * 10 / 0.4844
    low, high = found.interval
    assert low == found.at_least == pytest.approx(exp(50) / 20 ** (1 / 5))
    assert log(high) == pytest.approx(50 + most / 2 + 2.776 * (most / 5) ** 0.5, rel=1e-3)
    assert found.value == sum(runs) // 5
    assert Estimate(7, 0, EXACT).interval == (7, 7)
    near = add_estimates([Estimate(1, 1, "rough", tuple(round(exp(50 + shift / 10)) for shift in (-4, -2, 0, 2, 4)))])
    low, _ = near.interval
    assert log(low) == pytest.approx(50 + 4 * 0.1 / 11.143 / 2 - 2.776 * (0.1 / 5) ** 0.5, rel=1e-5)


def test_numbers_of_any_length_are_written() -> None:
    far = Estimate(10**3000, 1, "rough", (10**2990, 2 * 10**3000))
    assert str(far).startswith("about 1.00e3000 (")
    assert str(far).endswith(f" to 1e{int((2995 * log(10) + log(2) / 2 + 100_000) / log(10))})")


def test_the_standard_error_is_of_the_mean_of_runs() -> None:
    found = add_estimates([Estimate(100, 1, "rough", (90, 95, 100, 105, 110)), Estimate(7, 0, EXACT)])
    assert (found.value, found.standard_error) == (107, 3)  # the root of 62.5 / 5, rounded down
    assert found.runs == (97, 102, 107, 112, 117)
    assert found.at_least == int((97 * 102 * 107 * 112 * 117 / 20) ** (1 / 5))


def test_a_run_that_came_to_nothing_bounds_nothing() -> None:
    found = add_estimates([Estimate(1, 1, "rough", (0, 2, 4))])
    assert (found.value, found.at_least) == (2, 0)


def test_estimates_add_up_and_say_what_they_are() -> None:
    parts = [Estimate(10, 3, "rough", (7, 13)), Estimate(5, 0, EXACT), Estimate(7, 4, "rougher", (3, 11))]
    assert add_estimates(parts) == Estimate(22, 7, "rougher", (15, 29))
    assert add_estimates(parts[1:2]) == parts[1]
    assert add_estimates([]) == Estimate(0, 0, EXACT)
    assert str(parts[1]) == "5"
    large = Estimate(prod([10] * 99) * 123, 10**98, "rough", (prod([10] * 99) * 123,) * 9)
    assert str(large) == "about 1.23e101 (1.22e101 to 1.23e101)"
