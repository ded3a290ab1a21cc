"""What was measured, as numbers: crystals, and for each node the stretches over which its base did not change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from calibrant.dsl.causalab.episode import LabStep
from calibrant.dsl.causalab.item import Task
from calibrant.dsl.causalab.mechanism import Values

Floats: TypeAlias = npt.NDArray[np.float64]

LARGEST = 1e10  # beyond that sums of floats do not keep hundredths; such readings are left out of equations


@dataclass(frozen=True, slots=True)
class Seen:
    """One reading: the values of the nodes of a crystal.

    crystal: crystals count from 0: records, static trace, and last the manipulator crystal
    changed: the property that was set on the way from the crystal's reading before; None if there was no setting of one
    setting: the value that it was set to
    noisy: whether hidden noise was on this reading
    """

    values: tuple[float, ...]
    crystal: int
    changed: int | None = None
    setting: float = 0.0
    noisy: bool = False


@dataclass(frozen=True)
class Evidence:
    """Readings in order; nodes are numbered: the properties, sorted, and last the frequency.

    seen: readings; those of a crystal in the order in which they were made
    reactor: the shown values of the reactor crystal, NaN where none is shown
    fresh: the crystals whose first reading shows bases that were drawn, not set: records and manipulator
    """

    task: Task
    seen: tuple[Seen, ...]
    fresh: frozenset[int]

    @property
    def nodes(self) -> tuple[str, ...]:
        return self.task.nodes

    @property
    def frequency(self) -> int:
        return len(self.task.properties)

    @cached_property
    def table(self) -> Floats:
        """(readings, nodes)"""
        return np.array([observation.values for observation in self.seen], dtype=np.float64).reshape(
            -1, len(self.nodes)
        )

    @cached_property
    def reactor(self) -> Floats:
        """(nodes,)"""
        return np.array([self.task.reactor.get(node, np.nan) for node in self.nodes])

    def stretches(self, node: int) -> list[list[int]]:
        """The readings over which the node's base is one number, as indices. For the frequency that is all of them."""
        if node == self.frequency:
            return [list(range(len(self.seen)))]
        pairs: list[list[int]] = []
        last: dict[int, list[int]] = {}
        for i, observation in enumerate(self.seen):
            if observation.crystal not in last or observation.changed == node:
                last[observation.crystal] = []
                pairs.append(last[observation.crystal])
            last[observation.crystal].append(i)
        return pairs

    def differences(self, node: int) -> Floats:
        """(equations, nodes): each reading minus the one before it in the same stretch, both within LARGEST."""
        pairs = [pair for stretch in self.stretches(node) for pair in pairwise(stretch)]
        if not pairs:
            return np.empty((0, len(self.nodes)))
        before, after = np.array(pairs).T
        exact = np.all(np.abs(self.table) <= LARGEST, axis=1)
        usable = exact[before] & exact[after]
        return np.asarray(self.table[after[usable]] - self.table[before[usable]])

    @property
    def step(self) -> Floats:
        """(1, nodes): the last reading minus the one before it; no row where one of them is beyond LARGEST."""
        last = self.table[-2:]
        return np.diff(last, axis=0) if np.abs(last).max() <= LARGEST else np.empty((0, len(self.nodes)))

    def after(self, changed: str, setting: float, reading: Values) -> Evidence:
        """With one more reading of the manipulator crystal."""
        node = self.task.properties.index(changed) if changed in self.task.properties else None
        observation = Seen(_row(self.nodes, reading), self.manipulator, node, setting, self.task.noise)
        return replace(self, seen=(*self.seen, observation))

    @property
    def manipulator(self) -> int:
        return max(observation.crystal for observation in self.seen)


def evidence_of(task: Task, steps: Iterable[LabStep] = ()) -> Evidence:
    """All that was shown at the start and read since. Answers of the reactor are left out."""
    observations = [Seen(_row(task.nodes, record), i) for i, record in enumerate(task.records)]
    observations += _trace(task, len(observations))
    crystal = max((s.crystal for s in observations), default=-1) + 1
    observations.append(Seen(_row(task.nodes, task.baseline), crystal))
    evidence = Evidence(task, tuple(observations), frozenset({*range(len(task.records)), crystal}))
    for step in steps:
        if "set" in step.action and step.reading is not None:
            evidence = evidence.after(str(step.action["set"]), float(step.action["value"]), step.reading)
    return evidence


def _trace(task: Task, first: int) -> list[Seen]:
    """Entries without a setting are crystals of their own; settings go on from entry 0."""
    trace: list[Seen] = []
    crystals = 0
    for entry in task.trace:
        row = _row(task.nodes, entry.values)
        if entry.property is None:
            trace.append(Seen(row, first + crystals))
            crystals += 1
        else:
            trace.append(Seen(row, first, task.properties.index(entry.property), entry.value or 0.0))
    return trace


def _row(nodes: Sequence[str], reading: Mapping[str, float]) -> tuple[float, ...]:
    return tuple(float(reading[node]) for node in nodes)
