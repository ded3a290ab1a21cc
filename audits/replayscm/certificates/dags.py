"""DAGs counted plainly, for checking certificates: a product over groups, and a recurrence over sinks within each.

Shares nothing with the counts of the solvers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from calibrant.dsl.errors import CalibrantError

Names: TypeAlias = frozenset[str]
MAX_GROUP: Final = 18  # variables; 3 ** 18 steps take a quarter of an hour, and tables of all sets 200 MB


class LargeGroupError(CalibrantError):
    """A group of more than MAX_GROUP variables: it is not counted."""


def count_dags(
    functions: Mapping[str, Mapping[Names, int]],
    roots: Sequence[str],
    variables: Sequence[str],
    report_progress: Callable[[int, int], None] = lambda done, total: None,
) -> int:
    """Sum over acyclic parent maps of the product of function counts.

    A cycle lies within variables that reach each other, so the sum is a product over these groups; within a group,
    parents outside of it do not matter for cycles. report_progress: gets the number of sets done, and of all sets.
    `LargeGroupError` for a group of more than MAX_GROUP variables
    """
    endogenous = [v for v in variables if v not in roots]
    product = 1
    for group in _groups(functions, endogenous):
        outside = frozenset(variables).difference(group)
        product *= _group_dags(functions, group, outside, report_progress)
        if not product:
            break
    return product


def _groups(functions: Mapping[str, Mapping[Names, int]], endogenous: Sequence[str]) -> list[Names]:
    """Return the strongly connected groups of the possible edges between these variables."""
    parents = {v: {u for parent_set in functions[v] for u in parent_set if u in endogenous} for v in endogenous}
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
    functions: Mapping[str, Mapping[Names, int]],
    group: Names,
    outside: Names,
    report_progress: Callable[[int, int], None],
) -> int:
    """Count by the sinks that are added: the recurrence of Robinson (1973), weighted, on sets as integers.

    An acyclic map is a set of sinks, with parents outside the group or in the remainder, over an acyclic map of the
    remainder. A map with several sinks arises in several ways; inclusion and exclusion over them counts it once.
    """
    names = sorted(group)
    if len(names) > MAX_GROUP:
        raise LargeGroupError(f"{len(names)} variables can reach each other; up to {MAX_GROUP} are counted")
    subsets = 1 << len(names)
    options = [_options_within(functions[name], names, outside) for name in names]
    ways = [1] + [0] * (subsets - 1)  # weighted acyclic maps on each set
    for remainder in range(subsets - 1):
        report_progress(remainder, subsets)
        sets, weights = [remainder], [-ways[remainder]]  # the rest with sinks added; each further sink turns the sign
        for place, option in enumerate(options):
            if not remainder >> place & 1 and option[remainder]:
                sets += [subset | 1 << place for subset in sets]
                weights += [-weight * option[remainder] for weight in weights]
        for subset, weight in zip(sets[1:], weights[1:], strict=True):
            ways[subset] += weight
    return ways[-1]


def _options_within(counts: Mapping[Names, int], names: Sequence[str], outside: Names) -> list[int]:
    """Count, for each subset of the names, the functions with parents there or outside: a zeta transform."""
    sums = [0] * (1 << len(names))
    for parents, number in counts.items():
        if parents <= outside.union(names):
            sums[sum(1 << place for place, name in enumerate(names) if name in parents)] += number
    for place in range(len(names)):
        bit = 1 << place
        for start in range(0, len(sums), 2 * bit):
            low, high = sums[start : start + bit], sums[start + bit : start + 2 * bit]
            sums[start + bit : start + 2 * bit] = [a + b for a, b in zip(low, high, strict=True)]
    return sums
