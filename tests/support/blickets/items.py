"""Items, actions and shared vectors of the extended blickets, for tests."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from functools import cache
from itertools import chain
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
from tests.support.shared import matching, shared_file, shared_json, shared_records

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
