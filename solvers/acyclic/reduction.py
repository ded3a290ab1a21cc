"""Reduction before optimisation: remove dominated parent sets, split variables into strongly connected parts.

A set is dominated if a cheaper set of the variable is a subset of it within the part. Parents in another strongly
connected component cannot close a cycle, so each split makes more sets dominated; both steps repeat until nothing
changes. A parent that all sets of a variable share is forced, and a variable's forced descendants cannot be its parents
(reductions of score-based structure learning: C. P. de Campos and Q. Ji, Efficient structure learning of Bayesian
networks using constraints, 2011; M. Bartlett and J. Cussens, Integer linear programming for the Bayesian network
structure learning problem, 2017). The optimum, with its ties, is unchanged.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import reduce
from typing import NamedTuple, TypeAlias

from calibrant.solvers.acyclic.components import components
from calibrant.solvers.acyclic.least_cost import Cost, Mask

MAX_LISTED_SUBSETS = 6  # members of a set up to which its subsets are looked up instead of scanning all kept sets


class ParentSet(NamedTuple):
    """Parent set with its cost; sorts by cost, then by mask."""

    cost: Cost
    mask: Mask


Part: TypeAlias = dict[int, dict[Mask, ParentSet]]
"""Strongly connected part: variable -> its parents within the part -> the cheapest full set with these parents."""


def reduce_to_parts(options: Mapping[int, Mapping[Mask, Cost]], free: Mask) -> list[Part] | None:
    """Reduce and split; parts are sorted by least variable. None if some variable has no admissible set.

    options: per variable the costs of its possible parent sets
    free: variables that precede all of these; sets with any other variable are dropped
    """
    available = free | sum(1 << v for v in options)
    start = {
        v: [ParentSet(cost, mask) for mask, cost in candidates.items() if not mask & ~available]
        for v, candidates in options.items()
    }
    return split_into_parts(start)


def split_into_parts(sets: Mapping[int, Collection[ParentSet]]) -> list[Part] | None:
    """Reduce parent sets and split the variables into parts; None if some variable is left without a set."""
    finished: list[Part] = []
    stack = [sets] if sets else []
    while stack:
        group = stack.pop()
        part = remove_forced_descendants({v: remove_dominated(sets, group.keys()) for v, sets in group.items()})
        if part is None:
            return None
        splits = _components(part)
        if len(splits) > 1:
            stack += [{v: list(part[v].values()) for v in component} for component in splits]
        else:
            finished.append(part)
    return sorted(finished, key=min)


def remove_dominated(sets: Collection[ParentSet], group: Collection[int]) -> dict[Mask, ParentSet]:
    """Remove dominated parent sets; return the others by their parents in the group."""
    within = sum(1 << v for v in group)
    undominated: dict[Mask, ParentSet] = {}
    # by cost: whatever dominates a set is already kept, or is dominated by a kept set
    for candidate in sorted(sets):
        parents = candidate.mask & within
        if 1 << min(parents.bit_count(), MAX_LISTED_SUBSETS + 1) <= len(undominated):
            is_dominated = any(subset in undominated for subset in _subsets(parents))
        else:
            is_dominated = any(not smaller & ~parents for smaller in undominated)
        if not is_dominated:
            undominated[parents] = candidate
    return undominated


def remove_forced_descendants(part: Part) -> Part | None:
    """Remove sets that would close a cycle with forced parents; None if a variable is left without a set."""
    while all(part.values()):
        forced = {v: reduce(int.__and__, candidates) for v, candidates in part.items()}
        ancestors = _close_ancestors(forced)
        descendants = {v: sum(1 << u for u in part if ancestors[u] >> v & 1) for v in part}
        reduced = {
            v: {parents: parent_set for parents, parent_set in sets.items() if not parents & descendants[v]}
            for v, sets in part.items()
        }
        if reduced == part:
            return part
        part = reduced
    return None


def _close_ancestors(parents: Mapping[int, Mask]) -> dict[int, Mask]:
    """Return the ancestors of every variable: transitive closure by Warshall's algorithm."""
    ancestors_of = dict(parents)
    for via in ancestors_of:
        for v, ancestors in ancestors_of.items():
            if ancestors >> via & 1:
                ancestors_of[v] = ancestors | ancestors_of[via]
    return ancestors_of


def _components(part: Part) -> list[list[int]]:
    arcs = {(u, v) for v, candidates in part.items() for u in part if any(mask >> u & 1 for mask in candidates)}
    component_of = components(arcs)
    groups: dict[int, list[int]] = {}
    for v in part:
        groups.setdefault(component_of.get(v, v), []).append(v)
    return list(groups.values())


def _subsets(mask: Mask) -> Iterator[Mask]:
    subset = mask
    while True:
        yield subset
        if not subset:
            return
        subset = (subset - 1) & mask
