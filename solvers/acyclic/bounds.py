"""Certified bounds of a sum over acyclic assignments that has too many terms to be added up.

Lower bound: the assignments that are compatible with one order of the variables; a better order gives a better bound.
Upper bound: the acyclicity constraint is dropped, so that the sum factorises over variables. Both multiply over
strongly connected components, and a component whose terms can be added up is summed exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

from calibrant.solvers.acyclic.count import Weights, total
from calibrant.solvers.acyclic.least_cost import members_of
from calibrant.solvers.budget import BudgetSpent


class Bounds(NamedTuple):
    """Certified lower and upper bound of a number; equal where it is exact."""

    lower: int
    upper: int

    def __str__(self) -> str:
        return str(self.lower) if self.lower == self.upper else f"{self.lower} to {self.upper}"


def bounds(weights: Weights) -> Bounds:
    """Bound `total` from below and above; both equal the sum where it is within its budget."""
    parts = [_component_bounds(component) for component in weights.components()]
    return Bounds(prod(part.lower for part in parts), prod(part.upper for part in parts))


def _component_bounds(weights: Weights) -> Bounds:
    try:
        exact = total(weights)
    except BudgetSpent:
        everything = weights.full
        upper = prod(weights.within(i, everything) for i in range(len(weights.endogenous)))
        return Bounds(_total_in_order(weights, good_order(weights)), upper)
    return Bounds(exact, exact)


def _total_in_order(weights: Weights, order: Sequence[int]) -> int:
    """Return the total weight of the assignments in which parents come earlier in this order (positions)."""
    product, placed = 1, 0
    for i in order:
        product *= weights.within(i, placed)
        placed |= 1 << i
    return product


def good_order(weights: Weights) -> list[int]:
    """Order the variables greedily: next the one that loses the smallest share of its weight, the first of several.

    Variables that can never be placed come last, ascending.
    """
    full, order, placed = weights.full, list[int](), 0
    while eligible := weights.eligible(placed):
        # rounding may choose another order, but any order gives a valid bound
        shares = {i: weights.within(i, placed) / weights.within(i, full) for i in members_of(eligible)}
        best = max(shares, key=lambda i: (shares[i], -i))
        order.append(best)
        placed |= 1 << best
    return order if placed == full else [*order, *(i for i in members_of(full & ~placed))]
