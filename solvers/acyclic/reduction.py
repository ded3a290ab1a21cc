"""What is left to choose: dominated parent sets dropped, and the variables grouped by what can lie on a cycle together.

A set is dominated if another one of the variable costs less and brings in nothing that could close a cycle which the
set does not bring in itself. Parents in another strongly connected component close none, so every split lets more sets
be dominated, until nothing changes. A parent that all sets of a variable have in common is forced, and whoever has the
variable as a forced ancestor is no parent of it (the reductions of score-based structure learning: C. P. de Campos and
Q. Ji, Efficient structure learning of Bayesian networks using constraints, 2011; M. Bartlett and J. Cussens, Integer
linear programming for the Bayesian network structure learning problem, 2017).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import reduce
from typing import NamedTuple, TypeAlias

from calibrant.solvers.acyclic.components import components
from calibrant.solvers.acyclic.least_cost import Cost, Mask

MAX_LISTED_SUBSETS = 6  # members of a set up to which its subsets are looked up, and not compared one by one


class ParentSet(NamedTuple):
    """A parent set of a variable and what it costs; of sets that cost the same the smallest number comes first."""

    cost: Cost
    mask: Mask


Part: TypeAlias = dict[int, dict[Mask, ParentSet]]
"""Variables that have to be chosen for together: variable -> its parents within the part -> the cheapest such set."""


def parts(options: Mapping[int, Mapping[Mask, Cost]], free: Mask) -> list[Part] | None:
    """The parts, smallest variables first; None if some variable has no set that could be taken.

    options: per variable its possible parent sets and what they cost
    free: what comes before all of these variables; sets with anything else beyond them are not taken
    """
    known = free | sum(1 << v for v in options)
    start = {
        v: [ParentSet(cost, mask) for mask, cost in candidates.items() if not mask & ~known]
        for v, candidates in options.items()
    }
    return split(start)


def split(sets: Mapping[int, Collection[ParentSet]]) -> list[Part] | None:
    """Reduce parent sets that come with costs, and split the variables into parts; None if none is acyclic."""
    found: list[Part] = []
    waiting = [sets] if sets else []
    while waiting:
        group = waiting.pop()
        part = without_forced_descendants({v: remove_dominated(sets, group.keys()) for v, sets in group.items()})
        if part is None:
            return None
        splits = _components(part)
        if len(splits) > 1:
            waiting += [{v: list(part[v].values()) for v in component} for component in splits]
        else:
            found.append(part)
    return sorted(found, key=min)


def remove_dominated(sets: Collection[ParentSet], group: Collection[int]) -> dict[Mask, ParentSet]:
    """The sets that no cheaper one makes superfluous, by their parents in the group."""
    within = sum(1 << v for v in group)
    kept: dict[Mask, ParentSet] = {}
    for one in sorted(sets):
        parents = one.mask & within
        if 1 << min(parents.bit_count(), MAX_LISTED_SUBSETS + 1) <= len(kept):
            superfluous = any(subset in kept for subset in _subsets(parents))
        else:
            superfluous = any(not other & ~parents for other in kept)
        if not superfluous:
            kept[parents] = one
    return kept


def without_forced_descendants(part: Part) -> Part | None:
    """The part without sets that would close a cycle with parents that are forced; None if nothing is left of one."""
    while all(part.values()):
        forced = {v: reduce(int.__and__, candidates) for v, candidates in part.items()}
        ancestors = _closure(forced)
        below = {v: sum(1 << u for u in part if ancestors[u] >> v & 1) for v in part}
        left = {
            v: {parents: one for parents, one in sets.items() if not parents & below[v]} for v, sets in part.items()
        }
        if left == part:
            return part
        part = left
    return None


def _closure(parents: Mapping[int, Mask]) -> dict[int, Mask]:
    """The ancestors of every variable."""
    above = dict(parents)
    for via in above:
        for v, ancestors in above.items():
            if ancestors >> via & 1:
                above[v] = ancestors | above[via]
    return above


def _components(part: Part) -> list[list[int]]:
    arcs = {(u, v) for v, candidates in part.items() for u in part if any(mask >> u & 1 for mask in candidates)}
    least = components(arcs)
    groups: dict[int, list[int]] = {}
    for v in part:
        groups.setdefault(least.get(v, v), []).append(v)
    return list(groups.values())


def _subsets(mask: Mask) -> Iterator[Mask]:
    subset = mask
    while True:
        yield subset
        if not subset:
            return
        subset = (subset - 1) & mask
