"""The space of detectors that switch several times, by activations or by moves, and may be unreliable as well.

A member is a chain of rules of which neighbours differ, the switch points between them, and a probability of being
heard. The readings say how far the count was before each, so for every choice of switch points each reading is about
one known place in the chain; sums over all chains go from place to place, each time without the rule that stays.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from random import Random
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from calibrant.dsl.blickets.item import Count, SwitchBy, Task
from calibrant.dsl.blickets.reference import ACTIVE, INACTIVE, is_active
from calibrant.dsl.blickets.rule import Rule, all_rules, set_of
from calibrant.solvers.blickets.geometry import Sets
from calibrant.solvers.blickets.learner import DELTA, Greedy
from calibrant.solvers.blickets.static import activation_matrix, rule_numbers
from calibrant.solvers.blickets.weights import Weights, information
from calibrant.solvers.space import space_repr


class Chain(NamedTuple):
    """A member: canonical rules, the switch points between them, the probability that a satisfied rule is heard."""

    rules: tuple[Rule, ...]
    points: tuple[int, ...]
    p: float


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ChainSpace:
    """Members that can give every reading, each equally likely beforehand.

    count_by, switch_by: what counts as an activation; whether switch points count those or moves
    points: all choices of switch points; levels: the probabilities of being heard
    logs: natural logarithm of the probability of the readings at a place in the chain under a rule, -inf if they
        cannot be; choices by places by levels by rules
    progress: activations, or moves, so far; active: whether the last reading was ACTIVE
    """

    n: int
    count_by: Count
    switch_by: SwitchBy
    points: tuple[tuple[int, ...], ...]
    levels: tuple[float, ...]
    logs: npt.NDArray[np.float64]
    progress: int = 0
    active: bool = False

    @staticmethod
    def full(
        n: int,
        switches: int,
        last: int,
        *,
        count_by: Count = Count.LEVEL,
        switch_by: SwitchBy = SwitchBy.ACTIVATIONS,
        levels: tuple[float, ...] = (1.0,),
    ) -> ChainSpace:
        """Before any reading. last: the greatest switch point"""
        points = tuple(combinations(range(1, last + 1), switches))
        logs = np.zeros((len(points), switches + 1, len(levels), len(all_rules(n))))
        return ChainSpace(n, count_by, switch_by, points, levels, logs)

    def __repr__(self) -> str:
        return space_repr(self)

    @property
    def in_words(self) -> str:
        last = self.points[-1][-1] if self.points else 0
        what = f"{self.switch_by} counted by {self.count_by}" if self.switch_by is SwitchBy.ACTIVATIONS else "moves"
        heard = "" if self.levels == (1.0,) else f", heard with probability {', '.join(map(str, self.levels))}"
        return (
            f"{self.logs.shape[1]} rules over {self.n} objects one after the other, conjunctive or disjunctive, each "
            f"different from the one before it, switching after 1 to {last} {what}{heard}"
        )

    @property
    def geometry(self) -> Sets:
        return Sets(self.n)

    # --- counts -------------------------------------------------------------------------------------------------------

    @property
    def count(self) -> int:
        return int(self._through(self._possible()).sum())

    def _possible(self) -> npt.NDArray[np.float64]:
        """1 where the readings at a place can be; sums of it are whole numbers below 2^53."""
        return np.isfinite(self.logs).astype(np.float64)

    def _through(self, places: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Choices by levels by rules: the weight of all chains that have this rule where the count is now."""
        now = self._now()
        before = after = np.ones_like(places[:, 0])
        forward, backward = [], []
        for place in range(places.shape[1]):
            forward.append(places[:, place] * before)
            before = _others(forward[-1])
        for place in reversed(range(places.shape[1])):
            backward.append(after)
            after = _others(places[:, place] * after)
        choices = np.arange(len(self.points))
        products: npt.NDArray[np.float64] = (
            np.stack(forward, 1)[choices, now] * np.stack(backward[::-1], 1)[choices, now]
        )
        return products

    def _now(self) -> npt.NDArray[np.intp]:
        """For each choice of switch points the place in the chain that the next reading is about."""
        return np.array([bisect_right(points, self.progress) for points in self.points], np.intp)

    def fits(self, member: Chain) -> bool:
        rules = [rule.canonical for rule in member.rules]
        representable = member.points in self.points and member.p in self.levels and len(rules) == self.logs.shape[1]
        if not representable or any(rule == following_rule for rule, following_rule in pairwise(rules)):
            return False
        numbers = [rule_numbers(self.n)[rule] for rule in rules]
        at = self.logs[self.points.index(member.points), :, self.levels.index(member.p)]
        return bool(np.isfinite(at[range(len(numbers)), numbers]).all())

    def sample(self, rng: np.random.Generator, n: int) -> Sequence[Chain]:
        possible = self._possible()
        behind = [np.ones_like(possible[:, 0])]
        for place in range(possible.shape[1] - 1, 0, -1):
            behind.append(_others(possible[:, place] * behind[-1]))
        totals = (possible[:, 0] * behind[-1]).sum(axis=2)
        if not totals.any():
            raise ValueError("the space is empty")
        members = []
        for flat in rng.choice(totals.size, size=n, p=(totals / totals.sum()).ravel()):
            choice, level = divmod(int(flat), len(self.levels))
            numbers: list[int] = []
            for place in range(possible.shape[1]):
                weights = possible[choice, place, level] * behind[-1 - place][choice, level]
                weights[numbers[-1:]] = 0  # neighbours differ
                numbers.append(int(rng.choice(len(weights), p=weights / weights.sum())))
            rules = tuple(all_rules(self.n)[number] for number in numbers)
            members.append(Chain(rules, self.points[choice], self.levels[level]))
        return members

    # --- readings -----------------------------------------------------------------------------------------------------

    def after(self, experiment: tuple[int, ...], reading: str) -> ChainSpace:
        """Moves are told by `spent`, also the one that was read."""
        active = is_active(reading)
        satisfied = activation_matrix(self.n)[:, set_of(experiment)] > 0
        levels = np.array(self.levels)[:, None]
        with np.errstate(divide="ignore"):
            heard, unheard = np.log(levels), np.log1p(-levels)
        log_likelihoods = np.where(satisfied, heard, -np.inf) if active else np.where(satisfied, unheard, 0.0)
        logs = self.logs.copy()
        logs[np.arange(len(self.points)), self._now()] += log_likelihoods
        counts = active and (self.count_by is Count.LEVEL or not self.active)
        progress = self.progress + (counts and self.switch_by is SwitchBy.ACTIVATIONS)
        return replace(self, logs=logs, progress=progress, active=active)

    def spent(self, moves: int) -> ChainSpace:
        """After moves were made, refused ones included."""
        return replace(self, progress=self.progress + moves) if self.switch_by is SwitchBy.STEPS else self

    def outcomes(self, experiment: tuple[int, ...]) -> Mapping[str, int]:
        """Return how many members can give each reading. With noise both may be possible: counts overlap."""
        counts = {reading: self.after(experiment, reading).count for reading in (ACTIVE, INACTIVE)}
        return {reading: k for reading, k in counts.items() if k}

    def verdicts(self) -> Mapping[Rule, int]:
        """Members by the rule that is in force now."""
        found = self._through(self._possible()).sum(axis=(0, 1))
        return {rule: int(found[k]) for k, rule in enumerate(all_rules(self.n)) if found[k]}

    # --- probabilities ------------------------------------------------------------------------------------------------

    def _masses(self) -> Weights:
        """Levels by rules: the probability of level and rule in force, times a constant."""
        if not self.points:
            return np.zeros(self.logs.shape[2:])
        best = self.logs.max(axis=3, keepdims=True)  # what is divided by, place for place, so that nothing is lost
        scale = best.sum(axis=(1, 3))
        if not np.isfinite(scale).any():
            return np.zeros(self.logs.shape[2:])
        through = self._through(np.exp(self.logs - np.where(np.isfinite(best), best, 0.0)))
        masses: Weights = (through * np.exp(scale - scale.max())[:, :, None]).sum(axis=0)
        return masses

    def posterior(self) -> Mapping[Rule, float]:
        masses = self._masses().sum(axis=0)
        total = masses.sum()
        return {rule: float(masses[k] / total) for k, rule in enumerate(all_rules(self.n)) if masses[k] > 0}

    def information(self) -> Weights:
        """About the rule that is in force when the reading is taken."""
        masses = self._masses()
        heard = (masses * np.array(self.levels)[:, None]).sum(axis=0)
        return information(masses.sum(axis=0), heard[:, None] * activation_matrix(self.n))


class ChainLearner(Greedy):
    """Greedy control over chains, also where switch points count moves."""

    def __init__(self, task: Task, space: ChainSpace, delta: float = DELTA, ties: Random | None = None) -> None:
        super().__init__(task, space, delta, ties)

    def spend(self, moves: int) -> None:
        assert isinstance(self.space, ChainSpace)
        self.space = self.space.spent(moves)


def _others(weights: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """For each rule the sum over all other rules."""
    found: npt.NDArray[np.float64] = np.maximum(0.0, weights.sum(axis=-1, keepdims=True) - weights)
    return found
