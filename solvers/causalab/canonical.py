"""Canonical names of a laboratory's properties and order of its records, from what a solver may read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from calibrant.dsl.causalab.item import Task
from calibrant.dsl.causalab.mechanism import FREQUENCY, Values
from calibrant.solvers.canonical import StructureBuilder, canonical_order, word


@dataclass(frozen=True)
class CanonicalNames:
    """Names and order that do not depend on the task's.

    names: property -> canonical name, which sort as they count
    records: indices in canonical order, of equal records the first
    is_symmetric: whether some properties or records are alike
    """

    names: Mapping[str, str]
    records: tuple[int, ...]
    is_symmetric: bool


def canonical_names(task: Task) -> CanonicalNames:
    """Return canonical names: properties are told apart by their readings, records by what they hold."""
    builder = StructureBuilder()
    index = {name: builder.vertex("property", name in task.settable) for name in task.properties}
    first = len(builder.colours)

    def add(values: Values, *colour: object) -> None:
        vertex = builder.vertex(*colour, values.get(FREQUENCY))
        for node, value in values.items():
            if node != FREQUENCY:
                builder.edge(vertex, index[node], word(value))

    different = [place for place, record in enumerate(task.records) if record not in task.records[:place]]
    for place in different:
        add(task.records[place], "record")
    for place, entry in enumerate(task.trace):
        add(entry.values, "trace", place, entry.value)
        if entry.property is not None:
            builder.edge(first + len(different) + place, index[entry.property], word("set"))
    add(task.baseline, "baseline")
    add(task.reactor, "reactor")
    result = canonical_order(builder.build(len(builder.colours)))
    rank = {vertex: place for place, vertex in enumerate(result.order)}
    ordered = sorted(task.properties, key=lambda name: rank[index[name]])
    width = len(str(len(ordered)))
    return CanonicalNames(
        {name: f"p{place:0{width}}" for place, name in enumerate(ordered, start=1)},
        tuple(sorted(different, key=lambda place: rank[first + different.index(place)])),
        bool(result.automorphisms),
    )
