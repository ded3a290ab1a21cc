"""Items of CausaLab, and copies of them under other names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from calibrant.dsl.causalab.mechanism import FREQUENCY, TRIES, Equation, Mechanism, Noise, Values
from calibrant.dsl.causalab.reference import SettingMeaning, values
from calibrant.dsl.errors import in_one_line
from calibrant.dsl.pictures import Picture, Pictured, table_picture
from calibrant.dsl.text import Wording, plural

# --- Items of CausaLab: the shown task, the sealed part, and the task computed from it --------------------------------
BENCHMARK: Final = "causalab"


class Family(StrEnum):
    """Shape of the equations."""

    LINEAR = "linear"
    QUADRATIC = "quadratic"


class Weights(StrEnum):
    """Class of the weights of a linear mechanism, which solvers assume and prompts do not state."""

    SMALL = "small"  # 1, 2, 3 (released)
    HUNDREDTHS = "hundredths"  # multiples of 0.01 in (0, 3]


@dataclass(frozen=True, slots=True)
class Traced:
    """One entry of a static trace: values of all nodes, and the setting that led to them.

    property: what was set to get here from the entry before; None for a crystal as it is. The first setting starts
        from entry 0, whatever stands between them.
    """

    values: Values
    property: str | None = None
    value: float | None = None


@dataclass(frozen=True, slots=True)
class Task:
    """All that a solver may read.

    properties: sorted names; settable: those that may be set
    freq_parent: whether the frequency may be a parent
    noise: whether settings are noisy
    records, trace: measurements of earlier crystals, free of noise; a setting of a trace has SettingMeaning.VALUE
    baseline: the manipulator crystal's values, the frequency among them
    reactor: values of the reactor crystal's shown properties
    allowance: maximal number of settings; tries: maximal number of tries of the reactor; wording: of the prompt
    """

    family: Family
    weights: Weights
    properties: tuple[str, ...]
    settable: tuple[str, ...]
    freq_parent: bool
    noise: bool
    records: tuple[Values, ...]
    trace: tuple[Traced, ...]
    baseline: Values
    reactor: Values
    allowance: int
    tries: int
    reading: SettingMeaning
    wording: Wording = "standard"

    @property
    def nodes(self) -> tuple[str, ...]:
        """The properties and, last, the frequency."""
        return (*self.properties, FREQUENCY)

    def __repr__(self) -> str:
        return f"<Task: {self.family}, {len(self.properties)} properties, {self.allowance} settings>"


@dataclass(frozen=True, slots=True)
class Bases:
    """Bases of the crystals: for each crystal its exogenous values by property."""

    records: tuple[Values, ...]
    manipulator: Values
    reactor: Values


@dataclass(frozen=True, slots=True)
class Sealed:
    """The part of an item that only the evaluator reads; target: the reactor crystal's frequency."""

    mechanism: Mechanism
    bases: Bases
    noise: Noise | None
    target: float
    labels: Mapping[str, float] = field(default_factory=dict)

    def __repr__(self) -> str:
        return "<Sealed: mechanism, bases and target>"


@dataclass(frozen=True, slots=True)
class LabItem(Pictured):
    """One laboratory; suite and line: file and line number (from 0) of a released config, or suite and index."""

    id: str
    suite: str
    line: int
    task: Task
    sealed: Sealed

    def picture(self) -> Picture:
        """Return the crystals that a solver may read."""
        task = self.task
        crystals = [*((f"record {k}", record) for k, record in enumerate(task.records, 1))]
        crystals += [("manipulator", task.baseline), ("reactor", task.reactor)]
        values = {node: [crystal.get(node) for _, crystal in crystals] for node in task.nodes}
        facts = (plural(task.allowance, "settings"), f"set: {', '.join(task.settable)}", task.family)
        columns: dict[str, Sequence[object]] = {"crystal": [name for name, _ in crystals], **values}
        return table_picture(f"{self.id}: {len(task.nodes)} nodes", columns, facts=facts)

    def __repr__(self) -> str:
        size = f"{len(self.task.properties)} properties, {self.task.allowance} settings"
        return f"<LabItem {in_one_line(self.id)[:60]}: {self.task.family}, {size}>"

    @property
    def benchmark(self) -> str:
        return BENCHMARK

    @property
    def setting(self) -> str:
        return self.suite

    @property
    def stratum(self) -> str:
        return f"{len(self.task.nodes)} nodes"


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of an item that its mechanism and crystals do not determine.

    shown: shown properties of the reactor crystal; settable: properties that may be set; None for all
    """

    family: Family
    allowance: int
    freq_parent: bool = False
    weights: Weights = Weights.SMALL
    tries: int = TRIES
    reading: SettingMeaning = SettingMeaning.VALUE
    trace: tuple[Traced, ...] = ()
    settable: tuple[str, ...] | None = None
    shown: tuple[str, ...] | None = None
    wording: Wording = "standard"


@dataclass(frozen=True, slots=True)
class Name:
    """The name of an item: its id and its position in the suite."""

    id: str
    suite: str
    line: int = 0


def lab_item(
    name: Name,
    terms: Terms,
    mechanism: Mechanism,
    bases: Bases,
    noise: Noise | None = None,
    labels: Mapping[str, float] | None = None,
) -> LabItem:
    """Return an item whose shown numbers are computed by dsl.causalab.reference."""
    properties = mechanism.properties
    reactor = values(mechanism, bases.reactor)
    task = Task(
        family=terms.family,
        weights=terms.weights,
        properties=properties,
        settable=properties if terms.settable is None else tuple(sorted(terms.settable)),
        freq_parent=terms.freq_parent,
        noise=noise is not None,
        records=tuple(by_name(values(mechanism, record)) for record in bases.records),
        trace=tuple(map(_without_negative_zeros, terms.trace)),
        baseline=by_name(values(mechanism, bases.manipulator)),
        reactor={node: reactor[node] for node in (properties if terms.shown is None else sorted(terms.shown))},
        allowance=terms.allowance,
        tries=terms.tries,
        reading=terms.reading,
        wording=terms.wording,
    )
    sealed = Sealed(mechanism, bases, noise, reactor[FREQUENCY], {} if labels is None else labels)
    return LabItem(name.id, name.suite, name.line, task, sealed)


def _without_negative_zeros(entry: Traced) -> Traced:
    """Return an entry of a static trace with 0.0 for -0.0, which files may have."""
    value = abs(entry.value) if entry.value == 0 else entry.value
    return Traced({node: number or abs(number) for node, number in entry.values.items()}, entry.property, value)


def by_name(node_values: Values) -> dict[str, float]:
    """Return the values sorted by node; the computed, topological order would reveal edges."""
    return {node: node_values[node] for node in sorted(node_values)}


# --- Laboratories with renamed properties and reordered records: the same mechanism and readings ----------------------


def rename_item(item: LabItem, names: Mapping[str, str], records: Sequence[int]) -> LabItem:
    """Return an item with properties renamed and records in the given order; its id does not change.

    Equations and noisy nodes keep their order, in which draws are assigned to them.
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
            tuple(_renamed(bases.records[index], names) for index in records),
            _renamed(bases.manipulator, names),
            _renamed(bases.reactor, names),
        ),
        sealed.noise and replace(sealed.noise, affected=tuple(names[node] for node in sealed.noise.affected)),
        sealed.target,
        sealed.labels,
    )
    return replace(item, task=rename_task(item.task, names, records), sealed=renamed)


def rename_task(task: Task, names: Mapping[str, str], records: Sequence[int]) -> Task:
    """Return a task with properties renamed and records in the given order."""
    return replace(
        task,
        properties=tuple(sorted(names[name] for name in task.properties)),
        settable=tuple(sorted(names[name] for name in task.settable)),
        records=tuple(by_name(_renamed(task.records[index], names)) for index in records),
        trace=tuple(
            Traced(_renamed(entry.values, names), entry.property and names[entry.property], entry.value)
            for entry in task.trace
        ),
        baseline=by_name(_renamed(task.baseline, names)),
        reactor=by_name(_renamed(task.reactor, names)),
    )


def _renamed(node_values: Values, names: Mapping[str, str]) -> dict[str, float]:
    return {names[node]: value for node, value in node_values.items()}
