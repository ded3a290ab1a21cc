"""Canonical names of a laboratory's properties and order of its records, from what a solver may read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from calibrant.dsl.causalab.item import Task
from calibrant.dsl.causalab.mechanism import FREQUENCY, Mechanism, Values
from calibrant.solvers.canonical import Structure, StructureBuilder, canonical_order, word


@dataclass(frozen=True)
class CanonicalNames:
    """Names and order that do not depend on the task's.

    names: property -> canonical name, which sort as they count
    records: indices in canonical order, of equal records the first
    """

    names: Mapping[str, str]
    records: tuple[int, ...]


def canonical_names(task: Task) -> CanonicalNames:
    """Return canonical names: properties are told apart by their readings, records by what they hold."""
    builder = StructureBuilder()
    index = {name: builder.vertex("property", name in task.settable) for name in task.properties}

    def add(values: Values, *colour: object) -> int:
        vertex = builder.vertex(*colour, values.get(FREQUENCY))
        for node, value in values.items():
            if node != FREQUENCY:
                builder.edge(vertex, index[node], word(value))
        return vertex

    different = [place for place, record in enumerate(task.records) if record not in task.records[:place]]
    record_vertex = {place: add(task.records[place], "record") for place in different}
    for place, entry in enumerate(task.trace):
        vertex = add(entry.values, "trace", place, entry.value)
        if entry.property is not None:
            builder.edge(vertex, index[entry.property], word("set"))
    add(task.baseline, "baseline")
    add(task.reactor, "reactor")
    rank = canonical_order(builder.build(len(builder.colours))).rank
    ordered = sorted(task.properties, key=lambda name: rank[index[name]])
    width = len(str(len(ordered)))
    return CanonicalNames(
        {name: f"p{place:0{width}}" for place, name in enumerate(ordered, start=1)},
        tuple(sorted(different, key=lambda place: rank[record_vertex[place]])),
    )


def mechanism_structure(mechanism: Mechanism, *, with_functions: bool = True) -> Structure:
    """Return nodes, edges and, unless only the graph is requested, the terms and the frequency's base."""
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
