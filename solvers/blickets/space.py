"""Version space of detectors with one rule, over the configurations of the objects.

In `Sets` a configuration is the set of objects on the detector, in `Sequences` their placement order too.
Configurations are numbered; the numbers break ties.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import permutations
from typing import Protocol, Self

import numpy as np
import numpy.typing as npt

from calibrant.dsl.blickets.item import Rule, all_rules, set_of
from calibrant.dsl.blickets.reference import ACTIVE, INACTIVE, graded_level, is_active
from calibrant.dsl.formulas.table import unpack_bits
from calibrant.solvers.space import space_repr

# --- Configurations of a detector and the number of moves between them ------------------------------------------------
Distances = npt.NDArray[np.float64]
Toggle = tuple[str, int]  # verb, object number


class Geometry(Protocol):
    """Numbered configurations."""

    def distances(self, placed: tuple[int, ...]) -> Distances:
        """Return the number of moves to every configuration; infinite for the current one: a reading needs a move."""
        ...

    def toward(self, placed: tuple[int, ...], target: int) -> tuple[Toggle, ...]:
        """Return the first moves of the shortest paths to a configuration; none if it is the current one."""
        ...


@dataclass(frozen=True, slots=True)
class Sets:
    """Sets of n objects; the number of a set is the set as an integer."""

    n: int

    def distances(self, placed: tuple[int, ...]) -> Distances:
        row: Distances = _set_distances(self.n)[set_of(placed)]
        return row

    def toward(self, placed: tuple[int, ...], target: int) -> tuple[Toggle, ...]:
        present = set_of(placed)
        return tuple(
            ("remove" if present >> index & 1 else "place", index)
            for index in range(self.n)
            if (present ^ target) >> index & 1
        )


@cache
def _set_distances(n: int) -> Distances:
    """Return the number of moves from each set to each set."""
    sets = range(1 << n)
    moves = np.array([[float((a ^ b).bit_count()) for b in sets] for a in sets])
    np.fill_diagonal(moves, np.inf)
    return moves


@cache
def sequences(n: int) -> tuple[tuple[int, ...], ...]:
    """Return all placement sequences of n objects, shorter ones first: 326 for n = 5."""
    return tuple(order for k in range(n + 1) for order in permutations(range(n), k))


@cache
def sequence_numbers(n: int) -> dict[tuple[int, ...], int]:
    """Return the index of each placement sequence in `sequences(n)`."""
    return {sequence: k for k, sequence in enumerate(sequences(n))}


@dataclass(frozen=True, slots=True)
class Sequences:
    """Placement sequences of n objects, numbered as in `sequences`. Removals come before placements."""

    n: int

    def distances(self, placed: tuple[int, ...]) -> Distances:
        return _sequence_distances(self.n, placed)

    def toward(self, placed: tuple[int, ...], target: int) -> tuple[Toggle, ...]:
        target_sequence = sequences(self.n)[target]
        # a placed object comes last: a prefix of the target may stay, and everything else is removed
        placed_prefix = set(target_sequence[: _prefix_length(placed, target_sequence)])
        removed = tuple(("remove", index) for index in placed if index not in placed_prefix)
        return removed or tuple(("place", index) for index in target_sequence[len(placed) : len(placed) + 1])


def _prefix_length(placed: tuple[int, ...], target: tuple[int, ...]) -> int:
    """Return how many objects may stay: the longest prefix of the target that is a subsequence of the placed ones."""
    prefix_length = 0
    for index in placed:
        if prefix_length < len(target) and index == target[prefix_length]:
            prefix_length += 1
    return prefix_length


@cache
def _sequence_distances(n: int, placed: tuple[int, ...]) -> Distances:
    # all but the prefix that may stay is removed, then the rest placed: |placed| + |target| - 2 |prefix|
    moves = np.array(
        [len(placed) + len(sequence) - 2 * _prefix_length(placed, sequence) for sequence in sequences(n)], np.float64
    )
    moves[sequence_numbers(n)[placed]] = np.inf
    return moves


# --- Vectors over rules and configurations, and Shannon entropies -----------------------------------------------------
Weights = npt.NDArray[np.float64]  # of any shape


def as_weights(bits: int, size: int) -> Weights:
    """Convert a bit set to a vector of 0 and 1."""
    return unpack_bits(bits, size).astype(np.float64)


def binary_entropy(shares: Weights) -> Weights:
    """Return the entropy in bits of readings that are ACTIVE with these probabilities."""
    return _times_log(shares + 0.0) + _times_log(1 - shares)


def mass_weighted_entropy(weights: Weights) -> Weights:
    """Return, for each column, its sum times the entropy of the normalised column, in bits."""
    entropies: Weights = _times_log(weights).sum(axis=0) - _times_log(weights.sum(axis=0))
    return entropies


def information(masses: Weights, active: Weights) -> Weights:
    """Return the mutual information of answer and reading at each configuration, in bits.

    masses: unnormalised posterior of each answer
    active: the part of it in which the reading at a configuration is ACTIVE; shape (answers, configurations)
    """
    total = masses.sum()
    if not total:
        return np.zeros(active.shape[1])
    possible = np.flatnonzero(masses)
    before = masses[possible] / total
    active_share = active[possible] / total
    # H(answer) - sum over readings of P(reading) H(answer | reading)
    gains: Weights = (
        mass_weighted_entropy(before)
        - mass_weighted_entropy(active_share)
        - mass_weighted_entropy(before[:, None] - active_share)
    )
    return gains


def _times_log(weights: Weights) -> Weights:
    """Return -w log2 w for each weight; 0 where w is 0 or, by rounding, below."""
    positive = weights > 0
    entropies: Weights = np.where(positive, -weights * np.log2(np.where(positive, weights, 1.0)), 0.0)
    return entropies


# --- Version space of detectors with one rule: a bit set over the distinct rules --------------------------------------


@cache
def activated_rules(n: int) -> tuple[int, ...]:
    """Return the rules that each set of objects (an integer) activates; bit k stands for `all_rules(n)[k]`."""
    rules = all_rules(n)
    return tuple(sum(1 << k for k, rule in enumerate(rules) if rule.active(present)) for present in range(1 << n))


@cache
def activation_matrix(n: int) -> Weights:
    """Return 1 where a set of objects activates a rule, else 0; shape (rules, sets)."""
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

    bits: the rules over n objects consistent with every reading so far; bit k stands for `all_rules(n)[k]`
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
    """Rules over n objects consistent with every reading so far."""

    def after(self, experiment: tuple[int, ...], reading: str) -> StaticSpace:
        # one AND of 2 (2^n - 1) - n bits (57 for n = 5) filters all rules at once
        active = activated_rules(self.n)[set_of(experiment)]
        return StaticSpace(self.n, self.bits & (active if is_active(reading) else ~active))

    def outcomes(self, experiment: tuple[int, ...]) -> Mapping[str, int]:
        active = (self.bits & activated_rules(self.n)[set_of(experiment)]).bit_count()
        return {reading: k for reading, k in ((ACTIVE, active), (INACTIVE, self.count - active)) if k}

    def information(self) -> Weights:
        weights = as_weights(self.bits, len(all_rules(self.n)))
        return binary_entropy(weights @ activation_matrix(self.n) / max(1, self.count))


# --- Version space of graded detectors: one rule, and readings that state the number of blickets while active ---------


@cache
def by_level(n: int) -> tuple[Mapping[int, int], ...]:
    """Return, for every set of objects: level -> bit set of the rules whose reading is that level; 0 is INACTIVE."""
    table: list[dict[int, int]] = []
    for present in range(1 << n):
        levels: dict[int, int] = {}
        for k, rule in enumerate(all_rules(n)):
            level = (rule.blickets & present).bit_count() if rule.active(present) else 0
            levels[level] = levels.get(level, 0) | 1 << k
        table.append(dict(sorted(levels.items())))
    return tuple(table)


@cache
def level_tensor(n: int) -> Weights:
    """Return 1 where the reading of a rule is a level, else 0; shape (levels, rules, sets)."""
    size = len(all_rules(n))
    table = np.zeros((n + 1, size, 1 << n))
    for present, levels in enumerate(by_level(n)):
        for level, bits in levels.items():
            table[level, :, present] = as_weights(bits, size)
    return table


@dataclass(frozen=True, slots=True, repr=False)
class GradedSpace(OneRule):
    """Rules over n objects consistent with every graded reading so far."""

    @property
    def in_words(self) -> str:
        return (
            f"one rule throughout, conjunctive or disjunctive over a non-empty set of {self.n} objects, on a detector "
            "that tells how many blickets are on it while it is active"
        )

    def after(self, experiment: tuple[int, ...], reading: str) -> GradedSpace:
        fitting = by_level(self.n)[set_of(experiment)].get(graded_level(reading), 0)
        return replace(self, bits=self.bits & fitting)

    def outcomes(self, experiment: tuple[int, ...]) -> Mapping[str, int]:
        levels = by_level(self.n)[set_of(experiment)]
        counts = {level: (self.bits & fitting).bit_count() for level, fitting in levels.items()}
        # an active detector has at least one blicket on it: level 0 is INACTIVE and nothing else
        return {f"{ACTIVE} {level}" if level else INACTIVE: k for level, k in counts.items() if k}

    def information(self) -> Weights:
        """Return the entropy of the reading, which is its information since the rule determines it."""
        weights = as_weights(self.bits, len(all_rules(self.n)))
        counts = np.einsum("r,lrs->ls", weights, level_tensor(self.n))
        return mass_weighted_entropy(counts / max(1, self.count))
