"""Bounds of relaxations: true whatever the prices, to the last digit."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from calibrant.solvers.acyclic.integer_program.relaxation import SCALE, Relaxation, Row
from tests.support.packages import needs

needs("highspy")


@pytest.mark.parametrize("largest", [2.0**4, 2.0**20, 2.0**30, 2.0**35, 2.0**37])
def test_a_bound_is_what_the_prices_prove_or_needs_none(largest: float) -> None:
    """As of duals of a program that was not solved to its end, of which nothing is known."""
    random, num, none = np.random.default_rng(int(largest)), 60, 0
    for _ in range(20):
        costs = random.integers(0, 1000, 2 * num).astype(np.float64)
        relaxed = Relaxation([v for v in range(num) for _ in range(2)], costs)
        places = [np.flatnonzero(random.integers(0, 2, 2 * num)) for _ in range(3)]
        relaxed.add([Row(own, random.integers(1, 4, len(own)).astype(np.float64), 1.0) for own in places])
        prices = np.floor(random.random(3) * largest * SCALE) / SCALE
        proof = relaxed._prove_bound(
            np.concatenate([np.zeros(num), prices * relaxed.scales]), np.ones(2 * num, np.bool_)
        )
        nothing = bound(costs, relaxed.rows, [0.0] * 3)
        assert Fraction(proof.bound) in (nothing, bound(costs, relaxed.rows, prices.tolist()))
        none += Fraction(proof.bound) == nothing
        assert np.all(proof.reduced_costs >= 0)
    assert (none == 0) == (largest < 2.0**32)  # prices too large to reckon with prove nothing


def test_what_is_tried_and_dropped_leaves_the_solution_as_it_was() -> None:
    random = np.random.default_rng(5)
    for _ in range(20):
        num = 30
        costs = random.integers(0, 1000, 2 * num).astype(np.float64)
        relaxed = Relaxation([v for v in range(num) for _ in range(2)], costs)
        places = [np.flatnonzero(random.random(2 * num) < 0.3) for _ in range(40)]
        relaxed.add([Row(own, np.ones(len(own)), 10.0) for own in places])
        everything = np.ones(2 * num, np.bool_)
        taken, proof = relaxed.solve(everything)
        without = everything & ~((np.arange(2 * num) == 7) | (np.arange(2 * num) == 20))
        few, many = relaxed.improve_bound(without, 1), relaxed.improve_bound(without, 1000)
        assert few.bound <= many.bound + 1e-6 * many.bound
        assert many.bound >= proof.bound - 1e-6 * proof.bound
        assert np.isinf(many.reduced_costs[[7, 20]]).all()
        idle = relaxed.unpriced
        assert 0 < np.count_nonzero(idle) < len(idle)
        relaxed.drop(idle)
        assert len(relaxed.rows) == len(relaxed.scales) == np.count_nonzero(~idle)
        again, still = relaxed.solve(everything)
        assert taken is not None
        assert again is not None
        assert np.isclose(costs @ again, costs @ taken)
        assert np.isclose(still.bound, proof.bound)


def bound(costs: np.ndarray, rows: list[Row], prices: list[float]) -> Fraction:
    left = [Fraction(cost) for cost in costs.tolist()]
    for (places, values, _), price in zip(rows, prices, strict=True):
        for place, value in zip(places.tolist(), values.tolist(), strict=True):
            left[place] -= Fraction(price) * int(value)
    total = sum((min(left[at : at + 2]) for at in range(0, len(left), 2)), Fraction(0))
    return total + sum(
        (Fraction(price) * int(row.lower_bound) for row, price in zip(rows, prices, strict=True)), Fraction(0)
    )
