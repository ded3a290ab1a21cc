"""Structure of a detector, whose canonical form is equal under all names and orders of its objects."""

from __future__ import annotations

from calibrant.dsl.blickets.item import Mechanism
from calibrant.solvers.canonical import Structure, StructureBuilder, word


def rules_structure(mechanisms: tuple[Mechanism, ...], num_objects: int, *, with_functions: bool = True) -> Structure:
    """Return a structure of the objects and, for each rule in turn, its blickets and their order.

    with_functions: whether the form of each rule, conjunctive or disjunctive, is part of the structure
    """
    builder = StructureBuilder()
    for _ in range(num_objects):
        builder.vertex("object")
    for index, mechanism in enumerate(mechanisms):
        rule = mechanism.rule.canonical
        vertex = builder.vertex("rule", index, str(rule.form) if with_functions else "")
        order = mechanism.order or ()
        for blicket in range(num_objects):
            if rule.blickets >> blicket & 1:
                position = order.index(blicket) if blicket in order else -1
                builder.edge(blicket, vertex, word("blicket", position))
    return builder.build(num_objects)
