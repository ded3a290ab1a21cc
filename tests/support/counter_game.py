"""A tiny interactive item for tests of what is common: guess a number by asking whether it is at least x."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from calibrant.dsl.episode import Action, ActionError, Step, verb_of

VERBS: Mapping[str, frozenset[str]] = {"ask": frozenset(), "submit": frozenset()}


@dataclass
class NumberGame:
    """{"ask": x} reads whether the number is at least x and costs 1; malformed actions are refused and cost 1."""

    number: int
    allowance: int
    steps: list[Step[bool]] = field(default_factory=list)
    closed: bool = False

    @property
    def task(self) -> str:
        return "guess"

    @property
    def left(self) -> int:
        return self.allowance - sum(step.cost for step in self.steps)

    def act(self, action: Action) -> Step[bool]:
        self.steps.append(self._answered(action))
        return self.steps[-1]

    def _answered(self, action: Action) -> Step[bool]:
        try:
            verb = verb_of(action, VERBS)
        except ActionError as error:
            return Step(action, None, str(error), 1)
        if verb == "submit":
            self.closed = True
            return Step(action, None)
        return Step(action, self.number >= action["ask"], "", 1)


@dataclass(frozen=True)
class Numbers:
    """The numbers from low to high."""

    low: int
    high: int

    @property
    def in_words(self) -> str:
        return "the numbers"

    @property
    def count(self) -> int:
        return max(0, self.high - self.low + 1)

    def fits(self, member: int) -> bool:
        return self.low <= member <= self.high

    def sample(self, rng: np.random.Generator, n: int) -> Sequence[int]:
        return [int(x) for x in rng.integers(self.low, self.high + 1, size=n)]

    def after(self, experiment: int, reading: bool) -> Numbers:
        if reading:
            return Numbers(max(self.low, experiment), self.high)
        return Numbers(self.low, min(self.high, experiment - 1))

    def outcomes(self, experiment: int) -> Mapping[bool, int]:
        return Counter(number >= experiment for number in range(self.low, self.high + 1))

    def verdicts(self) -> Mapping[int, int]:
        return dict.fromkeys(range(self.low, self.high + 1), 1)
