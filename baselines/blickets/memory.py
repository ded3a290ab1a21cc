"""Memory of an episode, from its steps: the objects on the detector, and the reading of each configuration."""

from __future__ import annotations

from typing import NamedTuple

from calibrant.dsl.blickets.item import Count, Task
from calibrant.dsl.blickets.reference import is_active
from calibrant.dsl.blickets.rule import names_of, set_of
from calibrant.dsl.episode import Step


class Observation(NamedTuple):
    """One reading.

    placed: numbers of the objects on the detector, first placed first
    """

    placed: tuple[int, ...]
    active: bool

    @property
    def present(self) -> int:
        """Return the objects as a set: bit i is object i."""
        return set_of(self.placed)


class EpisodeMemory:
    """The readings of an episode so far, made from its steps alone.

    placed: numbers of the objects on the detector, first placed first
    moves: how many were made, refused ones included; activations: as the task counts them
    """

    __slots__ = ("_index", "activations", "moves", "observations", "placed", "task")

    def __init__(self, task: Task) -> None:
        self.task = task
        self.placed: tuple[int, ...] = ()
        self.observations: list[Observation] = []
        self.activations = 0
        self.moves = 0
        self._index = {name: i for i, name in enumerate(task.objects)}

    def note(self, step: Step[str]) -> None:
        """Take one more step down; steps come in the order in which they happened."""
        self.moves += step.cost
        if step.reading is None:
            return
        action = step.action
        if "place" in action:
            self.placed = (*self.placed, self._index[action["place"]])
        elif "remove" in action:
            removed = self._index[action["remove"]]
            self.placed = tuple(i for i in self.placed if i != removed)
        else:  # what lay there at the start
            self.placed = tuple(self._index[name] for name in action["start"])
        active = is_active(step.reading)
        was_active = bool(self.observations) and self.observations[-1].active
        self.activations += active and (self.task.count is Count.LEVEL or not was_active)
        self.observations.append(Observation(self.placed, active))

    @property
    def present(self) -> int:
        """The objects on the detector as a set: bit i is object i."""
        return set_of(self.placed)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the objects on the detector, first placed first."""
        return tuple(self.task.objects[i] for i in self.placed)

    def summary(self) -> str:
        """Return steps, activations and every different reading, in one line."""
        distinct = dict.fromkeys((names_of(o.present, self.task.objects), o.active) for o in self.observations)
        readings = "; ".join(
            f"{', '.join(names) or 'nothing'}: {'ACTIVE' if on else 'INACTIVE'}" for names, on in distinct
        )
        return f"{self.moves} moves, {self.activations} activations; readings: {readings or 'none'}"
