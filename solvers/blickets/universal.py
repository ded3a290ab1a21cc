"""Mixture of all families with equal priors: one rule, a silent switch, an order, an unreliable detector.

Within a family the prior is uniform over members; for orders over sets, then over the orders of a set. The answer is
the rule in force now; for an order the conjunction of its blickets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import TypeAlias

import numpy as np

from calibrant.dsl.blickets.item import Count, OrderReading
from calibrant.dsl.blickets.rule import Rule, all_rules, set_of
from calibrant.solvers.blickets.geometry import Sequences, sequences
from calibrant.solvers.blickets.noise import RELIABILITIES, NoiseSpace
from calibrant.solvers.blickets.order import MAX_CONTROLLED, OrderSpace
from calibrant.solvers.blickets.static import StaticSpace, activation_matrix
from calibrant.solvers.blickets.switch import Switching, SwitchSpace
from calibrant.solvers.blickets.weights import Weights, as_weights, information
from calibrant.solvers.space import space_repr


class Family(StrEnum):
    """Families, in the order of listings."""

    STATIC = "static"
    SWITCH = "switch"
    ORDER = "order"
    NOISE = "noise"


Member: TypeAlias = tuple[Family, Rule | Switching | tuple[int, ...] | tuple[Rule, float]]


@dataclass(frozen=True, slots=True)
class UniversalSpace:
    """Four spaces after the same readings."""

    static: StaticSpace
    switch: SwitchSpace
    order: OrderSpace
    noise: NoiseSpace

    @staticmethod
    def full(
        n: int, count_by: Count = Count.LEVEL, order_reading: OrderReading = OrderReading.RELATIVE
    ) -> UniversalSpace:
        """Return the space before any reading."""
        return UniversalSpace(
            StaticSpace.full(n), SwitchSpace.full(n, count_by), OrderSpace.full(n, order_reading), NoiseSpace.full(n)
        )

    @property
    def n(self) -> int:
        return self.static.n

    __repr__ = space_repr

    @property
    def in_words(self) -> str:
        return "; or ".join((self.static.in_words, self.switch.in_words, self.order.in_words, self.noise.in_words))

    @property
    def geometry(self) -> Sequences:
        return self.order.geometry

    @property
    def counts(self) -> Mapping[Family, int]:
        """Number of members by family."""
        return {
            Family.STATIC: self.static.count,
            Family.SWITCH: self.switch.count,
            Family.ORDER: self.order.count,
            Family.NOISE: self.noise.count,
        }

    @property
    def count(self) -> int:
        return sum(self.counts.values())

    def fits(self, member: Member) -> bool:
        match member:
            case (Family.STATIC, Rule() as rule):
                return self.static.fits(rule)
            case (Family.SWITCH, Switching() as switching):
                return self.switch.fits(switching)
            case (Family.NOISE, (Rule() as rule, float(p))):
                return self.noise.fits((rule, p))
            case (Family.ORDER, tuple(order)):
                return any(order == member_order for member_order in self.order.members())
        return False

    def sample(self, rng: np.random.Generator, n: int) -> Sequence[Member]:
        numbers = np.array(list(self.counts.values()), np.float64)
        if not numbers.any():
            raise ValueError("the space is empty")
        members: list[Member] = []
        for k in rng.choice(len(numbers), size=n, p=numbers / numbers.sum()):
            family = list(Family)[k]
            space = {
                Family.STATIC: self.static,
                Family.SWITCH: self.switch,
                Family.ORDER: self.order,
                Family.NOISE: self.noise,
            }[family]
            members.append((family, space.sample(rng, 1)[0]))  # type: ignore[attr-defined]
        return members

    def after(self, experiment: tuple[int, ...], reading: str) -> UniversalSpace:
        return UniversalSpace(
            self.static.after(experiment, reading),
            self.switch.after(experiment, reading),
            self.order.after(experiment, reading),
            self.noise.after(experiment, reading),
        )

    def outcomes(self, experiment: tuple[int, ...]) -> Mapping[str, int]:
        answer_counts: Counter[str] = Counter()
        for space in (self.static, self.switch, self.order, self.noise):
            answer_counts.update(space.outcomes(experiment))
        return dict(answer_counts)

    def verdicts(self) -> Mapping[Rule, int]:
        rule_counts: Counter[Rule] = Counter()
        for space in (self.static, self.switch, self.order, self.noise):
            rule_counts.update(space.verdicts())
        return {rule: rule_counts[rule] for rule in all_rules(self.n) if rule_counts[rule]}

    def posterior(self) -> Mapping[Rule, float]:
        weights = self._masses().sum(axis=0)
        total = weights.sum()
        return {rule: float(weights[k] / total) for k, rule in enumerate(all_rules(self.n)) if weights[k] > 0}

    def information(self) -> Weights:
        masses = self._masses()
        static, switch, _, _ = masses
        # mass of each rule whose reading would be ACTIVE, by placement sequence; shape (rules, sequences)
        active = (static + switch)[:, None] * _by_sequence(self.n)
        active += self.order.activated_masses()
        active += (self.noise.heard_masses() * self._noise_scale())[:, None] * _by_sequence(self.n)
        return information(masses.sum(axis=0), active)

    def families(self) -> Mapping[Family, float]:
        """Return the probability of each remaining family; empty if the space is."""
        masses = self._masses().sum(axis=1)
        total = masses.sum()
        return {family: float(mass / total) for family, mass in zip(Family, masses, strict=True) if mass > 0}

    def _masses(self) -> Weights:
        """Return likelihood times prior within the family, by family (rows) and answer (columns)."""
        if self.n > MAX_CONTROLLED:
            raise ValueError(f"the mixture is weighed for at most {MAX_CONTROLLED} objects")
        size = len(all_rules(self.n))
        return np.array(
            [
                as_weights(self.static.bits, size) / size,
                # divided by the members before any reading: ordered pairs of different rules, times switch points
                self.switch.in_force() / (size * (size - 1) * len(self.switch.firsts)),
                self.order.masses(),
                self.noise.masses() * self._noise_scale(),
            ]
        )

    def _noise_scale(self) -> float:
        """Return the factor that makes noisy likelihoods comparable; any will do once no other family remains."""
        other_counts = self.static.count or self.switch.count or self.order.count
        prior = 1 / (len(all_rules(self.n)) * len(RELIABILITIES))
        return prior * float(np.exp(self.noise.log_scale)) if other_counts else prior


@cache
def _sets_of_sequences(n: int) -> list[int]:
    return [set_of(placed) for placed in sequences(n)]


@cache
def _by_sequence(n: int) -> Weights:
    """Return 1 where a placement sequence activates a rule, else 0; shape (rules, sequences)."""
    return activation_matrix(n)[:, _sets_of_sequences(n)]
