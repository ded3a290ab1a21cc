"""Version space of unreliable detectors: a rule, and its reliability, the probability of ACTIVE when satisfied.

A member gives every reading with positive probability iff its rule is satisfied at every ACTIVE one, so counts carry
little information; the posterior carries it, with a uniform prior over (rule, reliability).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from calibrant.dsl.blickets.reference import ACTIVE, INACTIVE, is_active
from calibrant.dsl.blickets.rule import Rule, all_rules, set_of
from calibrant.solvers.blickets.geometry import Sets
from calibrant.solvers.blickets.static import activated_rules, activation_matrix, rule_numbers, rules_of_bits
from calibrant.solvers.blickets.weights import Weights, as_weights, information
from calibrant.solvers.space import space_repr

RELIABILITIES = (0.5, 0.6, 0.7, 0.8, 0.9)


@dataclass(frozen=True, slots=True)
class NoiseSpace:
    """Rules and reliabilities that can give every reading.

    bits: rules that were satisfied at every ACTIVE reading; bit k stands for `all_rules(n)[k]`
    heard: number of ACTIVE readings (every remaining rule was satisfied at all of them)
    unheard: for each distinct rule, number of INACTIVE readings at which it was satisfied
    """

    n: int
    bits: int
    heard: int
    unheard: tuple[int, ...]

    @staticmethod
    def full(n: int) -> NoiseSpace:
        """Return the space before any reading."""
        size = len(all_rules(n))
        return NoiseSpace(n, (1 << size) - 1, 0, (0,) * size)

    __repr__ = space_repr

    @property
    def in_words(self) -> str:
        levels = ", ".join(str(p) for p in RELIABILITIES)
        return (
            f"one rule over {self.n} objects, conjunctive or disjunctive, that reads ACTIVE with probability "
            f"{levels} when satisfied and never otherwise"
        )

    @property
    def geometry(self) -> Sets:
        return Sets(self.n)

    @property
    def count(self) -> int:
        return self.bits.bit_count() * len(RELIABILITIES)

    def fits(self, member: tuple[Rule, float]) -> bool:
        rule, p = member
        return p in RELIABILITIES and self.bits >> rule_numbers(self.n)[rule.canonical] & 1 == 1

    def sample(self, rng: np.random.Generator, n: int) -> Sequence[tuple[Rule, float]]:
        rules = rules_of_bits(self.bits, self.n)
        if not rules:
            raise ValueError("the space is empty")
        indices = rng.integers(len(rules) * len(RELIABILITIES), size=n)
        return [(rules[k // len(RELIABILITIES)], RELIABILITIES[k % len(RELIABILITIES)]) for k in indices]

    def after(self, experiment: tuple[int, ...], reading: str) -> NoiseSpace:
        satisfied = activated_rules(self.n)[set_of(experiment)]
        if is_active(reading):
            return replace(self, bits=self.bits & satisfied, heard=self.heard + 1)
        unheard = tuple(number + (satisfied >> k & 1) for k, number in enumerate(self.unheard))
        return replace(self, unheard=unheard)

    def outcomes(self, experiment: tuple[int, ...]) -> Mapping[str, int]:
        """Count the members that can give each reading.

        Both are possible where the rule is satisfied: counts overlap.
        """
        active = (self.bits & activated_rules(self.n)[set_of(experiment)]).bit_count() * len(RELIABILITIES)
        return {reading: k for reading, k in ((ACTIVE, active), (INACTIVE, self.count)) if k}

    def verdicts(self) -> Mapping[Rule, int]:
        return dict.fromkeys(rules_of_bits(self.bits, self.n), len(RELIABILITIES))

    def _log_likelihoods(self) -> Weights:
        """Return log-likelihoods; rows: remaining rules, columns: reliabilities."""
        unheard = np.array(self.unheard)[_positions(self.bits, len(self.unheard))]
        p = np.array(RELIABILITIES)
        # p^heard (1 - p)^unheard: these two counts are sufficient, no reading has to be stored
        log_likelihoods: Weights = self.heard * np.log(p) + unheard[:, None] * np.log1p(-p)
        return log_likelihoods

    @property
    def log_scale(self) -> float:
        """Logarithm of the divisor of `likelihoods`: the greatest of them, against underflow."""
        return float(self._log_likelihoods().max()) if self.bits else 0.0

    def likelihoods(self) -> Weights:
        """Return likelihoods by distinct rule (rows) and reliability (columns), scaled to a maximum of 1."""
        likelihoods = np.zeros((len(self.unheard), len(RELIABILITIES)))
        if self.bits:
            logs = self._log_likelihoods()
            likelihoods[_positions(self.bits, len(self.unheard))] = np.exp(logs - logs.max())
        return likelihoods

    def posterior(self) -> Mapping[Rule, float]:
        if not self.bits:
            return {}
        weights = self.masses()
        shares = weights / weights.sum()
        return {rule: float(shares[k]) for k, rule in enumerate(all_rules(self.n)) if shares[k] > 0}

    def masses(self) -> Weights:
        """Return `likelihoods` summed over reliabilities: a vector over the distinct rules."""
        rule_weights: Weights = self.likelihoods().sum(axis=1)
        return rule_weights

    def heard_masses(self) -> Weights:
        """Return the masses by answer if one more reading is ACTIVE and the rule is satisfied at it."""
        expected_reliability: Weights = self.likelihoods() @ np.array(RELIABILITIES)
        return expected_reliability

    def information(self) -> Weights:
        return information(self.masses(), self.heard_masses()[:, None] * activation_matrix(self.n))


def _positions(bits: int, size: int) -> npt.NDArray[np.intp]:
    return np.flatnonzero(as_weights(bits, size))
