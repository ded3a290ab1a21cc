"""Acyclic assignment of least total cost, by dynamic programming over subsets of variables.

D[X] is the least cost of mechanisms for the endogenous variables X that mention only X and the roots; the last variable
of a topological order of X may mention all others: D[X] = min over v in X of D[X - v] + cheapest set of v within X - v
(T. Silander and P. Myllymaki, A simple approach for finding the globally optimal Bayesian network structure, 2006, with
sizes in place of scores). O(m 2**m) time, O(m 2**m) memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from calibrant.solvers.budget import BudgetSpent

MAX_FREE_VARIABLES = 16  # 2**16 subsets take seconds; beyond: solvers.acyclic.optimum

Mask: TypeAlias = int
"""A set of variables, bit per index."""


def members_of(mask: Mask) -> list[int]:
    """List the indices in a set, ascending."""
    return [i for i in range(mask.bit_length()) if mask >> i & 1]


Cost: TypeAlias = int
"""Additive, and distinct for distinct parent sets of a variable, so that the optimum is unique."""

_COUNT_BITS = 16  # a choice for all variables mentions fewer than 2**16 parents


def cost_by_size(size: int, parents: Mask) -> Cost:
    """Return a cost that ranks by formula size, then by mentions."""
    # both fields add up without carries: a sum has fewer than 2**16 mentions
    return size << _COUNT_BITS | parents.bit_count()


def total_size(cost: Cost) -> int:
    """Return the sum of sizes in a sum of `cost_by_size`."""
    return cost >> _COUNT_BITS


def total_mentions(cost: Cost) -> int:
    """Return the sum of mentions in a sum of `cost_by_size`."""
    return cost & (1 << _COUNT_BITS) - 1


def break_ties(cost: Cost, variable: int, parents: Mask, num_vars: int) -> Cost:
    """Extend a cost by a tie-break: of equal assignments the one with the smallest parent sets, variable 0 first."""
    # a field of num_vars bits for each variable, the first highest: sums cannot carry, so they compare
    # lexicographically
    return cost << num_vars**2 | parents << num_vars * (num_vars - 1 - variable)


def remove_tie_break(cost: Cost, num_vars: int) -> Cost:
    """Return the sum of costs in a sum of `break_ties`."""
    return cost >> num_vars**2


def best_structure(options: Mapping[int, Mapping[Mask, Cost]], roots: Mask) -> tuple[Cost, dict[int, Mask]] | None:
    """Return the least cost of an acyclic assignment, and its parent sets; None if there is none.

    `BudgetSpent` for more than MAX_FREE_VARIABLES endogenous variables.

    options: per endogenous variable the costs of its possible parent sets
    roots: variables that may be parents of all
    """
    endogenous = sorted(options)
    if len(endogenous) > MAX_FREE_VARIABLES:
        raise BudgetSpent(f"{len(endogenous)} variables of unknown order; at most {MAX_FREE_VARIABLES}")
    position = {variable: index for index, variable in enumerate(endogenous)}
    available = roots | sum(1 << variable for variable in endogenous)
    best = []
    for variable in endogenous:
        within = {mask: cost for mask, cost in options[variable].items() if mask & ~available == 0}
        best.append(_cheapest_within(within, position))
    totals = _least_totals(best)
    if totals[-1] is None:
        return None
    return totals[-1], _backtrack(endogenous, options, best, totals)


def _cheapest_within(options: Mapping[Mask, Cost], position: Mapping[int, int]) -> list[Cost | None]:
    """Return, per subset of the endogenous variables, the least cost of a parent set within it and the roots."""
    cheapest: list[Cost | None] = [None] * (1 << len(position))
    for mask, cost in options.items():
        inside = sum(1 << index for variable, index in position.items() if mask >> variable & 1)
        present = cheapest[inside]
        if present is None or cost < present:
            cheapest[inside] = cost
    # minimum over all subsets, one dimension at a time: m 2**m comparisons instead of 3**m
    for index in range(len(position)):
        bit = 1 << index
        for subset in range(len(cheapest)):
            if subset & bit:
                smaller = cheapest[subset ^ bit]
                present = cheapest[subset]
                if smaller is not None and (present is None or smaller < present):
                    cheapest[subset] = smaller
    return cheapest


def _least_totals(best: Sequence[Sequence[Cost | None]]) -> list[Cost | None]:
    """Compute D for all subsets; the full set is last."""
    totals_by_set: list[Cost | None] = [None] * (1 << len(best))
    totals_by_set[0] = 0
    # ascending: removing a variable gives a smaller number
    for subset in range(1, len(totals_by_set)):
        totals = [
            _cost_with_last(index, subset, best, totals_by_set) for index in range(len(best)) if subset >> index & 1
        ]
        totals_by_set[subset] = min((total for total in totals if total is not None), default=None)
    return totals_by_set


def _cost_with_last(
    index: int, subset: Mask, best: Sequence[Sequence[Cost | None]], totals: Sequence[Cost | None]
) -> Cost | None:
    """Return the cost of the subset if this variable comes last in its topological order."""
    predecessors = subset ^ (1 << index)
    others_cost, mechanism_cost = totals[predecessors], best[index][predecessors]
    return None if others_cost is None or mechanism_cost is None else others_cost + mechanism_cost


def _backtrack(
    endogenous: Sequence[int],
    options: Mapping[int, Mapping[Mask, Cost]],
    best: Sequence[Sequence[Cost | None]],
    totals: Sequence[Cost | None],
) -> dict[int, Mask]:
    """Recover the parent sets of the optimum; costs are distinct, so a cost identifies the set."""
    chosen: dict[int, Mask] = {}
    subset = len(totals) - 1
    while subset:
        index = next(
            i
            for i in range(len(endogenous))
            if subset >> i & 1 and _cost_with_last(i, subset, best, totals) == totals[subset]
        )
        subset ^= 1 << index
        cost = best[index][subset]
        chosen[endogenous[index]] = next(m for m, c in options[endogenous[index]].items() if c == cost)
    return chosen
