"""Sums by elimination: against all choices, against sums over what can come first, and closed forms at 40 variables."""

from __future__ import annotations

from itertools import combinations
from random import Random

import pytest

from calibrant.solvers.acyclic import count
from calibrant.solvers.acyclic.count import Weights, bounds, total
from calibrant.solvers.acyclic.elimination import elimination_order, total_by_elimination
from calibrant.solvers.outcome import Budget, BudgetSpent
from tests.solvers.acyclic.test_counting import by_enumeration, random_weights


@pytest.mark.parametrize("largest", [5, 1 << 80])
def test_every_order_gives_the_sum_over_all_choices(largest: int) -> None:
    counted = 0
    for seed in range(100):
        options, roots = random_weights(Random(seed), largest)
        expected = by_enumeration(options)
        counted += expected > 0
        own = Weights(options, roots).by_positions
        order = Random(f"order {seed}").sample(range(len(own)), len(own))
        assert total_by_elimination(own, order, Budget()) == expected
    assert 30 < counted < 100


def near(num_vars: int, reach: int, terms: int | None = None) -> Weights:
    """Behind root 0 every variable has up to two of those that are at most `reach` away for parents, by 1, 2 or 3."""
    options = {}
    for v in range(1, num_vars + 1):
        others = [u for u in range(max(1, v - reach), min(num_vars, v + reach) + 1) if u != v]
        sets = [chosen for k in range(3) for chosen in combinations(others, k)]
        options[v] = {1 | sum(1 << u for u in chosen): 1 + len(chosen) for chosen in sets}
    return Weights(options, 1, terms=terms)


@pytest.mark.parametrize("reach", [1, 2])
def test_the_same_sum_as_over_what_can_come_first(reach: int) -> None:
    assert near(11, reach).elimination is not None
    assert total(near(11, reach)) == count._sum_by_sinks(near(11, reach))


def test_a_path_of_forty_is_summed_by_a_recurrence() -> None:
    """From left to right, by the arc to the next variable: none, from it, or to it. No two arcs make a cycle."""
    none, onward, back = 1, 0, 0  # before the first variable there is no arc
    for _ in range(39):
        free = none + back  # the variable has no parent on its left
        none, onward, back = free + 2 * onward, free + 2 * onward, 2 * free + 3 * onward
    assert total(near(40, 1)) == none + back + 2 * onward


def test_rings_and_the_bounds_that_are_not_needed() -> None:
    """Every one has the root or its neighbour on a ring for a parent: all choices but the ring."""
    ring = Weights({i: {1: 2, 1 << (i % 40 + 1): 3} for i in range(1, 41)}, 1)
    assert ring.method == "elimination of variables"
    assert bounds(ring) == (5**40 - 3**40, 5**40 - 3**40)


def test_what_is_too_wide_or_too_long_is_left_to_sums() -> None:
    free = [{0: 1, **{1 << u: 1 for u in range(12) if u != v}} for v in range(12)]
    assert elimination_order(free) is None
    own = near(12, 2).by_positions
    order = elimination_order(own)
    assert order is not None
    assert sorted(order) == list(range(12))
    with pytest.raises(BudgetSpent):
        total_by_elimination(own, order, Budget(1_000))
    assert elimination_order(own, max_scope=4) is None


def test_a_budget_too_small_for_both_is_spent() -> None:
    with pytest.raises(BudgetSpent, match="40 variables that may lie on a cycle together, in more than 50 partial"):
        total(near(40, 2, terms=50))
