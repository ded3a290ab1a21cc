"""Strongly connected components: what can lie on a cycle together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence


def components(arcs: Iterable[tuple[int, int]]) -> dict[int, int]:
    """Node -> least node of its strongly connected component; only arcs within a component can close a cycle."""
    children: dict[int, list[int]] = {}
    for u, v in arcs:
        children.setdefault(u, []).append(v)
        children.setdefault(v, [])
    reached = {node: _reachable(children, node) for node in children}
    return {node: min(o for o in reached[node] if node in reached[o]) for node in children}


def _reachable(children: Mapping[int, Sequence[int]], start: int) -> set[int]:
    """The nodes that can be reached from a node, itself included."""
    seen, waiting = {start}, [start]
    while waiting:
        for child in children[waiting.pop()]:
            if child not in seen:
                seen.add(child)
                waiting.append(child)
    return seen
