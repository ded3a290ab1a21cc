"""Exact space and learner of each condition, and of all conditions at once.

Within a family the prior is uniform over members; for orders it is uniform over sets, then over the orders of a set.
The answer is the rule in force; for an order it is the conjunction of its blickets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from itertools import pairwise
from math import comb
from typing import TypeAlias

import numpy as np

from calibrant.dsl.blickets.episode import steps_with_state
from calibrant.dsl.blickets.item import (
    BlicketItem,
    Condition,
    Count,
    OrderReading,
    Rule,
    Sealed,
    SwitchBy,
    Task,
    all_rules,
    condition_of,
    set_of,
)
from calibrant.dsl.episode import Step
from calibrant.solvers.blickets.chains import ChainLearner, ChainSpace
from calibrant.solvers.blickets.conditions import (
    MAX_CONTROLLED,
    MAX_SWITCH,
    RELIABILITIES,
    NoiseSpace,
    OrderSpace,
    Switching,
    SwitchSpace,
)
from calibrant.solvers.blickets.learner import Greedy, Learner, Seek, Static, SwitchAware
from calibrant.solvers.blickets.space import (
    GradedSpace,
    Sequences,
    StaticSpace,
    Weights,
    activation_matrix,
    as_weights,
    information,
    sequences,
)
from calibrant.solvers.outcome import Found, Impossible
from calibrant.solvers.space import space_repr

# --- Mixture of all families with equal priors: one rule, a silent switch, an order, an unreliable detector -----------


class Family(StrEnum):
    """The families of the mixture, in the order in which they are listed."""

    STATIC = "static"
    SWITCH = "switch"
    ORDER = "order"
    NOISE = "noise"


Member: TypeAlias = tuple[Family, Rule | Switching | tuple[int, ...] | tuple[Rule, float]]


@dataclass(frozen=True, slots=True)
class UniversalSpace:
    """The spaces of the four families after the same readings."""

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
        counts = np.array(list(self.counts.values()), np.float64)
        if not counts.any():
            raise ValueError("the space is empty")
        members: list[Member] = []
        for k in rng.choice(len(counts), size=n, p=counts / counts.sum()):
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
        reading_counts: Counter[str] = Counter()
        for space in (self.static, self.switch, self.order, self.noise):
            reading_counts.update(space.outcomes(experiment))
        return dict(reading_counts)

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
        active += (self.noise.active_masses() * self._noise_scale())[:, None] * _by_sequence(self.n)
        return information(masses.sum(axis=0), active)

    def families(self) -> Mapping[Family, float]:
        """Return the probability of each family with members; empty if no family has any."""
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
        """Return the factor from scaled likelihoods to masses; any will do once no other family remains."""
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


# --- Spaces and learners by condition, and the space after an episode's readings --------------------------------------
MAX_CHOICES = 5_000  # combinations of switch points in one class

DetectorSpace: TypeAlias = (
    StaticSpace | GradedSpace | SwitchSpace | ChainSpace | OrderSpace | NoiseSpace | UniversalSpace
)


def space_of_condition(task: Task, condition: Condition | None) -> DetectorSpace:
    """Return the space of detectors of a condition, before any reading.

    condition: None gives the mixture of all families, which has no detector with both a switch and noise
    With a single rule the space uses the levels of a graded detector, otherwise only whether it is active. A condition
    with a switch has one switch, by activations.
    """
    match condition:
        case Condition.CONJUNCTIVE | Condition.DISJUNCTIVE:
            return GradedSpace.full(task.n) if task.graded else StaticSpace.full(task.n)
        case Condition.MODERATOR:
            return SwitchSpace.full(task.n, task.count)
        case Condition.ORDER:
            return OrderSpace.full(task.n, task.order_reading)
        case Condition.STOCHASTIC:
            return NoiseSpace.full(task.n)
        case Condition.NOISY_MODERATOR:
            return ChainSpace.full(task.n, 1, MAX_SWITCH, count_by=task.count, levels=RELIABILITIES)
        case None:
            return UniversalSpace.full(task.n, task.count, task.order_reading)


def class_of(item: BlicketItem) -> DetectorSpace:
    """Return the space of an item's condition; a detector with switches gets a space with as many of the same kind.

    The condition is the one that the mechanism belongs to, or that the item names if it belongs to none.
    """
    sealed = item.sealed
    chains = chain_class(item) if sealed.switches and not _is_one_switch(sealed) else None
    return space_of_condition(item.task, condition_of(sealed) or item.condition) if chains is None else chains


def after_step(space: DetectorSpace, placed: tuple[int, ...], step: Step[str]) -> DetectorSpace:
    """Return the space after a step, which leaves the objects `placed` on the detector."""
    remaining_space = space if step.reading is None else space.after(placed, step.reading)
    return remaining_space.after_moves(step.cost) if isinstance(remaining_space, ChainSpace) else remaining_space


def space_after(space: DetectorSpace, task: Task, steps: Iterable[Step[str]]) -> DetectorSpace:
    """Return the space after these steps."""
    for placed, step in steps_with_state(task, steps):
        space = after_step(space, placed, step)
    return space


def exact_learner(item: BlicketItem) -> Found[Callable[[Task], Learner]] | Impossible:
    """Return a learner whose class contains the item's mechanism; `Impossible` if there is none.

    On a detector with one switch, the learner activates on purpose if submissions are accepted only after the switch.
    """
    sealed = item.sealed
    ordered = [mechanism.order for mechanism in sealed.mechanisms if mechanism.order is not None]
    if sealed.switches and not ordered:
        space = chain_class(item)
        if space is None:
            return Impossible(_COVERED_CLASSES)
        if _is_one_switch(sealed):
            return Found(Seek if sealed.exposure.after_switch else SwitchAware)
        return Found(lambda task: ChainLearner(task, space))
    if ordered and not sealed.switches:
        if sealed.p == 1 and len(ordered[0]) > 1 and item.task.n <= MAX_CONTROLLED:
            return Found(lambda task: Greedy(task, OrderSpace.full(task.n, task.order_reading)))
    elif not ordered and sealed.p == 1:
        return Found((lambda task: Greedy(task, GradedSpace.full(task.n))) if item.task.graded else Static)
    elif not ordered and sealed.p in RELIABILITIES:
        return Found(lambda task: Greedy(task, NoiseSpace.full(task.n)))
    return Impossible(_COVERED_CLASSES)


_COVERED_CLASSES = (
    "one rule, one order, or one rule with noise of a known level; or different rules one after the other, by "
    f"activations up to {MAX_SWITCH} or by moves, with or without such noise"
)


def _is_one_switch(sealed: Sealed) -> bool:
    return len(sealed.switches) == 1 and sealed.switch_by is SwitchBy.ACTIVATIONS and sealed.p == 1


def chain_class(item: BlicketItem) -> ChainSpace | None:
    """Return the class of detectors with as many switches as the item's, by the same count, before any reading.

    With noise the class has all RELIABILITIES. It depends on nothing else of the item, so it gives nothing else away.
    None if the item's detector is not in the class, or the class has more than MAX_CHOICES combinations.
    """
    sealed, task = item.sealed, item.task
    by_moves = sealed.switch_by is SwitchBy.STEPS
    # by moves, a switch at the last move would concern no reading
    last = task.budget - 1 if by_moves else MAX_SWITCH
    rules = [mechanism.rule.canonical for mechanism in sealed.mechanisms]
    levels = (1.0,) if sealed.p == 1 else RELIABILITIES
    is_member = (
        bool(sealed.switches)
        and sealed.switches[-1] <= last
        and sealed.p in levels
        and all(mechanism.order is None for mechanism in sealed.mechanisms)
        and all(rule != following_rule for rule, following_rule in pairwise(rules))
    )
    if not is_member or comb(last, len(sealed.switches)) > MAX_CHOICES:
        return None
    return ChainSpace.full(
        task.n, len(sealed.switches), last, count_by=task.count, switch_by=sealed.switch_by, levels=levels
    )
