"""Version space of detectors with one rule: a bit set over the distinct rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Self

import numpy as np

from calibrant.dsl.blickets.reference import ACTIVE, INACTIVE, is_active
from calibrant.dsl.blickets.rule import Rule, all_rules, set_of
from calibrant.solvers.blickets.geometry import Sets
from calibrant.solvers.blickets.weights import Weights, as_weights, binary_entropy
from calibrant.solvers.space import space_repr


@cache
def activated_rules(n: int) -> tuple[int, ...]:
    """Return the rules that each set of objects (an integer) activates; bit k stands for `all_rules(n)[k]`."""
    rules = all_rules(n)
    return tuple(sum(1 << k for k, rule in enumerate(rules) if rule.active(present)) for present in range(1 << n))


@cache
def activation_matrix(n: int) -> Weights:
    """Return the activations as a matrix of 0 and 1: rules by sets."""
    rules = all_rules(n)
    return np.array([[float(rule.active(present)) for present in range(1 << n)] for rule in rules])


@cache
def rule_numbers(n: int) -> Mapping[Rule, int]:
    """Return the index of each distinct rule in `all_rules(n)`."""
    return {rule: k for k, rule in enumerate(all_rules(n))}


def rules_of_bits(bits: int, n: int) -> list[Rule]:
    """List the rules of a bit set."""
    rules = all_rules(n)
    rules_of = []
    while bits:
        lowest = bits & -bits
        rules_of.append(rules[lowest.bit_length() - 1])
        bits ^= lowest
    return rules_of


@dataclass(frozen=True, slots=True, repr=False)
class OneRule:
    """Base of the spaces of detectors with one rule, whatever a reading reveals.

    bits: the rules over n objects that give every reading; bit k stands for `all_rules(n)[k]`
    """

    n: int
    bits: int

    __repr__ = space_repr

    @classmethod
    def full(cls, n: int) -> Self:
        """Return the space before any reading."""
        return cls(n, (1 << len(all_rules(n))) - 1)

    @property
    def in_words(self) -> str:
        return f"one rule throughout: conjunctive or disjunctive over a non-empty set of {self.n} objects"

    @property
    def geometry(self) -> Sets:
        return Sets(self.n)

    @property
    def count(self) -> int:
        return self.bits.bit_count()

    def fits(self, member: Rule) -> bool:
        return self.bits >> rule_numbers(self.n)[member.canonical] & 1 == 1

    def sample(self, rng: np.random.Generator, n: int) -> Sequence[Rule]:
        members = rules_of_bits(self.bits, self.n)
        if not members:
            raise ValueError("the space is empty")
        return [members[k] for k in rng.integers(len(members), size=n)]

    def verdicts(self) -> Mapping[Rule, int]:
        return dict.fromkeys(rules_of_bits(self.bits, self.n), 1)

    def posterior(self) -> Mapping[Rule, float]:
        return dict.fromkeys(rules_of_bits(self.bits, self.n), 1 / max(1, self.count))


@dataclass(frozen=True, slots=True, repr=False)
class StaticSpace(OneRule):
    """Rules over n objects that give every reading."""

    def after(self, experiment: tuple[int, ...], reading: str) -> StaticSpace:
        # one AND on 2 (2^n - 1) - n bits (57 for n = 5) filters all rules at once
        active = activated_rules(self.n)[set_of(experiment)]
        return StaticSpace(self.n, self.bits & (active if is_active(reading) else ~active))

    def outcomes(self, experiment: tuple[int, ...]) -> Mapping[str, int]:
        active = (self.bits & activated_rules(self.n)[set_of(experiment)]).bit_count()
        return {reading: k for reading, k in ((ACTIVE, active), (INACTIVE, self.count - active)) if k}

    def information(self) -> Weights:
        weights = as_weights(self.bits, len(all_rules(self.n)))
        return binary_entropy(weights @ activation_matrix(self.n) / max(1, self.count))
