"""Rules of a blicket detector: which sets of objects activate it.

Objects are numbered in the order of the task; a set of objects is an integer whose bit i stands for object i. A
singleton is the same function in either form; its canonical form is disjunctive.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from functools import cache
from typing import Any, NamedTuple

from calibrant.dsl.episode import ActionError
from calibrant.dsl.errors import short_repr


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
        """The rule that stands for all of the same function: a singleton is disjunctive."""
        return Rule(Form.DISJUNCTIVE, self.blickets) if self.blickets.bit_count() == 1 else self

    def as_json(self, objects: Sequence[str]) -> dict[str, Any]:
        """{"rule": ..., "blickets": [...]} with names in the order of the objects."""
        return {"rule": str(self.form), "blickets": list(names_of(self.blickets, objects))}

    def in_words(self, objects: Sequence[str]) -> str:
        return f"{self.form} {', '.join(names_of(self.blickets, objects))}"


@cache
def all_rules(n: int) -> tuple[Rule, ...]:
    """Return the distinct rules over n objects, 2 (2^n - 1) - n of them.

    Conjunctive before disjunctive ones, each in the order of the integers of their sets.
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
    """Return whether all objects of `order` are on the detector and were placed in this order.

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
