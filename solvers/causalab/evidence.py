"""Measurements as arrays: readings by crystal, and for each node the stretches over which its base did not change."""

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

# beyond it sums of doubles lose hundredths, so larger readings are left out of equations
MAX_EXACT_READING = 1e10


@dataclass(frozen=True, slots=True)
class Observation:
    """One reading: the values of the nodes of a crystal.

    crystal: crystals count from 0: records, static trace, and last the manipulator crystal
    changed: the property that was set since the crystal's reading before; None if none was
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

    observations: readings; those of a crystal in order of time
    reactor: the shown values of the reactor crystal, NaN where none is shown
    fresh: the crystals whose first reading shows bases that were drawn, not set: records and manipulator
    """

    task: Task
    observations: tuple[Observation, ...]
    fresh: frozenset[int]

    @property
    def nodes(self) -> tuple[str, ...]:
        return self.task.nodes

    @property
    def frequency(self) -> int:
        return len(self.task.properties)

    @cached_property
    def table(self) -> Floats:
        """Values of all readings; shape (readings, nodes)."""
        return np.array([observation.values for observation in self.observations], dtype=np.float64).reshape(
            -1, len(self.nodes)
        )

    @cached_property
    def reactor(self) -> Floats:
        """Shown values of the reactor crystal, NaN elsewhere; shape (nodes,)."""
        return np.array([self.task.reactor.get(node, np.nan) for node in self.nodes])

    def stretches(self, node: int) -> list[list[int]]:
        """Return groups of readings (indices) with a constant base of the node; one group for the frequency."""
        if node == self.frequency:
            return [list(range(len(self.observations)))]
        pairs: list[list[int]] = []
        last: dict[int, list[int]] = {}
        for i, observation in enumerate(self.observations):
            # a setting changes the base of its own property alone: every other stretch of the crystal goes on
            if observation.crystal not in last or observation.changed == node:
                last[observation.crystal] = []
                pairs.append(last[observation.crystal])
            last[observation.crystal].append(i)
        return pairs

    def differences(self, node: int) -> Floats:
        """Return each reading minus the one before it in the same stretch, both exact; shape (equations, nodes)."""
        pairs = [pair for stretch in self.stretches(node) for pair in pairwise(stretch)]
        if not pairs:
            return np.empty((0, len(self.nodes)))
        before, after = np.array(pairs).T
        exact = np.all(np.abs(self.table) <= MAX_EXACT_READING, axis=1)
        usable = exact[before] & exact[after]
        return np.asarray(self.table[after[usable]] - self.table[before[usable]])

    @property
    def step(self) -> Floats:
        """Last reading minus the one before it; shape (1, nodes), or (0, nodes) where one of them is not exact."""
        last = self.table[-2:]
        return np.diff(last, axis=0) if np.abs(last).max() <= MAX_EXACT_READING else np.empty((0, len(self.nodes)))

    def after(self, changed: str, setting: float, reading: Values) -> Evidence:
        """Return the evidence with one more reading of the manipulator crystal."""
        node = self.task.properties.index(changed) if changed in self.task.properties else None
        observation = Observation(_row(self.nodes, reading), self.manipulator, node, setting, self.task.noise)
        return replace(self, observations=(*self.observations, observation))

    @property
    def manipulator(self) -> int:
        return max(observation.crystal for observation in self.observations)


def evidence_of(task: Task, steps: Iterable[LabStep] = ()) -> Evidence:
    """Collect the readings of a task and of the steps since. Answers of the reactor are left out."""
    listed = [Observation(_row(task.nodes, record), i) for i, record in enumerate(task.records)]
    listed += _trace(task, len(listed))
    crystal = max((s.crystal for s in listed), default=-1) + 1
    listed.append(Observation(_row(task.nodes, task.baseline), crystal))
    evidence = Evidence(task, tuple(listed), frozenset({*range(len(task.records)), crystal}))
    for step in steps:
        if "set" in step.action and step.reading is not None:
            evidence = evidence.after(str(step.action["set"]), float(step.action["value"]), step.reading)
    return evidence


def _trace(task: Task, first: int) -> list[Observation]:
    """Convert the static trace: entries without a setting are crystals of their own; settings continue entry 0."""
    trace: list[Observation] = []
    crystals = 0
    for entry in task.trace:
        row = _row(task.nodes, entry.values)
        if entry.property is None:
            trace.append(Observation(row, first + crystals))
            crystals += 1
        else:
            trace.append(Observation(row, first, task.properties.index(entry.property), entry.value or 0.0))
    return trace


def _row(nodes: Sequence[str], reading: Mapping[str, float]) -> tuple[float, ...]:
    return tuple(float(reading[node]) for node in nodes)
