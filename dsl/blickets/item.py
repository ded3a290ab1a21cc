"""Items of the extended blickets: rules, conditions, the unreliable detector's draws, copies under other names.

Objects are numbered in the order of the task; a set of objects is an integer whose bit i stands for object i. A
singleton is the same function in either form; its canonical form is disjunctive.

A mechanism belongs to at most one condition (MEANINGS). A rule of one blicket is the same function in both forms, so
an item may state either static condition for it, unless the item is a `strict_singleton`.
"""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

from calibrant.dsl.episode import ActionError
from calibrant.dsl.errors import in_one_line, short_repr
from calibrant.dsl.pictures import Picture, Pictured
from calibrant.dsl.text import Wording, plural

# --- Rules of a blicket detector: which sets of objects activate it ---------------------------------------------------


class Form(StrEnum):
    """The two rule types an agent is told about."""

    CONJUNCTIVE = "conjunctive"
    DISJUNCTIVE = "disjunctive"


class Rule(NamedTuple):
    """A rule type and a non-empty set of blickets (bit i: object i)."""

    form: Form
    blickets: int

    def active(self, present: int) -> bool:
        """Return whether the detector is active with these objects on it."""
        if self.form is Form.CONJUNCTIVE:
            return self.blickets & ~present == 0
        return self.blickets & present != 0

    @property
    def canonical(self) -> Rule:
        """The canonical rule of the same function: a singleton becomes disjunctive."""
        return Rule(Form.DISJUNCTIVE, self.blickets) if self.blickets.bit_count() == 1 else self

    def as_json(self, objects: Sequence[str]) -> dict[str, Any]:
        """Return {"rule": ..., "blickets": [...]}, names in the order of the objects."""
        return {"rule": str(self.form), "blickets": list(names_of(self.blickets, objects))}

    def in_words(self, objects: Sequence[str]) -> str:
        return f"{self.form} {', '.join(names_of(self.blickets, objects))}"


@cache
def all_rules(n: int) -> tuple[Rule, ...]:
    """Return the distinct rules over n objects, 2 (2^n - 1) - n of them.

    Conjunctive rules come before disjunctive ones, each kind by ascending integer of the set.
    """
    sets = range(1, 1 << n)
    conjunctive = [Rule(Form.CONJUNCTIVE, blickets) for blickets in sets if blickets.bit_count() > 1]
    return (*conjunctive, *(Rule(Form.DISJUNCTIVE, blickets) for blickets in sets))


def names_of(blickets: int, objects: Sequence[str]) -> tuple[str, ...]:
    return tuple(name for i, name in enumerate(objects) if blickets >> i & 1)


def set_of(indices: Iterable[int]) -> int:
    """Return the set of these object numbers, as an integer."""
    present = 0
    for index in indices:
        present |= 1 << index
    return present


def in_order(order: Sequence[int], placed: Sequence[int], *, contiguous: bool) -> bool:
    """Return whether all objects of `order` are on the detector and were placed in that order.

    placed: the objects on the detector, first placed first
    contiguous: no other object may lie between them; otherwise others are ignored
    """
    if contiguous:
        width = len(order)
        starts = range(len(placed) - width + 1)
        return any(tuple(placed[start : start + width]) == tuple(order) for start in starts)
    return tuple(index for index in placed if index in order) == tuple(order)


def object_numbers(names: object, objects: Sequence[str]) -> tuple[int, ...]:
    """Return the numbers of a non-empty list of distinct object names, in the order listed; `ActionError` otherwise."""
    if not isinstance(names, list | tuple) or not names:
        raise ActionError(f"expected a non-empty list of objects, found {short_repr(names)}")
    for name in names:
        if not isinstance(name, str) or name not in objects:
            raise ActionError(f"unknown object {short_repr(name)}; the objects are {short_repr(', '.join(objects))}")
    if len(set(names)) != len(names):
        raise ActionError(f"an object is listed twice in {short_repr(list(names))}")
    return tuple(objects.index(name) for name in names)


def rule_from_json(value: object, objects: Sequence[str]) -> Rule:
    """Return the rule that {"rule": "conjunctive" | "disjunctive", "blickets": [names]} states.

    `ActionError` otherwise.
    """
    if not isinstance(value, Mapping) or value.keys() != {"rule", "blickets"}:
        raise ActionError(f"expected an object with the keys rule and blickets, found {short_repr(value)}")
    if value["rule"] not in list(Form):
        raise ActionError(f"unknown rule type {short_repr(value['rule'])}; they are conjunctive and disjunctive")
    return Rule(Form(value["rule"]), set_of(object_numbers(value["blickets"], objects)))


@cache
def active_sets(rule: Rule, n: int) -> int:
    """Return the rule's truth table: bit s is whether the set of objects with integer s activates the detector."""
    return sum(1 << present for present in range(1 << n) if rule.active(present))


# --- Items of the extended blickets: what an agent is told, and the hidden mechanism of the detector ------------------
MIN_OBJECTS, MAX_OBJECTS = 2, 8


class Condition(StrEnum):
    """The kind of mechanism behind the detector."""

    CONJUNCTIVE = "conjunctive"
    DISJUNCTIVE = "disjunctive"
    MODERATOR = "moderator"  # a silent switch to another rule
    ORDER = "order"
    STOCHASTIC = "stochastic"
    NOISY_MODERATOR = "noisy-moderator"  # both a switch and an unreliable detector


class Count(StrEnum):
    """The events that count as activations: every ACTIVE reading, or only those that follow another (or no) reading."""

    LEVEL = "level"
    EDGE = "edge"


class OrderReading(StrEnum):
    """The reading of an order: whether distractors between ordered blickets matter."""

    RELATIVE = "relative"
    CONTIGUOUS = "contiguous"


class SwitchBy(StrEnum):
    """The unit of a switch point: activations, or moves (refused ones included)."""

    ACTIVATIONS = "activations"
    STEPS = "steps"


@dataclass(frozen=True, slots=True)
class Task:
    """All that a solver may read.

    objects: names; an object's number is its index here
    budget: maximal number of moves
    count, order_reading: conventions of the environment, stated in the prompt
    condition: None unless the item is informed
    graded: whether an ACTIVE reading also tells how many blickets of the rule in force are on the detector
    wording: of the prompt
    """

    objects: tuple[str, ...]
    budget: int
    count: Count = Count.LEVEL
    order_reading: OrderReading = OrderReading.RELATIVE
    condition: Condition | None = None
    graded: bool = False
    wording: Wording = "standard"

    @property
    def n(self) -> int:
        return len(self.objects)

    def __repr__(self) -> str:
        return f"<Task: {self.n} objects, {self.budget} moves>"


@dataclass(frozen=True, slots=True)
class Mechanism:
    """A rule, and the order in which its blickets have to be placed if that matters (object numbers)."""

    rule: Rule
    order: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Exposure:
    """When a submission is first accepted; both conditions have to hold.

    moves: number of moves after which it is accepted
    after_switch: accepted only when the count of activations (or moves) is above the last switch point
    """

    moves: int = 0
    after_switch: bool = False


@dataclass(frozen=True, slots=True)
class Sealed:
    """The part of an item that is hidden from the solver.

    mechanisms: in force one after the other, mechanism 0 from the start
    switches: ascending; mechanism k + 1 comes into force after `switches[k]` activations (or moves)
    p: probability that a satisfied rule reads ACTIVE; 1 without noise
    noise_seed: seed of the uniform draws, one for each step number
    draws: given values of the first draws; later ones are from the seed
    start_on: objects that are on the detector at the start, in list order; None starts empty and without a reading
    exposure: when submissions are accepted
    strict_singleton: whether an answer to a singleton rule must state the rule's own form
    """

    mechanisms: tuple[Mechanism, ...]
    switches: tuple[int, ...] = ()
    switch_by: SwitchBy = SwitchBy.ACTIVATIONS
    p: float = 1.0
    noise_seed: int = 0
    draws: tuple[float, ...] = ()
    start_on: tuple[int, ...] | None = None
    exposure: Exposure = Exposure()
    strict_singleton: bool = False

    def __repr__(self) -> str:
        return "<Sealed: what is behind the detector>"

    def phase(self, activations: int, moves: int) -> int:
        """Return the index of the mechanism in force after so many activations and moves."""
        return bisect_right(self.switches, activations if self.switch_by is SwitchBy.ACTIVATIONS else moves)


@dataclass(frozen=True, slots=True)
class BlicketItem(Pictured):
    """One item. labels: stratum, seed and difficulty, for tables and matching."""

    id: str
    condition: Condition
    task: Task
    sealed: Sealed
    labels: Mapping[str, str] = field(default_factory=dict)

    def picture(self) -> Picture:
        """Return what a solver may read before its first move."""
        task = self.task
        facts = [f"at most {plural(task.budget, 'moves')}", f"reading of order: {task.order_reading}"]
        facts += [] if task.condition is None else [f"condition: {task.condition}"]
        facts += ["readings are graded"] if task.graded else []
        objects = tuple((name,) for name in task.objects)
        return Picture(
            f"{self.id}: {plural(len(objects), 'objects')} and a detector",
            tuple(facts),
            columns=("object",),
            rows=objects,
            num_rows=len(objects),
        )

    def __repr__(self) -> str:
        return f"<BlicketItem {in_one_line(self.id)[:60]}: {self.task.n} objects, {self.task.budget} moves>"

    @property
    def benchmark(self) -> str:
        return "blickets"

    @property
    def setting(self) -> str:
        return str(self.condition)

    @property
    def stratum(self) -> str:
        return self.labels.get("stratum", "")


# --- The condition of a mechanism, and the error for an item that states another --------------------------------------
MEANINGS = {
    Condition.CONJUNCTIVE: "one conjunctive rule, no order, no switch, p = 1",
    Condition.DISJUNCTIVE: "one disjunctive rule, no order, no switch, p = 1",
    Condition.MODERATOR: "two rules or more, each another function than the one before, no order, p = 1",
    Condition.ORDER: "one rule with an order of two blickets or more, no switch, p = 1",
    Condition.STOCHASTIC: "one rule, no order, no switch, p below 1",
    Condition.NOISY_MODERATOR: "two rules or more, each another function than the one before, no order, p below 1",
}


def condition_of(sealed: Sealed) -> Condition | None:
    """Return the condition of a mechanism, as MEANINGS defines it; None if it is in none."""
    first = sealed.mechanisms[0]
    noisy = sealed.p < 1
    if any(mechanism.order is not None for mechanism in sealed.mechanisms):
        is_order = not sealed.switches and not noisy and len(first.order or ()) > 1
        return Condition.ORDER if is_order else None
    if sealed.switches:
        if repeated_rule(sealed):
            return None
        return Condition.NOISY_MODERATOR if noisy else Condition.MODERATOR
    if noisy:
        return Condition.STOCHASTIC
    return Condition.CONJUNCTIVE if first.rule.form is Form.CONJUNCTIVE else Condition.DISJUNCTIVE


def repeated_rule(sealed: Sealed) -> int:
    """Return the number, from 1, of the first rule equivalent to the rule before it; 0 if there is none."""
    rules = [mechanism.rule.canonical for mechanism in sealed.mechanisms]
    return next((number for number, (rule, next_rule) in enumerate(pairwise(rules), 2) if rule == next_rule), 0)


def contradiction(item: BlicketItem) -> str:
    """Return why the condition of an item is not that of its mechanism; empty if it is."""
    sealed, condition = item.sealed, condition_of(item.sealed)
    if condition is item.condition:
        return ""
    static = (Condition.CONJUNCTIVE, Condition.DISJUNCTIVE)
    single = sealed.mechanisms[0].rule.blickets.bit_count() == 1 and not sealed.strict_singleton
    if single and condition in static and item.condition in static:
        return ""
    return f"condition {item.condition} is {MEANINGS[item.condition]}; the mechanism is {_in_words(sealed)}"


def _in_words(sealed: Sealed) -> str:
    orders = [len(mechanism.order) for mechanism in sealed.mechanisms if mechanism.order is not None]
    num_rules = len(sealed.mechanisms)
    parts = [f"one {sealed.mechanisms[0].rule.form} rule" if num_rules == 1 else f"{num_rules} rules"]
    repeated = repeated_rule(sealed)
    parts += [f"rule {repeated} the same as rule {repeated - 1}"] if repeated else []
    parts += [f"an order of {orders[0]}" if orders else "no order", f"p = {sealed.p:g}"]
    return ", ".join(parts)


# --- Items with renamed and reordered objects: the same detector ------------------------------------------------------


def object_role(item: BlicketItem, index: int) -> tuple[int, ...]:
    """Return a key of an object's role in rules, orders and start; objects with equal keys are interchangeable."""
    roles: list[int] = []
    for mechanism in item.sealed.mechanisms:
        order = mechanism.order or ()
        roles += [mechanism.rule.blickets >> index & 1, order.index(index) if index in order else -1]
    start = item.sealed.start_on or ()
    return *roles, start.index(index) if index in start else -1


def reorder_objects(item: BlicketItem, order: Sequence[int], names: Sequence[str]) -> BlicketItem:
    """Return an item whose object k is object `order[k]` of this one, called `names[k]`; its id stays."""
    new_index = {old: new for new, old in enumerate(order)}

    def reorder(mechanism: Mechanism) -> Mechanism:
        blickets = sum(1 << new_index[i] for i in range(len(order)) if mechanism.rule.blickets >> i & 1)
        new_order = None if mechanism.order is None else tuple(new_index[i] for i in mechanism.order)
        return Mechanism(mechanism.rule._replace(blickets=blickets), new_order)

    sealed, start = item.sealed, item.sealed.start_on
    return replace(
        item,
        task=replace(item.task, objects=tuple(names)),
        sealed=replace(
            sealed,
            mechanisms=tuple(map(reorder, sealed.mechanisms)),
            start_on=None if start is None else tuple(new_index[i] for i in start),
        ),
    )


# --- Draws of the unreliable detector: one uniform number for each step number, the same in every replay --------------


class Draws:
    """Uniform numbers by step number: the item's given draws, then the stream of its seed.

    Draw t is the t-th number of `random.Random(noise_seed)`, whose `random()` gives the same numbers in every Python.
    """

    __slots__ = ("_draws", "_stream")

    def __init__(self, sealed: Sealed) -> None:
        self._stream = random.Random(sealed.noise_seed)
        self._draws = list(sealed.draws)
        for _ in self._draws:
            self._stream.random()

    def __getitem__(self, t: int) -> float:
        while len(self._draws) <= t:
            self._draws.append(self._stream.random())
        return self._draws[t]
