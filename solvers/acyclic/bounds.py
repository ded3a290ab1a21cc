"""Certified bounds of a sum over acyclic parent choices that has too many terms to be added up.

From below: the choices that one order of the variables admits; a better order gives a better bound. From above: the
choices of every variable on its own, acyclic or not. Both multiply over the groups that no cycle leaves, and a group
whose terms can be added up is.
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
    """Bound `total` from below and above; both are the sum itself wherever it is within its budget."""
    parts = [_of_component(component) for component in weights.components()]
    return Bounds(prod(part.lower for part in parts), prod(part.upper for part in parts))


def _of_component(weights: Weights) -> Bounds:
    try:
        exact = total(weights)
    except BudgetSpent:
        everything = weights.full
        upper = prod(weights.within(i, everything) for i in range(len(weights.endogenous)))
        return Bounds(_in_order(weights, good_order(weights)), upper)
    return Bounds(exact, exact)


def _in_order(weights: Weights, order: Sequence[int]) -> int:
    """Total weight of the choices in which parents come earlier in this order (positions)."""
    whole, placed = 1, 0
    for i in order:
        whole *= weights.within(i, placed)
        placed |= 1 << i
    return whole


def good_order(weights: Weights) -> list[int]:
    """Next always the variable that loses the smallest share of its weight; the first of several.

    Ends early where nothing can come next.
    """
    full, order, placed = weights.full, list[int](), 0
    while able := weights.able(placed):
        shares = {i: weights.within(i, placed) / weights.within(i, full) for i in members_of(able)}
        best = max(shares, key=lambda i: (shares[i], -i))
        order.append(best)
        placed |= 1 << best
    return order if placed == full else [*order, *(i for i in members_of(full & ~placed))]
