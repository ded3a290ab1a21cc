"""Interventional Markov equivalence: the graphs that no ideal experiment on the set properties tells from the truth."""

from __future__ import annotations

from collections.abc import Iterable, Set
from itertools import combinations

from calibrant.dsl.causalab.mechanism import Edge
from calibrant.dsl.graph_metrics import v_structures


def imec_size(edges: Set[Edge], targets: Iterable[str] = ()) -> int:
    """Return the number of DAGs with the skeleton and v-structures of `edges` that agree at the targets.

    They orient every edge at a target as `edges` do.

    edges: of a DAG
    """
    return len(imec_members(edges, targets))


def imec_members(edges: Set[Edge], targets: Iterable[str] = ()) -> list[frozenset[Edge]]:
    """Return the DAGs that `imec_size` counts, each as its edges.

    Edges are oriented one by one; a choice is dropped as soon as it closes a cycle or makes a v-structure that the
    truth does not have.
    """
    fixed = set(targets)
    colliders = v_structures(edges)
    directed = {(u, v) for u, v in edges if u in fixed or v in fixed}
    directed |= {(u, w) for pair, w in colliders for u in pair}
    undecided = sorted(edge for edge in edges if edge not in directed)
    adjacent = {frozenset(edge) for edge in edges}
    members: list[frozenset[Edge]] = []

    def orient(position: int, parents: dict[str, set[str]]) -> None:
        if position == len(undecided):
            members.append(frozenset((p, child) for child, node_parents in parents.items() for p in node_parents))
            return
        for parent, child in (undecided[position], undecided[position][::-1]):
            node_parents = parents.get(child, set())
            collides = any(
                frozenset((parent, co_parent)) not in adjacent
                and (frozenset((parent, co_parent)), child) not in colliders
                for co_parent in node_parents
            )
            if not collides and not _reaches(parents, child, parent):
                orient(position + 1, {**parents, child: node_parents | {parent}})

    decided: dict[str, set[str]] = {}
    for parent, child in directed:
        decided.setdefault(child, set()).add(parent)
    orient(0, decided)
    return members


def _reaches(parents: dict[str, set[str]], ancestor: str, node: str) -> bool:
    """Return whether `ancestor` is `node` or one of its ancestors."""
    visited, unseen = {node}, [node]
    while unseen:
        for parent in parents.get(unseen.pop(), ()):
            if parent not in visited:
                visited.add(parent)
                unseen.append(parent)
    return ancestor in visited


def imec_by_definition(edges: Set[Edge], targets: Iterable[str] = ()) -> int:
    """Count the class by trying every orientation of the skeleton; the reference for `imec_members`."""
    fixed, ordered = set(targets), sorted(edges)
    colliders = v_structures(edges)
    count = 0
    for size in range(len(ordered) + 1):
        for turned in combinations([e for e in ordered if fixed.isdisjoint(e)], size):
            candidate = frozenset(ordered) - set(turned) | {(v, u) for u, v in turned}
            count += _acyclic(candidate) and v_structures(candidate) == colliders
    return count


def _acyclic(edges: Set[Edge]) -> bool:
    parents: dict[str, set[str]] = {}
    for parent, child in edges:
        parents.setdefault(child, set()).add(parent)
    return all(not _reaches(parents, child, parent) for parent, child in edges)
