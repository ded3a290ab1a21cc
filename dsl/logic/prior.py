"""Prior networks: signed edges, and the edges of the class after dropping, merging and removing self-edges."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import NamedTuple, TypeVar

from calibrant.dsl.errors import CalibrantError

MAX_MERGED_EDGES = 1_000_000  # made one after another; 2 s
N = TypeVar("N", str, int)
_SIGN_BITS = {1: 1, -1: 2}
_PRODUCTS = ((0, 0, 0, 0), (0, 1, 2, 3), (0, 2, 1, 3), (0, 3, 3, 3))  # of two sets of signs, as bits


class Edge(NamedTuple):
    """A signed edge.

    sign: 1 activates, -1 inhibits
    """

    source: str
    sign: int
    target: str

    def __str__(self) -> str:
        return f"{self.source} {self.sign} {self.target}"


def class_edges(
    prior: Iterable[Edge], stimuli: Iterable[str], kept_names: Iterable[str], *, compress: bool, reverse: bool = False
) -> tuple[Edge, ...]:
    """Return the edges of the class, sorted.

    kept_names: names that compression never merges: stimuli, inhibitors, readouts
    reverse: compress in reverse code point order; a different result shows that names decide
    """
    into_stimuli = set(stimuli)
    edges = {edge for edge in prior if edge.target not in into_stimuli}
    if compress:
        edges = _compress(edges, set(kept_names), reverse=reverse)
    return tuple(sorted(edge for edge in edges if edge.source != edge.target))


def _compress(edges: set[Edge], kept_names: set[str], *, reverse: bool) -> set[Edge]:
    """Merge each node with at most one source or target, once, in code point order."""
    # neighbours with the signs of the edges between, as bits: sets of edges take three times as long
    into: dict[str, dict[str, int]] = defaultdict(dict)
    out: dict[str, dict[str, int]] = defaultdict(dict)
    num_merged = 0
    for source, sign, target in edges:
        sources = into[target]
        sources[source] = out[source][target] = sources.get(source, 0) | _SIGN_BITS[sign]
    for name in sorted((into.keys() | out.keys()) - kept_names, reverse=reverse):
        sources, targets = into[name], out[name]
        if sources and targets and ((len(sources) > 1 and len(targets) > 1) or sources.keys() & targets.keys()):
            continue
        if sources and targets:
            num_merged += sum(map(int.bit_count, sources.values())) * sum(map(int.bit_count, targets.values()))
        if num_merged > MAX_MERGED_EDGES:
            raise CalibrantError(f"merging nodes of the prior makes over {MAX_MERGED_EDGES:,} edges; see --no-compress")
        del into[name], out[name]
        for source in sources:
            del out[source][name]
        for target, bits in targets.items():
            into_target = into[target]
            del into_target[name]
            for source, source_bits in sources.items():
                merged = into_target.get(source, 0) | _PRODUCTS[source_bits][bits]
                into_target[source] = out[source][target] = merged
    return {
        Edge(source, sign, target)
        for target, sources in into.items()
        for source, bits in sources.items()
        for sign, bit in _SIGN_BITS.items()
        if bits & bit
    }


def edges_by_target(edges: Iterable[Edge]) -> dict[str, list[Edge]]:
    """Return the edges into each node, sorted."""
    grouped: dict[str, list[Edge]] = {}
    for edge in sorted(edges):
        grouped.setdefault(edge.target, []).append(edge)
    return grouped


def reachable(starts: Iterable[N], neighbours: Mapping[N, Iterable[N]]) -> set[N]:
    """Return the nodes that are reached from some of the starts, the starts included."""
    reached = set(starts)
    waiting = list(reached)
    while waiting:
        for name in neighbours.get(waiting.pop(), ()):
            if name not in reached:
                reached.add(name)
                waiting.append(name)
    return reached


def successors(edges: Iterable[Edge]) -> dict[str, set[str]]:
    """Return the targets of each source."""
    targets: dict[str, set[str]] = {}
    for edge in edges:
        targets.setdefault(edge.source, set()).add(edge.target)
    return targets


def predecessors(edges: Iterable[Edge]) -> dict[str, set[str]]:
    """Return the sources of each target."""
    sources: dict[str, set[str]] = {}
    for edge in edges:
        sources.setdefault(edge.target, set()).add(edge.source)
    return sources


def is_cyclic(edges: Iterable[Edge]) -> bool:
    """Return whether the edges contain a directed cycle."""
    try:
        TopologicalSorter(predecessors(edges)).prepare()
    except CycleError:
        return True
    return False


def node_names(edges: Sequence[Edge]) -> set[str]:
    """Return the names at either end of an edge."""
    return {name for edge in edges for name in (edge.source, edge.target)}
