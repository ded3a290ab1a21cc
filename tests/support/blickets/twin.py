"""The twin of an episode: it knows the recorded steps only, and fails on any action that was not taken then."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from calibrant.dsl.episode import Action, Episode, Step


class Twin:
    """Behaves as an episode did, from its transcript alone."""

    def __init__(self, original: Episode[Any, Any], opening: int = 0) -> None:
        """Copy an episode.

        opening: steps that it had before the first action
        """
        self.task = original.task
        self._recorded = list(original.steps)
        self._allowance = original.left + sum(step.cost for step in self._recorded)
        self._next = opening
        self._ended = original.closed

    @property
    def steps(self) -> Sequence[Step[Any]]:
        return self._recorded[: self._next]

    @property
    def left(self) -> int:
        return self._allowance - sum(step.cost for step in self.steps)

    @property
    def closed(self) -> bool:
        return self._ended and self._next == len(self._recorded)

    def act(self, action: Action) -> Step[Any]:
        if self._next >= len(self._recorded) or dict(self._recorded[self._next].action) != dict(action):
            raise AssertionError(f"step {self._next}: {dict(action)} was not taken in the original")
        self._next += 1
        return self._recorded[self._next - 1]
