"""Laboratories with other names of properties and records in another order: the same mechanism and readings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from calibrant.dsl.causalab.item import Bases, LabItem, Sealed, Task, Traced, by_name
from calibrant.dsl.causalab.mechanism import FREQUENCY, Equation, Mechanism, Values


def rename_item(item: LabItem, names: Mapping[str, str], records: Sequence[int]) -> LabItem:
    """Return an item over other names of properties, its records in this order; its id stays.

    Equations and noisy nodes keep their order: draws are assigned in it.
    """
    names = {**names, FREQUENCY: FREQUENCY}
    sealed = item.sealed
    equations = {
        names[node]: Equation(tuple(term._replace(parent=names[term.parent]) for term in equation.terms), equation.base)
        for node, equation in sealed.mechanism.equations.items()
    }
    bases = sealed.bases
    renamed = Sealed(
        Mechanism(equations),
        Bases(
            tuple(_renamed(bases.records[place], names) for place in records),
            _renamed(bases.manipulator, names),
            _renamed(bases.reactor, names),
        ),
        sealed.noise and replace(sealed.noise, affected=tuple(names[node] for node in sealed.noise.affected)),
        sealed.target,
        sealed.labels,
    )
    return replace(item, task=rename_task(item.task, names, records), sealed=renamed)


def rename_task(task: Task, names: Mapping[str, str], records: Sequence[int]) -> Task:
    """Return a task over other names of its nodes, its records in this order."""
    return replace(
        task,
        properties=tuple(sorted(names[name] for name in task.properties)),
        settable=tuple(sorted(names[name] for name in task.settable)),
        records=tuple(by_name(_renamed(task.records[place], names)) for place in records),
        trace=tuple(
            Traced(_renamed(entry.values, names), entry.property and names[entry.property], entry.value)
            for entry in task.trace
        ),
        baseline=by_name(_renamed(task.baseline, names)),
        reactor=by_name(_renamed(task.reactor, names)),
    )


def _renamed(node_values: Values, names: Mapping[str, str]) -> dict[str, float]:
    return {names[node]: value for node, value in node_values.items()}
