"""Items drawn by seed: the conditions of the paper (arXiv:2604.20039, section 4), and suites that go beyond it.

Item i depends on the plan, the seed and i alone, not on how many items are drawn. Roles of objects are drawn; their
names are letters.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from string import ascii_uppercase
from types import MappingProxyType

from calibrant.dsl.blickets.item import (
    MAX_OBJECTS,
    MIN_OBJECTS,
    BlicketItem,
    Condition,
    Count,
    Exposure,
    Form,
    Mechanism,
    OrderReading,
    Rule,
    Sealed,
    SwitchBy,
    Task,
    set_of,
)

AT_ONCE = Exposure()
START_SHARE = 0.1  # probability that an object is on the detector at a random start, as in the public text game
BUDGETS: Mapping[int, int] = MappingProxyType({3: 50, 4: 100, 5: 75})  # moves by objects in the paper; else 15 each


@dataclass(frozen=True, slots=True)
class Later:
    """A rule that replaces the one before it at a switch point.

    size: number of blickets; shared: number of these that are blickets of the first rule too
    """

    form: Form
    size: int
    switch: int
    shared: int = 0


EASY = Later(Form.DISJUNCTIVE, 1, 3)
HARD = Later(Form.CONJUNCTIVE, 3, 3)


@dataclass(frozen=True, slots=True)
class Plan:
    """The distribution that items are sampled from.

    condition: the first rule is disjunctive if it is DISJUNCTIVE, else conjunctive
    blickets: number of blickets of the first rule, all of them ordered if the condition is ORDER
    later: the rules after the first, by ascending switch point
    p: probability that a satisfied rule reads ACTIVE
    conjunctive_share: probability that an item's only rule is conjunctive (unequal priors), which also draws the
        item's condition; None for the form that `condition` says
    random_start: each object is on the detector at the start with probability START_SHARE
    series: number of consecutive items of a series; these share no object name, and their `labels` have the numbers
        of the series and of the item in it
    budget: maximal number of moves; None for the paper's
    """

    condition: Condition
    n: int = 5
    blickets: int = 2
    later: tuple[Later, ...] = ()
    switch_by: SwitchBy = SwitchBy.ACTIVATIONS
    p: float = 1.0
    conjunctive_share: float | None = None
    count: Count = Count.LEVEL
    order_reading: OrderReading = OrderReading.RELATIVE
    informed: bool = False
    graded: bool = False
    random_start: bool = False
    strict_singleton: bool = False
    exposure: Exposure = AT_ONCE
    series: int = 1
    budget: int | None = None

    def __post_init__(self) -> None:
        _check(self)

    @property
    def moves(self) -> int:
        """The budget of an item."""
        return self.budget if self.budget is not None else BUDGETS.get(self.n, 15 * self.n)


def _check(plan: Plan) -> None:
    """Raise `ValueError` for an option with which no item can be drawn."""
    free = plan.n - plan.blickets
    switching = plan.condition in (Condition.MODERATOR, Condition.NOISY_MODERATOR)
    noisy = plan.condition in (Condition.STOCHASTIC, Condition.NOISY_MODERATOR)
    points = [later.switch for later in plan.later]
    problems = {
        f"n = {plan.n}; {MIN_OBJECTS} to {MAX_OBJECTS} objects are allowed": not MIN_OBJECTS <= plan.n <= MAX_OBJECTS,
        f"blickets = {plan.blickets}; 1 to n = {plan.n} are allowed": not 1 <= plan.blickets <= plan.n,
        f"{len(plan.later)} later rules with condition {plan.condition}": switching != bool(plan.later),
        f"p = {plan.p} with condition {plan.condition}": not 0 < plan.p <= 1 or noisy != (plan.p < 1),
        f"switch points {points} are not ascending from 1": points != sorted(set(points)) or min(points, default=1) < 1,
        f"conjunctive_share = {plan.conjunctive_share} is no probability, or other rules follow": (
            plan.conjunctive_share is not None and not (0 <= plan.conjunctive_share <= 1 and not plan.later)
        ),
        f"series = {plan.series}; 1 to {len(ascii_uppercase) // plan.n} of {plan.n} letters are allowed": (
            not 1 <= plan.series <= len(ascii_uppercase) // plan.n
        ),
        f"budget = {plan.moves}; 1 or more": plan.moves < 1,
    }
    for later in plan.later:
        parts = f"a later rule of {later.size} blickets, {later.shared} of them of the first {plan.blickets}"
        fits = 0 <= later.shared <= min(later.size, plan.blickets) and 0 <= later.size - later.shared <= free
        problems[f"{parts}, cannot be drawn from {plan.n} objects"] = not (later.size >= 1 and fits)
    for problem, holds in problems.items():
        if holds:
            raise ValueError(problem)


def sample_items(plan: Plan, seed: int, first: int = 0) -> Iterator[BlicketItem]:
    """Yield items first, first + 1, ... of a plan and seed, without end."""
    index = first
    while True:
        yield _item(plan, seed, index)
        index += 1


def _item(plan: Plan, seed: int, index: int) -> BlicketItem:
    rng = random.Random(f"blickets {seed} {index}")
    series, index_in_series = divmod(index, plan.series)
    condition = plan.condition
    if plan.conjunctive_share is not None:
        conjunctive = rng.random() < plan.conjunctive_share
        condition = Condition.CONJUNCTIVE if conjunctive else Condition.DISJUNCTIVE
    roles = rng.sample(range(plan.n), plan.n)
    start = [i for i in range(plan.n) if rng.random() < START_SHARE]
    sealed = Sealed(
        (_first(plan, condition, roles), *(_later(plan, later, roles) for later in plan.later)),
        tuple(later.switch for later in plan.later),
        plan.switch_by,
        plan.p,
        rng.getrandbits(32),
        start_on=tuple(start) if plan.random_start else None,
        exposure=plan.exposure,
        strict_singleton=plan.strict_singleton,
    )
    labels = {"seed": str(seed), "index": str(index)}
    if plan.series > 1:
        labels |= {"series": str(series), "place": str(index_in_series)}
    task = Task(
        tuple(_names(plan, seed, series, index_in_series)),
        plan.moves,
        plan.count,
        plan.order_reading,
        condition if plan.informed else None,
        plan.graded,
    )
    return BlicketItem(f"{condition}-{seed}-{index}", condition, task, sealed, labels)


def _names(plan: Plan, seed: int, series: int, index_in_series: int) -> list[str]:
    """Return the first n letters; in a series, n letters that no other item of it has."""
    if plan.series == 1:
        return list(ascii_uppercase[: plan.n])
    letters = random.Random(f"blickets names {seed} {series}").sample(ascii_uppercase, len(ascii_uppercase))
    return sorted(letters[index_in_series * plan.n : (index_in_series + 1) * plan.n])


def _first(plan: Plan, condition: Condition, roles: list[int]) -> Mechanism:
    chosen = tuple(roles[: plan.blickets])
    if condition is Condition.ORDER:
        return Mechanism(Rule(Form.CONJUNCTIVE, set_of(chosen)), chosen)
    form = Form.DISJUNCTIVE if condition is Condition.DISJUNCTIVE else Form.CONJUNCTIVE
    return Mechanism(Rule(form, set_of(chosen)))


def _later(plan: Plan, later: Later, roles: list[int]) -> Mechanism:
    new_objects = roles[plan.blickets : plan.blickets + later.size - later.shared]
    return Mechanism(Rule(later.form, set_of([*roles[: later.shared], *new_objects])))


def _moderator_plan(later: Later, **options: int) -> Plan:
    return Plan(Condition.MODERATOR, later=(later,), **options)  # type: ignore[arg-type]


# Plans by name: those of the paper, then those that go beyond it.
SUITES: Mapping[str, Plan] = MappingProxyType(
    {
        "conjunctive": Plan(Condition.CONJUNCTIVE),
        "disjunctive": Plan(Condition.DISJUNCTIVE),
        "easy-3": _moderator_plan(EASY),
        "easy-5": _moderator_plan(replace(EASY, switch=5)),
        "easy-7": _moderator_plan(replace(EASY, switch=7)),
        "easy-9": _moderator_plan(replace(EASY, switch=9)),
        "hard-3": _moderator_plan(HARD),
        "hard-3-edge": replace(_moderator_plan(HARD), count=Count.EDGE),
        "hard-3-short": _moderator_plan(HARD, budget=50),
        "hard-3-CD": _moderator_plan(replace(HARD, size=2)),
        "hard-3-AC": _moderator_plan(replace(HARD, size=2, shared=1)),
        "three-objects": _moderator_plan(EASY, n=3),
        "stochastic": Plan(Condition.STOCHASTIC, p=0.7),
        "order": Plan(Condition.ORDER),
        "order-2-of-4": Plan(Condition.ORDER, n=4),
        "order-3-of-4": Plan(Condition.ORDER, n=4, blickets=3),
        "order-4-of-4": Plan(Condition.ORDER, n=4, blickets=4),
        "order-5-of-5": Plan(Condition.ORDER, blickets=5),
        "unequal-priors": Plan(Condition.DISJUNCTIVE, conjunctive_share=0.2),
        "graded": Plan(Condition.DISJUNCTIVE, blickets=3, conjunctive_share=0.5, graded=True),
        "several-switches": Plan(Condition.MODERATOR, later=(EASY, Later(Form.CONJUNCTIVE, 2, 8, shared=1))),
        "switch-by-steps": Plan(Condition.MODERATOR, later=(replace(HARD, switch=12),), switch_by=SwitchBy.STEPS),
        "noisy-switch": Plan(Condition.NOISY_MODERATOR, later=(HARD,), p=0.8),
        "forced-exposure": Plan(Condition.MODERATOR, later=(HARD,), exposure=Exposure(after_switch=True)),
        "forced-moves": Plan(Condition.MODERATOR, later=(HARD,), exposure=Exposure(moves=30)),
        "series": Plan(Condition.MODERATOR, later=(HARD,), series=5),
    }
)
