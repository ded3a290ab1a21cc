"""The acyclic choice of least total cost where no variable has more than one parent that could close a cycle.

That is a branching of least cost from everything outside (J. Edmonds, Optimum branchings, 1967).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from calibrant.solvers.acyclic.least_cost import Cost, Mask

Entry: TypeAlias = tuple[int, Mask]
"""A variable and the one parent that it takes; none stands for everything outside."""

Arc: TypeAlias = tuple[Cost, Entry]
"""What an entry costs by now, and which it is."""

OUTSIDE = -1


def least_branching(options: Mapping[int, Mapping[Mask, Cost]]) -> dict[int, Mask] | None:
    """The parent of every variable; None if every choice has a cycle.

    options: per variable its possible parents, each a set of one of these variables or the empty set, and what they
    cost, distinct for distinct choices
    """
    arcs = {
        v: {parents.bit_length() - 1 if parents else OUTSIDE: (cost, (v, parents)) for parents, cost in sets.items()}
        for v, sets in options.items()
    }
    found = _edmonds(arcs, max(options) + 1)
    return None if found is None else dict(found)


def _edmonds(entering: dict[int, dict[int, Arc]], fresh: int) -> list[Entry] | None:
    """Node -> source -> cost and what the arc stands for; the arcs of a least branching that reaches every node.

    fresh: a number that is no node's, nor any larger one
    """
    if not all(entering.values()):
        return None
    cheapest = {v: min(candidates, key=lambda u: candidates[u][0]) for v, candidates in entering.items()}
    cycle = _cycle(cheapest)
    if not cycle:
        return [entering[v][u][1] for v, u in cheapest.items()]
    contracted: dict[int, dict[int, Arc]] = {fresh: {}}
    broken: dict[Entry, int] = {}  # an arc into the cycle, and the node of the cycle that it enters
    for v, candidates in entering.items():
        for u, (cost, arc) in candidates.items():
            source, target = (fresh if u in cycle else u), (fresh if v in cycle else v)
            if source == target:
                continue
            if v in cycle:
                cost -= candidates[cheapest[v]][0]
                broken[arc] = v
            into = contracted.setdefault(target, {})
            if source not in into or cost < into[source][0]:
                into[source] = cost, arc
        if v not in cycle:
            contracted.setdefault(v, {})
    rest = _edmonds(contracted, fresh + 1)
    if rest is None:
        return None
    entered = next(broken[arc] for arc in rest if arc in broken)
    return [*rest, *(entering[v][cheapest[v]][1] for v in cycle if v != entered)]


def _cycle(parent: Mapping[int, int]) -> list[int]:
    """The nodes of a cycle of a parent map; empty without one."""
    done = set[int]()
    for start in parent:
        path, node = list[int](), start
        while node in parent and node not in done:
            done.add(node)
            path.append(node)
            node = parent[node]
        if node in path:
            return path[path.index(node) :]
    return []
