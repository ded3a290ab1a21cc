"""The twin of a laboratory episode: it knows the recorded steps and nothing else."""

from __future__ import annotations

from collections.abc import Sequence

from calibrant.dsl.causalab.episode import LabEpisode, LabStep
from calibrant.dsl.causalab.item import Task
from calibrant.dsl.episode import Action


class TwinEpisode(LabEpisode):
    """Answers exactly the recorded actions, in order; fails on any other. What is sealed is not there to be read."""

    def __init__(self, task: Task, recorded: Sequence[LabStep], left: int) -> None:
        self._task = task
        self._recorded = list(recorded)
        self._steps: list[LabStep] = []
        self._start = left
        self._closed = False

    @property
    def left(self) -> int:
        return 0 if self._closed else self._start - sum(step.cost for step in self._steps)

    def act(self, action: Action) -> LabStep:
        step = self._recorded[len(self._steps)]
        assert dict(step.action) == dict(action)
        self._steps.append(step)
        self._closed = "submit" in action
        return step
