"""DAGs counted plainly, for checking certificates: a product over groups, and a recurrence over sinks within each.

Shares nothing with the counts of the solvers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import combinations
from typing import TypeAlias

Names: TypeAlias = frozenset[str]


def count_dags(
    functions: Mapping[str, Mapping[Names, int]],
    roots: Sequence[str],
    variables: Sequence[str],
    passed: Callable[[int, int], None] = lambda done, total: None,
) -> int:
    """Sum over acyclic parent maps of the product of function counts.

    A cycle lies within variables that reach each other, so the sum is a product over these groups; within a group,
    parents outside of it do not matter for cycles. passed: told the sets of variables that are done, of how many
    """
    endogenous = [v for v in variables if v not in roots]
    product = 1
    for group in _groups(functions, endogenous):
        outside = frozenset(variables).difference(group)
        product *= _group_dags(functions, group, outside, passed)
        if not product:
            break
    return product


def _groups(functions: Mapping[str, Mapping[Names, int]], endogenous: Sequence[str]) -> list[Names]:
    """Return the strongly connected groups of the possible edges between these variables."""
    parents = {v: {u for own in functions[v] for u in own if u in endogenous} for v in endogenous}
    reached = {v: _ancestors(v, parents) | {v} for v in endogenous}
    return list(dict.fromkeys(frozenset(u for u in reached[v] if v in reached[u]) for v in endogenous))


def _ancestors(variable: str, parents: Mapping[str, set[str]]) -> set[str]:
    ancestors: set[str] = set()
    waiting = [variable]
    while waiting:
        new = parents[waiting.pop()] - ancestors
        ancestors |= new
        waiting += new
    return ancestors


def _group_dags(
    functions: Mapping[str, Mapping[Names, int]], group: Names, given: Names, passed: Callable[[int, int], None]
) -> int:
    """Count by the sinks that are taken away: the recurrence of Robinson (1973), weighted and on sets of names.

    An acyclic map is a set of sinks, whose parents lie among what is given and the rest, over an acyclic map of the
    rest. A map with several sinks is met in several ways, which inclusion and exclusion over sets of sinks count once.
    """
    subsets = 2 ** len(group)

    @cache
    def choices(variable: str, available: Names) -> int:
        return sum(n for parents, n in functions[variable].items() if parents <= available | given)

    @cache
    def ways(placed: Names) -> int:
        """Weighted acyclic maps on `placed`: over its nonempty sets of sinks, with alternating sign."""
        if not placed:
            return 1
        added = 0
        for size in range(1, len(placed) + 1):
            for sinks in combinations(sorted(placed), size):
                passed(ways.cache_info().currsize, subsets)
                rest = placed.difference(sinks)
                product = ways(rest)
                for variable in sinks:
                    product *= choices(variable, rest)
                added += product if size % 2 else -product
        return added

    return ways(group)
