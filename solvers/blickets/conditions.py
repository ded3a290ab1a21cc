"""Version spaces of the conditions: unreliable detectors, a required placement order, one silent switch.

`NoiseSpace`: a member gives every reading with positive probability iff its rule is satisfied at every ACTIVE reading,
so counts carry little information; the posterior does, with a uniform prior over (rule, reliability).

`DoubtSpace`: the reliable and the unreliable family have prior 1/2 each, uniform over their members. Until the readings
contradict every rule without noise, the reliable family has most of the posterior. So on an unreliable detector a
learner answers sooner than under `NoiseSpace`, and is right less often.

`SwitchSpace`: the readings give the number of activations before each of them. So for each switch point N the readings
after fewer than N activations constrain only the first rule, and the others only the second. With R1(N) and R2(N) the
first and second rules that remain, and since the two rules differ, the number of members is the sum over N of
|R1(N)| |R2(N)| - |R1(N) and R2(N)|.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import factorial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from calibrant.dsl.blickets.item import Count, Form, OrderReading, Rule, all_rules, in_order, set_of
from calibrant.dsl.blickets.reference import ACTIVE, INACTIVE, is_active
from calibrant.solvers.blickets.space import (
    Sequences,
    Sets,
    StaticSpace,
    Weights,
    activated_rules,
    activation_matrix,
    as_weights,
    binary_entropy,
    information,
    rule_numbers,
    rules_of_bits,
    sequences,
)
from calibrant.solvers.space import space_repr

# --- Version space of unreliable detectors: a rule, and its reliability, the probability of ACTIVE when satisfied -----
RELIABILITIES = (0.5, 0.6, 0.7, 0.8, 0.9)


@dataclass(frozen=True, slots=True)
class NoiseSpace:
    """Rules and reliabilities that can give every reading.

    bits: rules that were satisfied at every ACTIVE reading; bit k stands for `all_rules(n)[k]`
    num_active: number of ACTIVE readings (every remaining rule was satisfied at all of them)
    num_silent: for each distinct rule, number of INACTIVE readings at which it was satisfied
    """

    n: int
    bits: int
    num_active: int
    num_silent: tuple[int, ...]

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
            return replace(self, bits=self.bits & satisfied, num_active=self.num_active + 1)
        num_silent = tuple(count + (satisfied >> k & 1) for k, count in enumerate(self.num_silent))
        return replace(self, num_silent=num_silent)

    def outcomes(self, experiment: tuple[int, ...]) -> Mapping[str, int]:
        """Count the members that can give each reading; counts overlap, as a satisfied rule can give both."""
        active = (self.bits & activated_rules(self.n)[set_of(experiment)]).bit_count() * len(RELIABILITIES)
        return {reading: k for reading, k in ((ACTIVE, active), (INACTIVE, self.count)) if k}

    def verdicts(self) -> Mapping[Rule, int]:
        return dict.fromkeys(rules_of_bits(self.bits, self.n), len(RELIABILITIES))

    def _log_likelihoods(self) -> Weights:
        """Return log-likelihoods; rows: remaining rules, columns: reliabilities."""
        num_silent = np.array(self.num_silent)[_positions(self.bits, len(self.num_silent))]
        p = np.array(RELIABILITIES)
        # p^num_active (1 - p)^num_silent: the two counts are sufficient statistics
        log_likelihoods: Weights = self.num_active * np.log(p) + num_silent[:, None] * np.log1p(-p)
        return log_likelihoods

    @property
    def log_scale(self) -> float:
        """Logarithm of the divisor of `likelihoods`, the greatest likelihood, which avoids underflow."""
        return float(self._log_likelihoods().max()) if self.bits else 0.0

    def likelihoods(self) -> Weights:
        """Return likelihoods by distinct rule (rows) and reliability (columns), scaled to a maximum of 1."""
        likelihoods = np.zeros((len(self.num_silent), len(RELIABILITIES)))
        if self.bits:
            logs = self._log_likelihoods()
            likelihoods[_positions(self.bits, len(self.num_silent))] = np.exp(logs - logs.max())
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

    def active_masses(self) -> Weights:
        """Return the part of `masses` in which a satisfied rule reads ACTIVE: each likelihood times its reliability."""
        expected_reliability: Weights = self.likelihoods() @ np.array(RELIABILITIES)
        return expected_reliability

    def information(self) -> Weights:
        return information(self.masses(), self.active_masses()[:, None] * activation_matrix(self.n))


def _positions(bits: int, size: int) -> npt.NDArray[np.intp]:
    """Return the indices of the bits that are 1, ascending."""
    return np.flatnonzero(as_weights(bits, size))


# --- Mixture of two spaces: one rule, on a reliable or an unreliable detector -----------------------------------------


@dataclass(frozen=True, slots=True, repr=False)
class DoubtSpace:
    """The spaces of reliable and of unreliable detectors after the same readings."""

    static: StaticSpace
    noise: NoiseSpace

    @staticmethod
    def full(n: int) -> DoubtSpace:
        """Return the space before any reading."""
        return DoubtSpace(StaticSpace.full(n), NoiseSpace.full(n))

    __repr__ = space_repr

    @property
    def in_words(self) -> str:
        return f"{self.static.in_words}; or {self.noise.in_words}"

    @property
    def geometry(self) -> Sets:
        return self.static.geometry

    @property
    def count(self) -> int:
        return self.static.count + self.noise.count

    def after(self, experiment: tuple[int, ...], reading: str) -> DoubtSpace:
        return DoubtSpace(self.static.after(experiment, reading), self.noise.after(experiment, reading))

    def posterior(self) -> Mapping[Rule, float]:
        masses = self._reliable() + self.noise.masses() * self._scale()
        total = masses.sum()
        return {rule: float(masses[k] / total) for k, rule in enumerate(all_rules(self.static.n)) if masses[k] > 0}

    def information(self) -> Weights:
        reliable, scale = self._reliable(), self._scale()
        if_active = reliable + self.noise.active_masses() * scale
        active = if_active[:, None] * activation_matrix(self.static.n)
        return information(reliable + self.noise.masses() * scale, active)

    def _reliable(self) -> Weights:
        """Return the likelihood of each rule without noise: 1 or 0."""
        return as_weights(self.static.bits, len(all_rules(self.static.n)))

    def _scale(self) -> float:
        """Return the factor of noisy likelihoods relative to reliable ones; arbitrary if no reliable member remains."""
        # the masses of a rule sum over its reliabilities; divided by their number, both families have prior 1/2
        return float(np.exp(self.noise.log_scale)) / len(RELIABILITIES) if self.static.count else 1.0


# --- Version space of detectors that require one placement order: (set, permutation) of at least two blickets ---------
MAX_CONTROLLED = 6  # objects; with more there are too many placement sequences to compare


@cache
def orders(n: int) -> tuple[tuple[int, ...], ...]:
    """Return all orders of at least two of n objects: 320 for n = 5."""
    return tuple(order for order in sequences(n) if len(order) > 1)


@cache
def activated_members(n: int, reading: OrderReading, placed: tuple[int, ...]) -> int:
    """Return the members that a placement sequence activates: bit k stands for `orders(n)[k]`."""
    contiguous = reading is OrderReading.CONTIGUOUS
    present = set(placed)
    fitting = (
        k
        for k, order in enumerate(orders(n))
        if present.issuperset(order) and in_order(order, placed, contiguous=contiguous)
    )
    return sum(1 << k for k in fitting)


@cache
def order_matrix(n: int, reading: OrderReading) -> Weights:
    """Return whether each placement sequence activates each member, as 1 or 0; shape (members, sequences)."""
    columns = [as_weights(activated_members(n, reading, placed), len(orders(n))) for placed in sequences(n)]
    return np.array(columns).T


@cache
def answers(n: int) -> npt.NDArray[np.intp]:
    """Return, for each member, the index in `all_rules(n)` of the conjunction of its blickets."""
    return np.array([rule_numbers(n)[_answer(order)] for order in orders(n)])


@cache
def order_prior(n: int) -> Weights:
    """Return the prior of each member: uniform over sets of at least two blickets, then over the orders of a set."""
    # uniform over members would favour large sets: 120 of the 320 orders of 5 objects are of all five
    sets = len({_answer(order) for order in orders(n)})
    return np.array([1 / (sets * factorial(len(order))) for order in orders(n)])


def _answer(order: tuple[int, ...]) -> Rule:
    return Rule(Form.CONJUNCTIVE, set_of(order))


@dataclass(frozen=True, slots=True)
class OrderSpace:
    """Orders consistent with every reading so far; `bits`: bit k stands for `orders(n)[k]`."""

    n: int
    order_reading: OrderReading
    bits: int

    @staticmethod
    def full(n: int, order_reading: OrderReading = OrderReading.RELATIVE) -> OrderSpace:
        """Return the space before any reading."""
        return OrderSpace(n, order_reading, (1 << len(orders(n))) - 1)

    __repr__ = space_repr

    @property
    def in_words(self) -> str:
        return (
            f"a conjunctive rule over at least two of {self.n} objects that have to be placed in one order, "
            f"{self.order_reading}"
        )

    @property
    def geometry(self) -> Sequences:
        if self.n > MAX_CONTROLLED:
            raise ValueError(f"experiments on order are chosen for at most {MAX_CONTROLLED} objects")
        return Sequences(self.n)

    @property
    def count(self) -> int:
        return self.bits.bit_count()

    def members(self) -> list[tuple[int, ...]]:
        """List all members."""
        return [order for k, order in enumerate(orders(self.n)) if self.bits >> k & 1]

    def fits(self, member: tuple[int, ...]) -> bool:
        return member in self.members()

    def sample(self, rng: np.random.Generator, n: int) -> Sequence[tuple[int, ...]]:
        members = self.members()
        if not members:
            raise ValueError("the space is empty")
        return [members[k] for k in rng.integers(len(members), size=n)]

    def after(self, experiment: tuple[int, ...], reading: str) -> OrderSpace:
        active = activated_members(self.n, self.order_reading, experiment)
        return replace(self, bits=self.bits & (active if is_active(reading) else ~active))

    def outcomes(self, experiment: tuple[int, ...]) -> Mapping[str, int]:
        active = (self.bits & activated_members(self.n, self.order_reading, experiment)).bit_count()
        return {reading: k for reading, k in ((ACTIVE, active), (INACTIVE, self.count - active)) if k}

    def verdicts(self) -> Mapping[Rule, int]:
        """Count the members by their set, as a conjunctive rule: the order is not part of the answer."""
        answer_counts = Counter(_answer(order) for order in self.members())
        return dict(sorted(answer_counts.items()))

    def posterior(self) -> Mapping[Rule, float]:
        """Return the posterior of each answer, from `order_prior`."""
        masses = self.masses()
        total = masses.sum()
        return {rule: float(masses[k] / total) for k, rule in enumerate(all_rules(self.n)) if masses[k] > 0}

    def weights(self) -> Weights:
        """Return the prior probability of each remaining member, 0 for others."""
        return as_weights(self.bits, len(orders(self.n))) * order_prior(self.n)

    def masses(self) -> Weights:
        """Return the weights summed by answer: a vector over the distinct rules."""
        masses = np.bincount(answers(self.n), self.weights(), minlength=len(all_rules(self.n)))
        return masses.astype(np.float64)

    def activated_masses(self) -> Weights:
        """Return the summed weights of the members that activate, by answer (rows) and placement sequence (columns)."""
        # members sorted by answer, then one segmented sum: no loop over rules
        masses = np.zeros((len(all_rules(self.n)), len(sequences(self.n))))
        weights = self.weights()
        positive = np.flatnonzero(weights)
        if len(positive):
            by_answer = positive[np.argsort(answers(self.n)[positive], kind="stable")]
            rules, starts = np.unique(answers(self.n)[by_answer], return_index=True)
            active = order_matrix(self.n, self.order_reading)[by_answer] * weights[by_answer, None]
            masses[rules] = np.add.reduceat(active, starts, axis=0)
        return masses

    def information(self) -> Weights:
        """Return the entropy of the reading, which is its information about the member, order included."""
        weights = self.weights()
        return binary_entropy(weights @ order_matrix(self.n, self.order_reading) / (weights.sum() or 1.0))


# --- Version space of detectors that switch once, silently: first rule, second rule, switch point ---------------------
MAX_SWITCH = 12  # largest switch point, in activations


class Switching(NamedTuple):
    """Member: two canonical rules, and `switch`, the number of activations after which the second is in force."""

    first: Rule
    second: Rule
    switch: int


@dataclass(frozen=True, slots=True)
class SwitchSpace:
    """Switching detectors consistent with every reading so far.

    count_by: definition of an activation
    firsts, seconds: for each switch point 1, 2, ... the remaining first, and second, rules as bit sets
    activations: number of activations so far; active: whether the last reading was ACTIVE
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
        """Return the number of members that switch after k + 1 activations."""
        first, second = self.firsts[k], self.seconds[k]
        return first.bit_count() * second.bit_count() - (first & second).bit_count()

    def fits(self, member: Switching) -> bool:
        if not 1 <= member.switch <= len(self.firsts) or member.first.canonical == member.second.canonical:
            return False
        bit_of = rule_numbers(self.n)
        firsts, seconds = self.firsts[member.switch - 1], self.seconds[member.switch - 1]
        return firsts >> bit_of[member.first.canonical] & seconds >> bit_of[member.second.canonical] & 1 == 1

    def sample(self, rng: np.random.Generator, n: int) -> Sequence[Switching]:
        pairs = np.array([self._pairs(k) for k in range(len(self.firsts))], np.float64)
        if not pairs.any():
            raise ValueError("the space is empty")
        members = []
        for k in rng.choice(len(pairs), size=n, p=pairs / pairs.sum()):
            firsts, seconds = rules_of_bits(self.firsts[k], self.n), rules_of_bits(self.seconds[k], self.n)
            while True:  # equal rules are rejected; at most one second rule equals a given first rule
                first, second = firsts[rng.integers(len(firsts))], seconds[rng.integers(len(seconds))]
                if first != second:
                    break
            members.append(Switching(first, second, int(k) + 1))
        return members

    def after(self, experiment: tuple[int, ...], reading: str) -> SwitchSpace:
        active = is_active(reading)
        consistent = activated_rules(self.n)[set_of(experiment)]
        if not active:
            consistent = ~consistent
        # a reading before any activation concerns the first rule at every switch point (all are 1 or more)
        num_reached = min(self.activations, len(self.firsts))  # switch points that have been reached
        counts = active and (self.count_by is Count.LEVEL or not self.active)
        return replace(
            self,
            firsts=self.firsts[:num_reached] + tuple(bits & consistent for bits in self.firsts[num_reached:]),
            seconds=tuple(bits & consistent for bits in self.seconds[:num_reached]) + self.seconds[num_reached:],
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
        """Count the members by the index of the rule in force; all counts are far below 2**53, so exact as doubles."""
        size = len(all_rules(self.n))
        total = np.zeros(size)
        for k, (first, second) in enumerate(zip(self.firsts, self.seconds, strict=True)):
            in_force, not_in_force = (second, first) if k < self.activations else (first, second)
            if in_force and not_in_force:
                # partners of a rule: all of the other set except the rule itself, since both differ
                members = as_weights(in_force, size)
                total += members * (not_in_force.bit_count() - as_weights(not_in_force, size))
        return total

    def posterior(self) -> Mapping[Rule, float]:
        total = self.count
        return {rule: weight / total for rule, weight in self.verdicts().items()}

    def information(self) -> Weights:
        """Return the entropy of the reading: its information about the rule in force, which determines it."""
        weights = self.in_force()
        return binary_entropy(weights @ activation_matrix(self.n) / max(1.0, weights.sum()))

    def still_to_come(self) -> float:
        """Return the probability that the switch has not happened yet; `ValueError` if the space is empty."""
        total = self.count
        if not total:
            raise ValueError("the space is empty")
        return 1 - sum(self._pairs(k) for k in range(min(self.activations, len(self.firsts)))) / total
