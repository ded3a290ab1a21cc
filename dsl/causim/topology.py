"""Requirements on generated programs: their topology, and parts that make a difference.

A graph is a mapping from every node to its parents. Small graphs satisfy several predicates.

Acyclicity, private noise, call order and declared outputs are checked where a program is loaded; here is what takes the
tables: edges and noise that make no difference, nodes that never vary, the topology.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np

from calibrant.dsl.causim.bundle import Bundle
from calibrant.dsl.causim.language.driver import parse
from calibrant.dsl.causim.model import Local, Model

# --- The six topologies as predicates on a graph, and where a new node may be put so that its topology stays ----------
Parents: TypeAlias = Mapping[str, Sequence[str]]


def children_of(graph: Parents) -> dict[str, list[str]]:
    """Every node's children, in the order of the graph."""
    children: dict[str, list[str]] = {node: [] for node in graph}
    for node, parents in graph.items():
        for parent in parents:
            children[parent].append(node)
    return children


def is_acyclic(graph: Parents) -> bool:
    return depths(graph) is not None


def depths(graph: Parents) -> dict[str, int] | None:
    """Return the longest path from a parentless node to each node, or None for a graph with a cycle."""
    depth: dict[str, int] = {}
    unplaced = list(graph)
    while unplaced:
        ready = [node for node in unplaced if all(parent in depth for parent in graph[node])]
        if not ready:
            return None
        for node in ready:
            depth[node] = max((depth[parent] + 1 for parent in graph[node]), default=0)
        unplaced = [node for node in unplaced if node not in depth]
    return depth


def is_connected(graph: Parents) -> bool:
    """Return whether the graph without directions is connected."""
    near: dict[str, set[str]] = {node: set(parents) for node, parents in graph.items()}
    for node, parents in graph.items():
        for parent in parents:
            near[parent].add(node)
    reached: set[str] = set()
    waiting = list(graph)[:1]
    while waiting:
        node = waiting.pop()
        if node not in reached:
            reached.add(node)
            waiting.extend(near[node])
    return len(reached) == len(graph)


def _chain(graph: Parents) -> bool:
    return all(len(parents) <= 1 for parents in graph.values()) and all(
        len(children) <= 1 for children in children_of(graph).values()
    )


def _star(graph: Parents) -> bool:
    return any(all(list(parents) == ([] if node == hub else [hub]) for node, parents in graph.items()) for hub in graph)


def _inverted_star(graph: Parents) -> bool:
    return any(
        set(graph[sink]) == set(graph) - {sink} and all(not parents for node, parents in graph.items() if node != sink)
        for sink in graph
    )


def _tree(graph: Parents) -> bool:
    return sorted(map(len, graph.values())) == [0] + [1] * (len(graph) - 1)


def _is_layered(graph: Parents) -> bool:
    depth = depths(graph) or {}
    return all(depth[parent] + 1 == depth[node] for node, parents in graph.items() for parent in parents)


def _poly_tree_strict(graph: Parents) -> bool:
    return sum(map(len, graph.values())) == len(graph) - 1


_PREDICATES: Final[dict[str, Callable[[Parents], bool]]] = {
    "chain": _chain,
    "star": _star,
    "inverted_star": _inverted_star,
    "tree": _tree,
    "layered": _is_layered,
    "poly_tree": lambda graph: True,
    "poly_tree_strict": _poly_tree_strict,
}
TOPOLOGIES: Final = ("chain", "star", "inverted_star", "tree", "layered", "poly_tree")


def satisfies(graph: Parents, topology: str) -> bool:
    """Return whether an acyclic, connected graph has the topology; `KeyError` for an unknown one."""
    return is_acyclic(graph) and is_connected(graph) and _PREDICATES[topology](graph)


def topologies(graph: Parents) -> dict[str, bool]:
    """All predicates of one graph, `poly_tree_strict` among them."""
    return {name: satisfies(graph, name) for name in _PREDICATES}


# --- insertions ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Insertion:
    """The position of a new node.

    parents: the new node's
    changed: the new parents of each node that becomes a child of it or loses parents; the new node is `NEW` there
    """

    parents: tuple[str, ...]
    changed: tuple[tuple[str, tuple[str, ...]], ...] = ()


NEW: Final = ""


def insert_node(graph: Parents, insertion: Insertion, name: str) -> dict[str, tuple[str, ...]]:
    """Insert the new node; children come after their parents."""
    changed = dict(insertion.changed)
    after = {
        node: tuple(name if parent == NEW else parent for parent in changed.get(node, tuple(parents)))
        for node, parents in graph.items()
    }
    after[name] = insertion.parents
    depth = depths(after) or {}
    return {node: after[node] for node in sorted(after, key=lambda node: (depth[node], list(after).index(node)))}


def insertions(graph: Parents, topology: str) -> list[Insertion]:
    """Return the places where a new node keeps the topology, in a fixed order; an empty graph has one."""
    if not graph:
        return [Insertion(())]
    return _PLACES[topology](graph)


def _edges(graph: Parents) -> list[tuple[str, str]]:
    return [(parent, node) for node, parents in graph.items() for parent in parents]


def _on_edges(graph: Parents) -> list[Insertion]:
    """Between parent and child; the child swaps parents."""
    return [
        Insertion((parent,), ((node, tuple(NEW if old == parent else old for old in graph[node])),))
        for parent, node in _edges(graph)
    ]


def _in_chain(graph: Parents) -> list[Insertion]:
    start = next(node for node, parents in graph.items() if not parents)
    end = next(node for node, children in children_of(graph).items() if not children)
    return [Insertion((), ((start, (NEW,)),)), Insertion((end,)), *_on_edges(graph)]


def _in_star(graph: Parents) -> list[Insertion]:
    return [Insertion((next(node for node, parents in graph.items() if not parents),))]


def _in_inverted_star(graph: Parents) -> list[Insertion]:
    sink = next((node for node, parents in graph.items() if parents), next(iter(graph)))
    return [Insertion((), ((sink, (*graph[sink], NEW)),))]


def _in_tree(graph: Parents) -> list[Insertion]:
    root = next(node for node, parents in graph.items() if not parents)
    leaves = [Insertion((node,)) for node in graph]
    return [Insertion((), ((root, (NEW,)),)), *leaves, *_on_edges(graph)]


def _in_layers(graph: Parents) -> list[Insertion]:
    """In a layer, with one or two parents above; or as a layer of its own below some layer.

    The nodes of the layer under a new layer drop their parents and get the new node instead, so none is orphaned.
    """
    depth = depths(graph) or {}
    layers = [[node for node in graph if depth[node] == k] for k in range(max(depth.values()) + 1)]
    places: list[Insertion] = []
    for below in layers[1:2]:  # a new node of layer 0 has to be connected, to the next layer
        places.extend(Insertion((), ((node, (*graph[node], NEW)),)) for node in below)
    for above in layers:
        places.extend(Insertion((node,)) for node in above)
        places.extend(Insertion((first, second)) for i, first in enumerate(above) for second in above[i + 1 :])
    if len(graph) > 1:
        for k in range(len(layers)):
            parents = tuple(layers[k - 1][:2]) if k else ()
            lost = tuple((node, (NEW,)) for node in layers[k])
            place = Insertion(parents, lost)
            if satisfies(insert_node(graph, place, "new node"), "layered"):
                places.append(place)
    return places


def _in_poly_tree(graph: Parents) -> list[Insertion]:
    """Under or above any node, on any edge, or with two parents."""
    nodes = list(graph)
    under = [Insertion((node,)) for node in nodes]
    above = [Insertion((), ((node, (*graph[node], NEW)),)) for node in nodes]
    joins = [Insertion((first, second)) for i, first in enumerate(nodes) for second in nodes[i + 1 :]]
    return [*under, *above, *_on_edges(graph), *joins]


_PLACES: Final[dict[str, Callable[[Parents], list[Insertion]]]] = {
    "chain": _in_chain,
    "star": _in_star,
    "inverted_star": _in_inverted_star,
    "tree": _in_tree,
    "layered": _in_layers,
    "poly_tree": _in_poly_tree,
}


# --- Requirements on generated models, and the violations of a model from elsewhere -----------------------------------


@dataclass(frozen=True, slots=True)
class Vacuity:
    """Edges, noise and nodes without an effect, in topological order.

    edges: (parent, child) where no change of the parent changes the child, whatever the other parents and the noise
    noise: nodes whose noise changes nothing
    constants: nodes with one value
    """

    edges: tuple[tuple[str, str], ...]
    noise: tuple[str, ...]
    constants: tuple[str, ...]


def vacuity(model: Model) -> Vacuity:
    """`ModelError` where a table is too large to be made."""
    edges: list[tuple[str, str]] = []
    noise, constants = [], []
    for node, local in zip(model.nodes, model.system, strict=True):
        edges.extend((parent, node.name) for axis, parent in enumerate(node.parents) if not _matters(local, axis))
        if not _matters(local, len(node.parents)):
            noise.append(node.name)
        if len(local.domain) == 1:
            constants.append(node.name)
    return Vacuity(tuple(edges), tuple(noise), tuple(constants))


def _matters(local: Local, axis: int) -> bool:
    first = np.take(local.table, [0], axis=axis)
    return bool(np.any(local.table != first))


def graph_of(model: Model) -> dict[str, tuple[str, ...]]:
    """Every node's parents, in topological order."""
    return {node.name: node.parents for node in model.nodes}


def objections(model: Model, topology: str, *, size: int | None = None) -> list[str]:
    """Why a generated model is refused, a line each; none if it is accepted."""
    graph = graph_of(model)
    problems = []
    if not is_connected(graph):
        problems.append("the graph is not connected")
    if topology and not satisfies(graph, topology):
        problems.append(f"the graph is no {topology}")
    if size is not None and len(model) != size:
        problems.append(f"{len(model)} nodes where {size} are declared")
    vacuous = vacuity(model)
    problems.extend(f"the edge {parent} -> {child} makes no difference" for parent, child in vacuous.edges)
    problems.extend(f"the noise of {name} makes no difference" for name in vacuous.noise)
    problems.extend(f"{name} never varies" for name in vacuous.constants)
    return problems


def unread_arguments(source: str) -> list[tuple[str, str]]:
    """Return (function, parameter) for every parameter that its body never names; `Unsupported` as `load_source`."""
    return [(name, parameter) for name, function in parse(source).functions.items() for parameter in function.unread]


def bundle_objections(bundle: Bundle, model: Model, source: str) -> list[str]:
    """All of `objections` for a bundle and its model, and its unread arguments."""
    unread = [f"{name} never reads {parameter}" for name, parameter in unread_arguments(source)]
    return [*objections(model, bundle.topology, size=bundle.v), *unread]
