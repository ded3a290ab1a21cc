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
    passed: Callable[[int, int], None] = lambda done, total: None,
) -> int:
    """Sum over acyclic parent maps of the product of function counts.

    A cycle lies within variables that reach each other, so the sum is a product over these groups; within a group,
    parents outside of it do not matter for cycles. passed: told the sets of variables that are done, of how many;
    `LargeGroupError` for one of more than MAX_GROUP
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
    """Count by the sinks that are added: the recurrence of Robinson (1973), weighted, on sets as integers.

    An acyclic map is a set of sinks, whose parents lie among what is given and the rest, over an acyclic map of the
    rest. A map with several sinks is met in several ways, which inclusion and exclusion over sets of sinks count once.
    """
    names = sorted(group)
    if len(names) > MAX_GROUP:
        raise LargeGroupError(f"{len(names)} variables can reach each other; up to {MAX_GROUP} are counted")
    subsets = 1 << len(names)
    options = [_options_within(functions[name], names, given) for name in names]
    ways = [1] + [0] * (subsets - 1)  # weighted acyclic maps on each set
    for rest in range(subsets - 1):
        passed(rest, subsets)
        sets, weights = [rest], [-ways[rest]]  # the rest with sinks added; each further sink turns the sign
        for place, option in enumerate(options):
            if not rest >> place & 1 and option[rest]:
                sets += [own | 1 << place for own in sets]
                weights += [-weight * option[rest] for weight in weights]
        for own, weight in zip(sets[1:], weights[1:], strict=True):
            ways[own] += weight
    return ways[-1]


def _options_within(counts: Mapping[Names, int], names: Sequence[str], given: Names) -> list[int]:
    """Return, for each set of the names, the functions whose other parents are given: sums over subsets."""
    sums = [0] * (1 << len(names))
    for parents, number in counts.items():
        if parents <= given.union(names):
            sums[sum(1 << place for place, name in enumerate(names) if name in parents)] += number
    for place in range(len(names)):
        half = 1 << place
        for start in range(0, len(sums), 2 * half):
            low, high = sums[start : start + half], sums[start + half : start + 2 * half]
            sums[start + half : start + 2 * half] = [a + b for a, b in zip(low, high, strict=True)]
    return sums
