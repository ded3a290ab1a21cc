"""Which space and which learner know a condition; and the space that an episode's readings leave."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from dsl.blickets.item import BlicketItem, Condition, SwitchBy, Task
from dsl.blickets.readings import readings
from dsl.episode import Step
from solvers.blickets.aware import Seek, SwitchAware
from solvers.blickets.graded import GradedSpace
from solvers.blickets.learner import Greedy, Learner, Static
from solvers.blickets.noise import RELIABILITIES, NoiseSpace
from solvers.blickets.order import MAX_CONTROLLED, OrderSpace
from solvers.blickets.static import StaticSpace
from solvers.blickets.switch import MAX_SWITCH, SwitchSpace
from solvers.blickets.universal import UniversalSpace
from solvers.outcome import Found, Impossible

DetectorSpace: TypeAlias = StaticSpace | GradedSpace | SwitchSpace | OrderSpace | NoiseSpace | UniversalSpace


def knowing_space(task: Task, condition: Condition | None) -> DetectorSpace:
    """The space of detectors that behave as a condition says, before any reading.

    Levels of a graded detector are read where there is one rule; elsewhere only whether it is active. A switch is one
    switch by activations. What has both a switch and noise is in no space: the nearest is the mixture, which is also
    what knows no condition (None).
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
        case _:
            return UniversalSpace.full(task.n, task.count, task.order_reading)


def space_after(space: DetectorSpace, task: Task, steps: Iterable[Step[str]]) -> DetectorSpace:
    """What is left of a space after the readings of these steps."""
    for placed, reading in readings(task, steps):
        space = space.after(placed, reading)
    return space


def exact_learner(item: BlicketItem) -> Found[Callable[[Task], Learner]] | Impossible:
    """A learner whose class has the item's mechanism; Impossible if there is none here.

    Where submissions are accepted after the switch only, it seeks activations; otherwise it avoids them.
    """
    sealed = item.sealed
    ordered = [mechanism.order for mechanism in sealed.mechanisms if mechanism.order is not None]
    if sealed.switches:
        known = len(sealed.switches) == 1 and sealed.switch_by is SwitchBy.ACTIVATIONS and not ordered
        first, second = (mechanism.rule.canonical for mechanism in sealed.mechanisms[:2])
        if known and sealed.p == 1 and sealed.switches[0] <= MAX_SWITCH and first != second:
            return Found(Seek if sealed.exposure.after_switch else SwitchAware)
    elif ordered:
        if sealed.p == 1 and len(ordered[0]) > 1 and item.task.n <= MAX_CONTROLLED:
            return Found(lambda task: Greedy(task, OrderSpace.full(task.n, task.order_reading)))
    elif sealed.p == 1:
        return Found((lambda task: Greedy(task, GradedSpace.full(task.n))) if item.task.graded else Static)
    elif sealed.p in RELIABILITIES:
        return Found(lambda task: Greedy(task, NoiseSpace.full(task.n)))
    return Impossible("one rule, one switch by activations, one order, or one rule with noise of a known level")
