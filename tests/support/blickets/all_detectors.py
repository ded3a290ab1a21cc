"""Detectors of every family by plain enumeration: members are listed, and each reading strikes out those it refutes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, permutations

Names = tuple[str, ...]
NamedRule = tuple[str, frozenset[str]]  # a singleton is listed as disjunctive only


def named_rules(objects: Names) -> list[NamedRule]:
    sets = [frozenset(chosen) for k in range(1, len(objects) + 1) for chosen in combinations(objects, k)]
    return [("all", s) for s in sets if len(s) > 1] + [("any", s) for s in sets]


def lights(rule: NamedRule, placed: Names) -> bool:
    form, blickets = rule
    return blickets <= set(placed) if form == "all" else bool(blickets & set(placed))


def lights_in_order(order: Names, placed: Names, *, contiguous: bool) -> bool:
    if contiguous:
        return "".join(order) in "".join(placed)  # names of one letter
    return [name for name in placed if name in order] == list(order)


@dataclass(frozen=True)
class Switcher:
    """One member of the switching family with what it has counted."""

    first: NamedRule
    second: NamedRule
    switch: int

    def rule(self, activations: int) -> NamedRule:
        return self.first if activations < self.switch else self.second


def switchers(objects: Names, max_switch: int) -> list[Switcher]:
    rules = named_rules(objects)
    return [
        Switcher(first, second, n)
        for n in range(1, max_switch + 1)
        for first in rules
        for second in rules
        if first != second
    ]


def all_orders(objects: Names) -> list[Names]:
    return [order for k in range(2, len(objects) + 1) for order in permutations(objects, k)]


def toggles(objects: Names, placed: Names) -> Iterator[Names]:
    """Every placement sequence that one move leads to."""
    for name in objects:
        yield tuple(other for other in placed if other != name) if name in placed else (*placed, name)
