"""Version space of detectors that switch once, silently: first rule, second rule, switch point.

Given the readings, the number of activations before each is known; so for each switch point N the readings at fewer
than N activations constrain the first rule alone and the others the second alone, and the members are
sum over N of |R1(N)| |R2(N)| - |R1(N) and R2(N)|, since the rules differ.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from calibrant.dsl.blickets.item import Count
from calibrant.dsl.blickets.reference import ACTIVE, INACTIVE, is_active
from calibrant.dsl.blickets.rule import Rule, all_rules, set_of
from calibrant.solvers.blickets.geometry import Sets
from calibrant.solvers.blickets.static import activated_rules, activation_matrix, rule_numbers, rules_of_bits
from calibrant.solvers.blickets.weights import Weights, as_weights, binary_entropy
from calibrant.solvers.space import space_repr

MAX_SWITCH = 12


class Switching(NamedTuple):
    """Member: canonical rules, and the number of activations after which the second is in force."""

    first: Rule
    second: Rule
    switch: int


@dataclass(frozen=True, slots=True)
class SwitchSpace:
    """Members that give every reading.

    count_by: what counts as an activation
    firsts, seconds: the remaining rules, as bit sets, for each switch point 1, 2, ...
    activations: so far
    active: whether the last reading was ACTIVE
    """

    n: int
    count_by: Count
    firsts: tuple[int, ...]
    seconds: tuple[int, ...]
    activations: int = 0
    active: bool = False

    @staticmethod
    def full(n: int, count_by: Count = Count.LEVEL, max_switch: int = MAX_SWITCH) -> SwitchSpace:
        """Return the space before any reading."""
        everything = (1 << len(all_rules(n))) - 1
        return SwitchSpace(n, count_by, (everything,) * max_switch, (everything,) * max_switch)

    __repr__ = space_repr

    @property
    def in_words(self) -> str:
        return (
            f"two different rules over {self.n} objects, conjunctive or disjunctive, the second in force after 1 to "
            f"{len(self.firsts)} activations counted by {self.count_by}"
        )

    @property
    def geometry(self) -> Sets:
        return Sets(self.n)

    @property
    def count(self) -> int:
        return sum(self._pairs(k) for k in range(len(self.firsts)))

    def _pairs(self, k: int) -> int:
        first, second = self.firsts[k], self.seconds[k]
        return first.bit_count() * second.bit_count() - (first & second).bit_count()

    def fits(self, member: Switching) -> bool:
        if not 1 <= member.switch <= len(self.firsts) or member.first.canonical == member.second.canonical:
            return False
        number = rule_numbers(self.n)
        first, second = self.firsts[member.switch - 1], self.seconds[member.switch - 1]
        return first >> number[member.first.canonical] & second >> number[member.second.canonical] & 1 == 1

    def sample(self, rng: np.random.Generator, n: int) -> Sequence[Switching]:
        pairs = np.array([self._pairs(k) for k in range(len(self.firsts))], np.float64)
        if not pairs.any():
            raise ValueError("the space is empty")
        members = []
        for k in rng.choice(len(pairs), size=n, p=pairs / pairs.sum()):
            firsts, seconds = rules_of_bits(self.firsts[k], self.n), rules_of_bits(self.seconds[k], self.n)
            while True:  # rejection of equal rules: each first rule has at most one such second rule
                first, second = firsts[rng.integers(len(firsts))], seconds[rng.integers(len(seconds))]
                if first != second:
                    break
            members.append(Switching(first, second, int(k) + 1))
        return members

    def after(self, experiment: tuple[int, ...], reading: str) -> SwitchSpace:
        active = is_active(reading)
        fitting = activated_rules(self.n)[set_of(experiment)]
        if not active:
            fitting = ~fitting
        # a reading before any activation concerns the first rule at every switch point (all are 1 or more)
        done = min(self.activations, len(self.firsts))  # switch points up to here have been reached
        counts = active and (self.count_by is Count.LEVEL or not self.active)
        return replace(
            self,
            firsts=self.firsts[:done] + tuple(bits & fitting for bits in self.firsts[done:]),
            seconds=tuple(bits & fitting for bits in self.seconds[:done]) + self.seconds[done:],
            activations=self.activations + counts,
            active=active,
        )

    def outcomes(self, experiment: tuple[int, ...]) -> Mapping[str, int]:
        active = self.after(experiment, ACTIVE).count
        return {reading: k for reading, k in ((ACTIVE, active), (INACTIVE, self.count - active)) if k}

    def verdicts(self) -> Mapping[Rule, int]:
        """Count the members by the rule in force now."""
        rules = all_rules(self.n)
        return {rules[k]: int(weight) for k, weight in enumerate(self.in_force()) if weight}

    def in_force(self) -> Weights:
        """Count the members by the index of the rule in force; integers far below 2**53, hence exact."""
        size = len(all_rules(self.n))
        total = np.zeros(size)
        for k, (first, second) in enumerate(zip(self.firsts, self.seconds, strict=True)):
            current, inactive = (second, first) if k < self.activations else (first, second)
            if current and inactive:
                # partners of a rule: all of the other set but the rule itself, since both differ
                members = as_weights(current, size)
                total += members * (inactive.bit_count() - as_weights(inactive, size))
        return total

    def posterior(self) -> Mapping[Rule, float]:
        total = self.count
        return {rule: weight / total for rule, weight in self.verdicts().items()}

    def information(self) -> Weights:
        """Return the expected information about the rule in force at the reading, which determines it."""
        weights = self.in_force()
        return binary_entropy(weights @ activation_matrix(self.n) / max(1.0, weights.sum()))

    def still_to_come(self) -> float:
        """Return the probability that the switch has not happened yet; `ValueError` if the space is empty."""
        total = self.count
        if not total:
            raise ValueError("the space is empty")
        return 1 - sum(self._pairs(k) for k in range(min(self.activations, len(self.firsts)))) / total
