"""Acyclic assignment of least total cost where no parent set has more than one parent within the part.

That is a minimum-cost branching rooted outside the part (J. Edmonds, Optimum branchings, 1967); O(n) contractions of
O(arcs) each.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from calibrant.solvers.acyclic.least_cost import Cost, Mask

Entry: TypeAlias = tuple[int, Mask]
"""A variable and its parent set, of one parent; the empty set is an arc from the root outside."""

Arc: TypeAlias = tuple[Cost, Entry]
"""Reduced cost of an entry, and the entry."""

OUTSIDE = -1


def least_branching(options: Mapping[int, Mapping[Mask, Cost]]) -> dict[int, Mask] | None:
    """Return the parent of every variable; None if every assignment has a cycle.

    options: per variable the costs of its parent sets, each of one variable or none; distinct branchings differ in cost
    """
    arcs = {
        v: {parents.bit_length() - 1 if parents else OUTSIDE: (cost, (v, parents)) for parents, cost in sets.items()}
        for v, sets in options.items()
    }
    branching = _edmonds(arcs, max(options) + 1)
    return None if branching is None else dict(branching)


def _edmonds(entering: dict[int, dict[int, Arc]], fresh: int) -> list[Entry] | None:
    """Return the entries of a minimum-cost branching that reaches every node; None if there is none.

    entering: node -> source -> arc; fresh: a number above those of all nodes, for the next contracted cycle
    """
    if not all(entering.values()):
        return None
    cheapest = {v: min(candidates, key=lambda u: candidates[u][0]) for v, candidates in entering.items()}
    cycle = _find_cycle(cheapest)
    if not cycle:
        return [entering[v][u][1] for v, u in cheapest.items()]
    contracted: dict[int, dict[int, Arc]] = {fresh: {}}
    entry_of: dict[Entry, int] = {}  # an arc into the cycle, and the node of the cycle that it enters
    for v, candidates in entering.items():
        for u, (cost, arc) in candidates.items():
            source, target = (fresh if u in cycle else u), (fresh if v in cycle else v)
            if source == target:
                continue
            if v in cycle:
                # the arc replaces the one that the cycle takes into v, so it costs the difference
                cost -= candidates[cheapest[v]][0]
                entry_of[arc] = v
            entering_target = contracted.setdefault(target, {})
            if source not in entering_target or cost < entering_target[source][0]:
                entering_target[source] = cost, arc
        if v not in cycle:
            contracted.setdefault(v, {})
    branching = _edmonds(contracted, fresh + 1)
    if branching is None:
        return None
    # a branching has exactly one arc into the contracted node; it breaks the cycle where it enters
    entered = next(entry_of[arc] for arc in branching if arc in entry_of)
    return [*branching, *(entering[v][cheapest[v]][1] for v in cycle if v != entered)]


def _find_cycle(parent: Mapping[int, int]) -> list[int]:
    """Return the nodes of a cycle of a parent map; empty without one."""
    visited = set[int]()
    for start in parent:
        path, node = list[int](), start
        while node in parent and node not in visited:
            visited.add(node)
            path.append(node)
            node = parent[node]
        if node in path:
            return path[path.index(node) :]
    return []
