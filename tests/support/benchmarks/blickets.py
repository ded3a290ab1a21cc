"""Items, detectors and recorded episodes of blickets for tests."""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain, combinations, permutations
from typing import Any

import msgspec
from hypothesis import strategies as st

from calibrant.dsl.blickets.episode import BlicketEpisode
from calibrant.dsl.blickets.item import (
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
    all_rules,
    names_of,
    set_of,
)
from calibrant.dsl.blickets.records import ItemRecord, item_from_record
from calibrant.dsl.episode import Action, Episode, Step
from tests.support.shared import matching, shared_file, shared_json, shared_records

# --- Items, actions and shared vectors of the extended blickets, for tests --------------------------------------------
LETTERS = "ABCDEFGH"


def vectors(kind: str) -> Iterator[dict[str, Any]]:
    """Return the shared vectors of a kind: episode or space."""
    return matching(_all_vectors(), kind=kind)


@cache
def _all_vectors() -> tuple[dict[str, Any], ...]:
    return tuple(shared_records("vectors_dev.jsonl", part="blickets"))


def text_game_lines() -> Iterator[str]:
    """Yield the lines of the shared traces."""
    with gzip.open(shared_file("traces_dev.jsonl.gz", part="blickets"), "rt", encoding="utf-8") as lines:
        yield from lines


def vector_item(vector: dict[str, Any]) -> BlicketItem:
    """Return the item of an episode vector."""
    return item_from_record(msgspec.convert({**vector["item"], "sealed": vector["sealed"]}, ItemRecord))


def static_item(rule: Rule, n: int, budget: int = 75) -> BlicketItem:
    """Return a detector with one rule and no surprises."""
    condition = Condition.CONJUNCTIVE if rule.form is Form.CONJUNCTIVE else Condition.DISJUNCTIVE
    return BlicketItem("static", condition, Task(tuple(LETTERS[:n]), budget), Sealed((Mechanism(rule),)))


def opened(item: BlicketItem, actions: list[Any]) -> BlicketEpisode:
    """Return an episode after these actions."""
    episode = BlicketEpisode(item)
    for action in actions:
        episode.act(action)
    return episode


@st.composite
def mechanisms(draw: st.DrawFn, n: int) -> Mechanism:
    if draw(st.booleans()):
        return Mechanism(draw(st.sampled_from(all_rules(n))))
    order = draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=n, unique=True))
    return Mechanism(Rule(Form.CONJUNCTIVE, set_of(order)), tuple(order))


@st.composite
def items(draw: st.DrawFn) -> BlicketItem:
    """Items with every condition and option, many of them in combinations that no suite uses."""
    n = draw(st.integers(2, 5))
    switches = tuple(sorted(draw(st.sets(st.integers(1, 6), max_size=3))))
    start = st.lists(st.integers(0, n - 1), max_size=n, unique=True).map(tuple)
    condition = draw(st.sampled_from(Condition))
    task = Task(
        tuple(LETTERS[:n]),
        draw(st.integers(1, 25)),
        draw(st.sampled_from(Count)),
        draw(st.sampled_from(OrderReading)),
        condition if draw(st.booleans()) else None,
        draw(st.booleans()),
    )
    sealed = Sealed(
        tuple(draw(mechanisms(n)) for _ in range(len(switches) + 1)),
        switches,
        draw(st.sampled_from(SwitchBy)),
        draw(st.sampled_from([1.0, 0.7, 0.2])),
        draw(st.integers(0, 3)),
        tuple(draw(st.lists(st.sampled_from([0.0, 0.5, 0.9]), max_size=5))),
        draw(st.none() | start),
        Exposure(draw(st.integers(0, 8)), draw(st.booleans())),
        draw(st.booleans()),
    )
    return BlicketItem("drawn", condition, task, sealed, {"stratum": "test"})


JUNK: st.SearchStrategy[Any] = st.recursive(
    st.sampled_from([None, True, 0, 1.5, "", "A", "conjunctive", "\x00", "\ud800", 10**30]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["place", "remove", "check", "rule", "blickets", "x"]), inner, max_size=3)
    ),
    max_leaves=6,
)


def actions(n: int) -> st.SearchStrategy[list[Any]]:
    """Sequences of mostly legal actions with refusals, submissions and junk between them."""
    names = [*LETTERS[:n], "Z"]
    moves = [{verb: name} for name in names for verb in ("place", "place", "remove")]
    rules = [{"rule": str(rule.form), "blickets": list(names_of(rule.blickets, LETTERS))} for rule in all_rules(n)]
    rare = st.sampled_from(rules).map(lambda rule: {"check": rule}) | JUNK
    mostly = st.lists(st.sampled_from(moves), max_size=40)
    return st.one_of(
        mostly, st.tuples(mostly, st.lists(rare, max_size=2), mostly).map(lambda parts: list(chain(*parts)))
    )


def text_game_expected() -> dict[str, Any]:
    """Return the counts that the shared traces have to give."""
    counts: dict[str, Any] = shared_json("traces_dev_expected.json", part="blickets")
    return counts


# --- The twin of an episode: it knows the recorded steps only, and fails on any action that was not taken then --------
class Twin:
    """Behaves as an episode did, from its transcript alone."""

    def __init__(self, original: Episode[Any, Any], opening: int = 0) -> None:
        """Copy an episode.

        opening: steps that it had before the first action
        """
        self.task = original.task
        self._recorded = list(original.steps)
        self._allowance = original.left + sum(step.cost for step in self._recorded)
        self._next = opening
        self._ended = original.closed

    @property
    def steps(self) -> Sequence[Step[Any]]:
        return self._recorded[: self._next]

    @property
    def left(self) -> int:
        return self._allowance - sum(step.cost for step in self.steps)

    @property
    def closed(self) -> bool:
        return self._ended and self._next == len(self._recorded)

    def act(self, action: Action) -> Step[Any]:
        if self._next >= len(self._recorded) or dict(self._recorded[self._next].action) != dict(action):
            raise AssertionError(f"step {self._next}: {dict(action)} was not taken in the original")
        self._next += 1
        return self._recorded[self._next - 1]


# Detectors of every family by plain enumeration: members are listed, and each reading strikes out those it refutes
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
