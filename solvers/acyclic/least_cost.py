"""The acyclic choice of parent sets of least total cost, by dynamic programming over subsets of variables.

D[X] is the least cost of mechanisms for the endogenous variables X that mention only X and the roots; the last one of
a topological order of X may mention all the others (Silander and Myllymaki 2006, with sizes in place of scores).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from calibrant.solvers.budget import BudgetSpent

MAX_FREE_VARIABLES = 16  # 2**16 subsets take seconds; beyond: solvers.acyclic.optimum

Mask: TypeAlias = int
"""A set of variables, bit per index."""


def members_of(mask: Mask) -> list[int]:
    """The indices in a set, ascending."""
    return [i for i in range(mask.bit_length()) if mask >> i & 1]


Cost: TypeAlias = int
"""Additive, and distinct for distinct parent sets of a variable, so that the optimum is unique."""

_COUNT_BITS = 16  # a choice for all variables mentions fewer than 2**16 parents


def by_size(size: int, parents: Mask) -> Cost:
    """Smaller formulas first, then fewer mentions."""
    return size << _COUNT_BITS | parents.bit_count()


def total_size(cost: Cost) -> int:
    """Return what the sizes of a sum of `by_size` add up to."""
    return cost >> _COUNT_BITS


def total_mentions(cost: Cost) -> int:
    """Return what the mentions of a sum of `by_size` add up to."""
    return cost & (1 << _COUNT_BITS) - 1


def distinct(cost: Cost, variable: int, parents: Mask, num_vars: int) -> Cost:
    """The cost with a tie-break: of choices that cost the same, the smallest parent sets, variable 0 first."""
    return cost << num_vars**2 | parents << num_vars * (num_vars - 1 - variable)


def without_tie_break(cost: Cost, num_vars: int) -> Cost:
    """Return what the costs of a sum of `distinct` add up to."""
    return cost >> num_vars**2


def best_structure(options: Mapping[int, Mapping[Mask, Cost]], roots: Mask) -> tuple[Cost, dict[int, Mask]] | None:
    """The parent set of every endogenous variable, of least total cost, without a cycle; None if there is none.

    `BudgetSpent` for more than MAX_FREE_VARIABLES endogenous variables.

    options: per endogenous variable index its possible parent sets and what they cost
    roots: variables that are available to everybody
    """
    endogenous = sorted(options)
    if len(endogenous) > MAX_FREE_VARIABLES:
        raise BudgetSpent(f"{len(endogenous)} variables of unknown order; at most {MAX_FREE_VARIABLES}")
    position = {variable: index for index, variable in enumerate(endogenous)}
    known = roots | sum(1 << variable for variable in endogenous)
    best = []
    for variable in endogenous:
        within = {mask: cost for mask, cost in options[variable].items() if mask & ~known == 0}
        best.append(_cheapest_within(within, position))
    least = _least_totals(best)
    if least[-1] is None:
        return None
    return least[-1], _backtrack(endogenous, options, best, least)


def _cheapest_within(options: Mapping[Mask, Cost], position: Mapping[int, int]) -> list[Cost | None]:
    """Per subset of the endogenous variables, the cheapest option whose endogenous parents lie in it."""
    cheapest: list[Cost | None] = [None] * (1 << len(position))
    for mask, cost in options.items():
        inside = sum(1 << index for variable, index in position.items() if mask >> variable & 1)
        present = cheapest[inside]
        if present is None or cost < present:
            cheapest[inside] = cost
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
    """D over all subsets; the full set is last."""
    least: list[Cost | None] = [None] * (1 << len(best))
    least[0] = 0
    for subset in range(1, len(least)):
        totals = [_with_last(index, subset, best, least) for index in range(len(best)) if subset >> index & 1]
        least[subset] = min((total for total in totals if total is not None), default=None)
    return least


def _with_last(
    index: int, subset: Mask, best: Sequence[Sequence[Cost | None]], least: Sequence[Cost | None]
) -> Cost | None:
    """Cost of the subset if this variable comes last in its topological order."""
    rest = subset ^ (1 << index)
    before, own = least[rest], best[index][rest]
    return None if before is None or own is None else before + own


def _backtrack(
    endogenous: Sequence[int],
    options: Mapping[int, Mapping[Mask, Cost]],
    best: Sequence[Sequence[Cost | None]],
    least: Sequence[Cost | None],
) -> dict[int, Mask]:
    """The parent sets behind the optimum; costs are distinct, so each is found by its cost."""
    chosen: dict[int, Mask] = {}
    subset = len(least) - 1
    while subset:
        index = next(
            i for i in range(len(endogenous)) if subset >> i & 1 and _with_last(i, subset, best, least) == least[subset]
        )
        subset ^= 1 << index
        cost = best[index][subset]
        chosen[endogenous[index]] = next(m for m, c in options[endogenous[index]].items() if c == cost)
    return chosen
