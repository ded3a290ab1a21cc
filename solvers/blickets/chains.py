"""Version space of detectors that switch several times, by activations or moves, and may be unreliable.

A member is a chain of rules, in which neighbours differ, the switch points between them, and a reliability: the
probability that a satisfied rule reads ACTIVE. The readings determine the count before each of them, so for every
choice of switch points each reading concerns one known position in the chain. Sums over all chains are forward and
backward passes as for hidden Markov models, with transitions to any other rule: O(positions * rules) for each choice.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from math import gcd
from random import Random
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from calibrant.dsl.blickets.item import Count, Rule, SwitchBy, Task, all_rules, set_of
from calibrant.dsl.blickets.reference import ACTIVE, INACTIVE, is_active
from calibrant.solvers.blickets.learner import DELTA, Greedy
from calibrant.solvers.blickets.space import Sets, Weights, activation_matrix, information, rule_numbers
from calibrant.solvers.space import space_repr

MAX_EXACT_DOUBLE = 1 << 53  # integers up to here are exact as doubles
_Number = TypeVar("_Number", np.float64, np.int64)


class Chain(NamedTuple):
    """Member: canonical rules, the switch points between them, the reliability."""

    rules: tuple[Rule, ...]
    points: tuple[int, ...]
    p: float


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ChainSpace:
    """Members that can give every reading, with a uniform prior.

    count_by, switch_by: what counts as an activation; whether switch points count those or moves
    points: all choices of switch points; levels: the reliabilities
    logs: log-likelihood of the readings that concern a position in the chain, under a rule, -inf if impossible;
        shape (choices, positions, levels, rules)
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
        """Return the space before any reading; `last` is the greatest switch point."""
        # C(last, switches) choices, each with an array of its own: exact.MAX_CHOICES bounds their number
        points = tuple(combinations(range(1, last + 1), switches))
        logs = np.zeros((len(points), switches + 1, len(levels), len(all_rules(n))))
        return ChainSpace(n, count_by, switch_by, points, levels, logs)

    def __repr__(self) -> str:
        return space_repr(self)

    @property
    def in_words(self) -> str:
        last = self.points[-1][-1] if self.points else 0
        unit = f"{self.switch_by} counted by {self.count_by}" if self.switch_by is SwitchBy.ACTIVATIONS else "moves"
        heard = "" if self.levels == (1.0,) else f", heard with probability {', '.join(map(str, self.levels))}"
        return (
            f"{self.logs.shape[1]} rules over {self.n} objects one after the other, conjunctive or disjunctive, each "
            f"different from the one before it, switching after 1 to {last} {unit}{heard}"
        )

    @property
    def geometry(self) -> Sets:
        return Sets(self.n)

    # --- counts -------------------------------------------------------------------------------------------------------

    @property
    def count(self) -> int:
        return sum(self._count_by_rule())

    def _count_by_rule(self) -> list[int]:
        """Return the exact number of members with each rule in force now, by index of the rule."""
        possible = np.isfinite(self.logs)
        choices, positions, levels, rules = self.logs.shape
        bound = choices * levels * rules**positions
        # doubles hold every sum below 2**53: up to 5 switches of 5 objects and 4 of 6, at 5 levels and MAX_CHOICES
        if bound < MAX_EXACT_DOUBLE:
            members = self._weigh_rules_in_force(possible.astype(np.float64), _sum_over_others).sum(axis=(0, 1))
            return [int(count) for count in members]
        # beyond: remainders by moduli without common factors determine the counts (Chinese remainder theorem)
        counts, product, modulus = [0] * rules, 1, 1 << 31
        while product <= bound:
            modulus -= 1
            if gcd(modulus, product) == 1:
                remainders = self._count_modulo(possible, modulus)
                step = product * pow(product, -1, modulus)  # 1 by this modulus, 0 by all before it
                counts = [n + step * ((r - n) % modulus) for n, r in zip(counts, remainders, strict=True)]
                product *= modulus
                counts = [count % product for count in counts]
        return counts

    def _count_modulo(self, possible: npt.NDArray[np.bool_], modulus: int) -> list[int]:
        """Return the counts of `_count_by_rule` modulo a number below 2**31."""

        def sum_over_others(weights: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
            # a product of two remainders is below 2**62 and reduced before it is summed or multiplied
            reduced = weights % modulus
            sums: npt.NDArray[np.int64] = (reduced.sum(axis=-1, keepdims=True) - reduced) % modulus
            return sums

        products = self._weigh_rules_in_force(possible.astype(np.int64), sum_over_others) % modulus
        return [int(remainder) for remainder in products.sum(axis=(0, 1))]

    def _weigh_rules_in_force(
        self, weights: npt.NDArray[_Number], sum_over_others: Callable[[npt.NDArray[_Number]], npt.NDArray[_Number]]
    ) -> npt.NDArray[_Number]:
        """Return the summed weight of the chains with each rule in force now; shape (choices, levels, rules).

        weights: weight of a rule at a position, shaped as `logs`; a chain weighs the product over its positions
        sum_over_others: sums, for each rule, over all other rules
        """
        in_force = self._positions_in_force()
        before = after = np.ones_like(weights[:, 0])
        forward, backward = [], []
        for position in range(weights.shape[1]):
            forward.append(weights[:, position] * before)
            before = sum_over_others(forward[-1])
        for position in reversed(range(weights.shape[1])):
            backward.append(after)
            after = sum_over_others(weights[:, position] * after)
        choices = np.arange(len(self.points))
        prefixes, suffixes = np.stack(forward, 1)[choices, in_force], np.stack(backward[::-1], 1)[choices, in_force]
        products: npt.NDArray[_Number] = prefixes * suffixes
        return products

    def _positions_in_force(self) -> npt.NDArray[np.intp]:
        """Return, for each choice of switch points, the position in the chain that the next reading concerns."""
        return np.array([bisect_right(points, self.progress) for points in self.points], np.intp)

    def fits(self, member: Chain) -> bool:
        rules = [rule.canonical for rule in member.rules]
        representable = member.points in self.points and member.p in self.levels and len(rules) == self.logs.shape[1]
        if not representable or any(rule == following_rule for rule, following_rule in pairwise(rules)):
            return False
        indices = [rule_numbers(self.n)[rule] for rule in rules]
        logs = self.logs[self.points.index(member.points), :, self.levels.index(member.p)]
        return bool(np.isfinite(logs[range(len(indices)), indices]).all())

    def sample(self, rng: np.random.Generator, n: int) -> Sequence[Chain]:
        possible = np.isfinite(self.logs).astype(np.float64)
        suffixes = [np.ones_like(possible[:, 0])]
        for position in range(possible.shape[1] - 1, 0, -1):
            suffixes.append(_sum_over_others(possible[:, position] * suffixes[-1]))
        totals = (possible[:, 0] * suffixes[-1]).sum(axis=2)
        if not totals.any():
            raise ValueError("the space is empty")
        members = []
        for flat in rng.choice(totals.size, size=n, p=(totals / totals.sum()).ravel()):
            choice, level = divmod(int(flat), len(self.levels))
            rule_indices: list[int] = []
            for position in range(possible.shape[1]):
                weights = possible[choice, position, level] * suffixes[-1 - position][choice, level]
                weights[rule_indices[-1:]] = 0  # neighbours differ
                rule_indices.append(int(rng.choice(len(weights), p=weights / weights.sum())))
            rules = tuple(all_rules(self.n)[index] for index in rule_indices)
            members.append(Chain(rules, self.points[choice], self.levels[level]))
        return members

    # --- readings -----------------------------------------------------------------------------------------------------

    def after(self, experiment: tuple[int, ...], reading: str) -> ChainSpace:
        """Return the space after a reading; its move is still to be counted by `after_moves`."""
        active = is_active(reading)
        satisfied = activation_matrix(self.n)[:, set_of(experiment)] > 0
        levels = np.array(self.levels)[:, None]
        with np.errstate(divide="ignore"):
            log_active, log_inactive = np.log(levels), np.log1p(-levels)  # of a satisfied rule
        # a rule that is not satisfied never reads ACTIVE (-inf) and always INACTIVE (0)
        log_likelihoods = np.where(satisfied, log_active, -np.inf) if active else np.where(satisfied, log_inactive, 0.0)
        logs = self.logs.copy()
        logs[np.arange(len(self.points)), self._positions_in_force()] += log_likelihoods
        counts = active and (self.count_by is Count.LEVEL or not self.active)
        progress = self.progress + (counts and self.switch_by is SwitchBy.ACTIVATIONS)
        return replace(self, logs=logs, progress=progress, active=active)

    def after_moves(self, moves: int) -> ChainSpace:
        """Return the space after some moves, refused ones included; they count only if switch points count moves."""
        return replace(self, progress=self.progress + moves) if self.switch_by is SwitchBy.STEPS else self

    def outcomes(self, experiment: tuple[int, ...]) -> Mapping[str, int]:
        """Count the members that can give each reading; with noise a member may be able to give both."""
        counts = {reading: self.after(experiment, reading).count for reading in (ACTIVE, INACTIVE)}
        return {reading: k for reading, k in counts.items() if k}

    def verdicts(self) -> Mapping[Rule, int]:
        """Count the members by the rule in force now."""
        return {rule: k for rule, k in zip(all_rules(self.n), self._count_by_rule(), strict=True) if k}

    # --- probabilities ------------------------------------------------------------------------------------------------

    def _masses(self) -> Weights:
        """Return the probability of each level with each rule in force, times a constant; shape (levels, rules)."""
        if not self.points:
            return np.zeros(self.logs.shape[2:])
        # log-sum-exp: each position is scaled by its maximum, so that products of many small numbers do not underflow
        best = self.logs.max(axis=3, keepdims=True)
        scale = best.sum(axis=(1, 3))
        if not np.isfinite(scale).any():
            return np.zeros(self.logs.shape[2:])
        scaled = np.exp(self.logs - np.where(np.isfinite(best), best, 0.0))
        in_force = self._weigh_rules_in_force(scaled, _sum_over_others)
        masses: Weights = (in_force * np.exp(scale - scale.max())[:, :, None]).sum(axis=0)
        return masses

    def posterior(self) -> Mapping[Rule, float]:
        masses = self._masses().sum(axis=0)
        total = masses.sum()
        return {rule: float(masses[k] / total) for k, rule in enumerate(all_rules(self.n)) if masses[k] > 0}

    def information(self) -> Weights:
        """Return the expected information about the rule in force when the reading is taken."""
        masses = self._masses()
        active = (masses * np.array(self.levels)[:, None]).sum(axis=0)
        return information(masses.sum(axis=0), active[:, None] * activation_matrix(self.n))


class ChainLearner(Greedy):
    """Greedy control over chains; it tells its space about moves, which switch points may count."""

    def __init__(self, task: Task, space: ChainSpace, delta: float = DELTA, ties: Random | None = None) -> None:
        super().__init__(task, space, delta, ties)

    def spend(self, moves: int) -> None:
        assert isinstance(self.space, ChainSpace)
        self.space = self.space.after_moves(moves)


def _sum_over_others(weights: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return, for each rule, the sum over all other rules."""
    # total minus own weight: O(rules) instead of O(rules**2); clipped, since rounding may leave a tiny negative number
    sums: npt.NDArray[np.float64] = np.maximum(0.0, weights.sum(axis=-1, keepdims=True) - weights)
    return sums
