"""Learned graphs with arcs and undirected edges, and the DAG in each of them that agrees with a disclosure.

A graph is one mask per variable: bit u of mask v is set where u -> v or u - v. An undirected edge is set both ways.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

from calibrant.baselines.structure_learning.constraints import Constraints
from calibrant.baselines.structure_learning.frame import Dag, Mask

Graph: TypeAlias = tuple[Mask, ...]


class Placement(NamedTuple):
    """A DAG and the order that it was read off: the variables' indices, causes first."""

    dag: Dag
    order: tuple[int, ...]


def graph_from_matrix(may_cause: Any) -> Graph:
    """From an adjacency matrix whose entry [u][v] is not 0 where u -> v or u - v."""
    size = len(may_cause)
    return tuple(sum(1 << u for u in range(size) if may_cause[u][v]) for v in range(size))


def adjacent(graph: Graph, variable: int) -> Mask:
    """Everything with an edge to the variable, of whatever direction."""
    return graph[variable] | children(graph, variable)


def children(graph: Graph, variable: int) -> Mask:
    """Return the variables that the variable may be a parent of."""
    return sum(1 << v for v, parents in enumerate(graph) if parents >> variable & 1)


def disclosed_graph(graph: Graph, constraints: Constraints) -> Graph:
    """Return the graph with what the constraints say about its edges.

    An undirected edge that is allowed one way only gets that direction; an arc against what is known is turned round;
    an edge that is allowed neither way is dropped. No edge is added.
    """
    edges = list(graph)
    for v in range(len(graph)):
        for u in range(v):
            ways = graph[v] >> u & 1, graph[u] >> v & 1
            allowed = constraints.allowed[v] >> u & 1, constraints.allowed[u] >> v & 1
            forward, backward = ways[0] & allowed[0], ways[1] & allowed[1]
            if not forward and not backward and any(ways):
                forward, backward = allowed
            edges[v] = edges[v] & ~(1 << u) | forward << u
            edges[u] = edges[u] & ~(1 << v) | backward << v
    return tuple(edges)


def orient(graph: Graph, constraints: Constraints) -> Placement:
    """Return a DAG with the edges of a graph from `disclosed_graph`, in an order that extends what is known.

    Variables are placed from the last to the first (Dor and Tarsi 1992): preferably one without outgoing arcs whose
    undirected neighbours are adjacent to everything around it, which makes no new collider; else one without
    outgoing arcs; else, where arcs of a finite sample run in a circle, the one with the fewest, which are turned round.
    Ties go to the last column.
    """
    waiting = (1 << len(graph)) - 1
    dag, order = [0] * len(graph), []
    while waiting:
        last = min(_final(constraints, waiting), key=lambda v: (*_unfitness(graph, v, waiting), -v))
        waiting &= ~(1 << last)
        dag[last] = adjacent(graph, last) & waiting & constraints.allowed[last]
        order.append(last)
    return Placement(tuple(dag), tuple(reversed(order)))


def _final(constraints: Constraints, waiting: Mask) -> list[int]:
    """Return the waiting variables that are not known to precede another one."""
    members = [v for v in range(len(constraints.allowed)) if waiting >> v & 1]
    before = 0
    for v in members:
        before |= constraints.earlier[v]
    return [v for v in members if not before >> v & 1]


def _unfitness(graph: Graph, variable: int, waiting: Mask) -> tuple[int, bool]:
    """Outgoing arcs to those that wait, and whether placing the variable last makes a new collider."""
    parents, may_be_children = graph[variable] & waiting, children(graph, variable) & waiting
    outgoing = may_be_children & ~parents
    around = parents | may_be_children
    neighbours = [u for u in range(len(graph)) if may_be_children & parents & 1 << u]
    collides = any(around & ~(1 << u) & ~adjacent(graph, u) for u in neighbours)
    return outgoing.bit_count(), collides
