"""Version space of detectors that require one placement order: (set, permutation) of at least two blickets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import factorial

import numpy as np
import numpy.typing as npt

from calibrant.dsl.blickets.item import OrderReading
from calibrant.dsl.blickets.reference import ACTIVE, INACTIVE, is_active
from calibrant.dsl.blickets.rule import Form, Rule, all_rules, in_order, set_of
from calibrant.solvers.blickets.geometry import Sequences, sequences
from calibrant.solvers.blickets.static import rule_numbers
from calibrant.solvers.blickets.weights import Weights, as_weights, binary_entropy
from calibrant.solvers.space import space_repr

MAX_CONTROLLED = 6  # objects; with more the placement sequences are too many to compare


@cache
def orders(n: int) -> tuple[tuple[int, ...], ...]:
    """Return all members: 320 for n = 5."""
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
    """Return 1 where a placement sequence activates a member, else 0; shape (members, sequences)."""
    columns = [as_weights(activated_members(n, reading, placed), len(orders(n))) for placed in sequences(n)]
    return np.array(columns).T


@cache
def answers(n: int) -> npt.NDArray[np.intp]:
    """Return, for each member, the index in `all_rules(n)` of the conjunction of its blickets."""
    return np.array([rule_numbers(n)[_answer(order)] for order in orders(n)])


@cache
def order_prior(n: int) -> Weights:
    """Return the prior: uniform over sets of at least two blickets, then over the orders of a set."""
    # uniform over members would favour large sets: 120 of the 320 orders of 5 objects are of all five
    sets = len({_answer(order) for order in orders(n)})
    return np.array([1 / (sets * factorial(len(order))) for order in orders(n)])


def _answer(order: tuple[int, ...]) -> Rule:
    return Rule(Form.CONJUNCTIVE, set_of(order))


@dataclass(frozen=True, slots=True)
class OrderSpace:
    """Members that give every reading. bits: bit k stands for `orders(n)[k]`."""

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
        """Return weights by answer (rows) and placement sequence (columns), of members that the sequence activates."""
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
        """Return the expected information about the member, order included: it determines the reading."""
        weights = self.weights()
        return binary_entropy(weights @ order_matrix(self.n, self.order_reading) / (weights.sum() or 1.0))
