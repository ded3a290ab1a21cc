"""Strongly connected components of a directed graph."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence


def components(arcs: Iterable[tuple[int, int]]) -> dict[int, int]:
    """Map every node to the least node of its strongly connected component; only arcs within one can close a cycle."""
    children: dict[int, list[int]] = {}
    for u, v in arcs:
        children.setdefault(u, []).append(v)
        children.setdefault(v, [])
    # one search per node, O(nodes * arcs), instead of Tarjan's algorithm: graphs here have tens of nodes

    reached = {node: _reachable(children, node) for node in children}
    return {node: min(o for o in reached[node] if node in reached[o]) for node in children}


def _reachable(children: Mapping[int, Sequence[int]], start: int) -> set[int]:
    """Return the nodes that can be reached from a node, itself included."""
    reached, stack = {start}, [start]
    while stack:
        for child in children[stack.pop()]:
            if child not in reached:
                reached.add(child)
                stack.append(child)
    return reached
