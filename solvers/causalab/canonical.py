"""Canonical names of a laboratory's properties and order of its records, from what a solver may read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from calibrant.dsl.causalab.item import Task
from calibrant.dsl.causalab.mechanism import FREQUENCY, Mechanism, Values
from calibrant.solvers.canonical import Structure, StructureBuilder, canonical_order, word


@dataclass(frozen=True)
class CanonicalNames:
    """Names and order that do not depend on those of the task.

    names: property -> canonical name, p1, p2, ..., padded so that they sort as numbers do
    records: indices of different records in canonical order
    """

    names: Mapping[str, str]
    records: tuple[int, ...]


def canonical_names(task: Task) -> CanonicalNames:
    """Return canonical names: properties are distinguished by their readings, records by their values."""
    builder = StructureBuilder()
    index = {name: builder.vertex("property", name in task.settable) for name in task.properties}

    def add(values: Values, *colour: object) -> int:
        vertex = builder.vertex(*colour, values.get(FREQUENCY))
        for node, value in values.items():
            if node != FREQUENCY:
                builder.edge(vertex, index[node], word(value))
        return vertex

    different = [i for i, record in enumerate(task.records) if record not in task.records[:i]]
    record_vertex = {i: add(task.records[i], "record") for i in different}
    for position, entry in enumerate(task.trace):
        vertex = add(entry.values, "trace", position, entry.value)
        if entry.property is not None:
            builder.edge(vertex, index[entry.property], word("set"))
    add(task.baseline, "baseline")
    add(task.reactor, "reactor")
    rank = canonical_order(builder.build(len(builder.colours))).rank
    ordered = sorted(task.properties, key=lambda name: rank[index[name]])
    width = len(str(len(ordered)))
    return CanonicalNames(
        {name: f"p{number:0{width}}" for number, name in enumerate(ordered, start=1)},
        tuple(sorted(different, key=lambda i: rank[record_vertex[i]])),
    )


def mechanism_structure(mechanism: Mechanism, *, with_functions: bool = True) -> Structure:
    """Return the structure of a mechanism: nodes, edges and, with_functions, the terms and the frequency's base."""
    builder = StructureBuilder()
    bases = {node: equation.base if with_functions else None for node, equation in mechanism.equations.items()}
    index = {node: builder.vertex("node", node == FREQUENCY, base) for node, base in bases.items()}
    for parent, child in mechanism.edges:
        builder.edge(index[parent], index[child], word("parent"))
    for node, equation in mechanism.equations.items() if with_functions else ():
        for term in equation.terms:
            vertex = builder.vertex("term", term.power, float(term.weight))
            builder.edge(index[term.parent], vertex)
            builder.edge(vertex, index[node])
    return builder.build(len(index))
