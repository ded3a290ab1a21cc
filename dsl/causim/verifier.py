"""Requirements on generated models, and the violations of a model from elsewhere.

Acyclicity, private noise, call order and declared outputs are checked where a program is loaded; here is what takes the
tables: edges and noise that make no difference, nodes that never vary, the topology.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrant.dsl.causim.bundle import Bundle
from calibrant.dsl.causim.language.driver import parse
from calibrant.dsl.causim.model import Local, Model
from calibrant.dsl.causim.topology import is_connected, satisfies


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
