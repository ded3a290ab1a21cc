"""What each disclosure admits, against the definitions of docs/semantics.md, "Legality", by enumeration."""

from __future__ import annotations

from itertools import pairwise, permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant.dsl.formulas.formula import Formula
from calibrant.dsl.formulas.text import parse
from calibrant.dsl.replayscm.disclosure import Blocks, HiddenOrder, HiddenRoots, Ordered, Violation, key_violation
from tests.support.effort import examples
from tests.support.replayscm.strategies import formulas

VARIABLES = ("X1", "X2", "X3", "X10", "Y")
KnownRoots = Ordered | Blocks | HiddenOrder


@st.composite
def disclosures(draw: st.DrawFn) -> KnownRoots:
    """Any of the three that name the roots; roots may stand anywhere in an order or a block."""
    order = draw(st.permutations(VARIABLES))
    roots = tuple(order[: draw(st.integers(1, 3))])
    shuffled = tuple(draw(st.permutations(VARIABLES)))
    match draw(st.integers(0, 2)):
        case 0:
            return Ordered(shuffled, roots)
        case 1:
            cuts = sorted(draw(st.sets(st.integers(1, len(shuffled) - 1), max_size=2)))
            edges = [0, *cuts, len(shuffled)]
            return Blocks(tuple(shuffled[a:b] for a, b in pairwise(edges)), roots)
        case _:
            return HiddenOrder(VARIABLES, roots)


def _may_mention(disclosure: KnownRoots, parent: str, child: str) -> bool:
    if parent == child:
        return False
    match disclosure:
        case Ordered():
            return disclosure.order.index(parent) < disclosure.order.index(child)
        case Blocks():
            place = {v: number for number, block in enumerate(disclosure.blocks) for v in block}
            return place[parent] <= place[child]
        case HiddenOrder():
            return True


@given(disclosures())
@settings(deadline=None, max_examples=examples(60))
def test_admissible_parents_are_those_of_the_table(disclosure: KnownRoots) -> None:
    for child in VARIABLES:
        expected = {parent for parent in VARIABLES if _may_mention(disclosure, parent, child)}
        assert disclosure.admissible_parents(child) == expected
    assert set(disclosure.endogenous) == set(VARIABLES) - set(disclosure.roots)
    assert len(disclosure.endogenous) == len(VARIABLES) - len(disclosure.roots)


def _has_order(mechanisms: dict[str, Formula]) -> bool:
    """Return whether some order of the endogenous variables has each after all that its mechanism mentions."""
    return any(
        all(mechanisms[v].mentioned.isdisjoint(order[place:]) for place, v in enumerate(order))
        for order in permutations(mechanisms)
    )


@st.composite
def maps(draw: st.DrawFn, disclosure: KnownRoots) -> dict[str, Formula]:
    """Any map; often of the right keys, and often with admissible mentions only."""
    keys = set(disclosure.endogenous)
    if draw(st.integers(0, 4)) == 0:
        keys ^= draw(st.sets(st.sampled_from([*VARIABLES, "Q"]), max_size=2))
    tame = draw(st.booleans())
    over = {
        key: [u for u in VARIABLES if not tame or key == "Q" or _may_mention(disclosure, u, key)] or ["X1"]
        for key in keys
    }
    return {key: draw(formulas(over[key], max_size=4)) for key in draw(st.permutations(sorted(keys)))}


@given(st.data())
@settings(deadline=None, max_examples=examples(200))
def test_the_first_violation_is_the_one_by_definition(data: st.DataObject) -> None:
    """Unknown keys, then missing keys, then mentions variable by variable, then circles."""
    disclosure = data.draw(disclosures())
    mechanisms = data.draw(maps(disclosure))
    found = disclosure.violation(mechanisms)
    endogenous = disclosure.endogenous
    unknown = {key for key in mechanisms if key not in endogenous}
    missing = {v for v in endogenous if v not in mechanisms}
    if unknown or missing:
        _check(found, "unknown_keys" if unknown else "missing_keys", unknown or missing)
        return
    for v in endogenous:
        strangers = {u for u in mechanisms[v].mentioned if not _may_mention(disclosure, u, v)}
        if strangers:
            _check(found, "parent", strangers)
            assert found is not None
            assert v in found.reason
            return
    if _has_order(mechanisms):
        assert found is None
    else:
        _check(found, "cycle", None)
        assert found is not None
        assert not _has_order({v: mechanisms[v] for v in found.variables})  # the circle is among the named


def _check(found: Violation | None, kind: str, culprits: set[str] | None) -> None:
    assert found is not None
    assert found.kind == kind
    assert culprits is None or set(found.variables) == culprits
    assert "\n" not in found.reason


def _map(**texts: str) -> dict[str, Formula]:
    return {variable: parse(text) for variable, text in texts.items()}


ORDER = ("X3", "X6", "X1", "X4")
ORDERED = Ordered(ORDER, ("X3", "X6"))
HIDDEN = HiddenOrder(("X1", "X3", "X4", "X6"), ("X3", "X6"))


@pytest.mark.parametrize(
    ("mechanisms", "ordered", "hidden"),
    [
        (_map(X1="(not X3)", X4="(xor X1 X6)"), "", ""),
        (_map(X1="(and X4 X3)", X4="(not X6)"), "parent", ""),
        (_map(X1="(and X4 X3)", X4="(xor X6 X1 X1)"), "parent", "cycle"),
        (_map(X1="(or X3 (and X3 X1))", X4="X6"), "parent", "parent"),  # an inert mention of itself
        (_map(X1="X4"), "missing_keys", "missing_keys"),
        (_map(X1="X4", X6="X3"), "unknown_keys", "unknown_keys"),
    ],
)
def test_the_worked_example_of_the_specification(mechanisms: dict[str, Formula], ordered: str, hidden: str) -> None:
    for disclosure, kind in ((ORDERED, ordered), (HIDDEN, hidden)):
        found = disclosure.violation(mechanisms)
        assert (found.kind if found else "") == kind


def test_acyclicity_is_judged_on_mentions_and_not_on_functions() -> None:
    inert = _map(X1="(xor X4 X3 X3)", X4="(xor X6 X1 X1)")  # X4 does not depend on X1, yet it mentions it
    found = HIDDEN.violation(inert)
    assert found is not None
    assert (found.kind, set(found.variables)) == ("cycle", {"X1", "X4"})


def test_what_hidden_roots_admit() -> None:
    disclosure = HiddenRoots(("X1", "X2", "X10"), 2)
    assert {v: set(disclosure.admissible_parents(v)) for v in disclosure.variables} == {
        "X1": {"X2", "X10"},
        "X2": {"X1", "X10"},
        "X10": {"X1", "X2"},
    }
    given = disclosure.given_roots(["X10", "X2"])
    assert given == HiddenOrder(("X1", "X2", "X10"), ("X2", "X10"))
    assert given.endogenous == ("X1",)


def test_keys_are_named_in_full() -> None:
    found = key_violation(["b", " X1", "X2"], ("X1", "X2"))
    assert found is not None
    assert (found.kind, found.variables) == ("unknown_keys", (" X1", "b"))
    assert "X1, X2" in found.reason
    assert key_violation(["X2", "X1"], ("X1", "X2")) is None


def test_labels_are_those_of_tables() -> None:
    labels = [Ordered.label, Blocks.label, HiddenOrder.label, HiddenRoots.label]
    assert labels == ["Ordered", "Block", "Hidden-order", "Hidden-roots"]
