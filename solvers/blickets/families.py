"""Spaces and learners by condition, and the space after an episode's readings."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise
from math import comb
from typing import TypeAlias

from calibrant.dsl.blickets.episode import steps_with_state
from calibrant.dsl.blickets.item import BlicketItem, Condition, Sealed, SwitchBy, Task, condition_of
from calibrant.dsl.episode import Step
from calibrant.solvers.blickets.aware_learners import Seek, SwitchAware
from calibrant.solvers.blickets.chains import ChainLearner, ChainSpace
from calibrant.solvers.blickets.graded import GradedSpace
from calibrant.solvers.blickets.learner import Greedy, Learner, Static
from calibrant.solvers.blickets.noise import RELIABILITIES, NoiseSpace
from calibrant.solvers.blickets.order import MAX_CONTROLLED, OrderSpace
from calibrant.solvers.blickets.static import StaticSpace
from calibrant.solvers.blickets.switch import MAX_SWITCH, SwitchSpace
from calibrant.solvers.blickets.universal import UniversalSpace
from calibrant.solvers.outcome import Found, Impossible

MAX_CHOICES = 5_000  # of switch points

DetectorSpace: TypeAlias = (
    StaticSpace | GradedSpace | SwitchSpace | ChainSpace | OrderSpace | NoiseSpace | UniversalSpace
)


def space_of_condition(task: Task, condition: Condition | None) -> DetectorSpace:
    """Return the space of detectors of a condition, before any reading.

    Levels of a graded detector are used where there is one rule; elsewhere only whether it is active. A switch is one
    switch by activations. Without a condition (None): the mixture of all families but those with switch and noise.
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
    """Return the space of an item's condition; for a moderator with its number of switches and what they count.

    The condition is that of the mechanism, even if the item names another; the item's if no condition has it.
    """
    sealed = item.sealed
    chains = chain_class(item) if sealed.switches and not _is_one_switch(sealed) else None
    return space_of_condition(item.task, condition_of(sealed) or item.condition) if chains is None else chains


def after_step(space: DetectorSpace, placed: tuple[int, ...], step: Step[str]) -> DetectorSpace:
    """Return the space after a step; `placed` is on the detector after it."""
    remaining_space = space if step.reading is None else space.after(placed, step.reading)
    return remaining_space.after_moves(step.cost) if isinstance(remaining_space, ChainSpace) else remaining_space


def space_after(space: DetectorSpace, task: Task, steps: Iterable[Step[str]]) -> DetectorSpace:
    """Return the space after these steps."""
    for placed, step in steps_with_state(task, steps):
        space = after_step(space, placed, step)
    return space


def exact_learner(item: BlicketItem) -> Found[Callable[[Task], Learner]] | Impossible:
    """Return a learner whose class contains the item's mechanism; Impossible if there is none.

    Where submissions are accepted after one switch only, it seeks activations; otherwise it avoids them.
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
    """Return all detectors that switch as often as the item's and count the same; None if the item's is not one.

    With noise the level is unknown. The class depends on nothing else of the item, so that it gives nothing away.
    """
    sealed, task = item.sealed, item.task
    by_moves = sealed.switch_by is SwitchBy.STEPS
    # by moves: a switch at the last move would concern no reading
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
