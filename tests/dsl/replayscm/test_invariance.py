"""What each disclosure admits, and worlds cell by cell."""

from __future__ import annotations

import pickle
from itertools import pairwise, permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant.dsl.formulas.formula import Formula
from calibrant.dsl.replayscm.disclosure import Blocks, HiddenOrder, HiddenRoots, Ordered, Violation, key_violation
from calibrant.dsl.replayscm.scm import Scm
from calibrant.dsl.replayscm.world import Intervention, Panel, World, columns_from_rows
from tests.support.effort import examples
from tests.support.replayscm.brute_force import observed_bit
from tests.support.replayscm.strategies import arbitrary_worlds, formulas, scms

# --- What each disclosure admits, against the definitions of docs/semantics.md, "Legality", by enumeration ------------
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
            place = {v: index for index, block in enumerate(disclosure.blocks) for v in block}
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
        all(mechanisms[v].mentioned.isdisjoint(order[index:]) for index, v in enumerate(order))
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


# --- Worlds as rows and as columns, and panels of many worlds, cell by cell -------------------------------------------
MODELS_AND_WORLDS = scms().flatmap(lambda model: st.tuples(st.just(model), arbitrary_worlds(model, max_worlds=5)))


@given(MODELS_AND_WORLDS)
@settings(deadline=None, max_examples=examples(60))
def test_rows_and_columns_show_the_same_cells(case: tuple[Scm, tuple[World, ...]]) -> None:
    for world in case[1]:
        expected = [{v: observed_bit(world, r, v) for v in world.variables} for r in range(len(world.units))]
        texts = ["".join(str(row[v]) for v in world.variables) for row in expected]
        assert list(world.rows()) == expected
        assert world.row_texts() == texts
        assert columns_from_rows(texts, len(world.variables)) == world.columns
        assert all(world.column(v) == bits for v, bits in zip(world.variables, world.columns, strict=True))


def test_no_rows_are_empty_columns() -> None:
    assert columns_from_rows([], 3) == (0, 0, 0)
    # a string is a unit's row, with a bit for each variable
    assert columns_from_rows(["0110", "1011"], 4) == (0b10, 0b01, 0b11, 0b10)


@given(MODELS_AND_WORLDS)
@settings(deadline=None, max_examples=examples(80))
def test_a_panel_is_its_worlds_one_after_another(case: tuple[Scm, tuple[World, ...]]) -> None:
    model, worlds = case
    panel = Panel(model.variables, worlds)
    cells = [(world, r) for world in worlds for r in range(world.num_rows)]
    assert panel.num_rows == len(cells)
    assert panel.all_rows.bit_count() == panel.all_rows.bit_length() == len(cells)
    for variable in model.variables:
        observed = sum(observed_bit(world, r, variable) << row for row, (world, r) in enumerate(cells))
        clamped = sum((variable in world.intervention.targets) << row for row, (world, _) in enumerate(cells))
        assert panel.columns[variable] == observed
        assert panel.clamped[variable] == clamped
    assert [panel.locate(row) for row in range(len(cells))] == cells
    assert panel.starts == tuple(sum(world.num_rows for world in worlds[:i]) for i in range(len(worlds) + 1))
    with pytest.raises(IndexError):
        panel.locate(len(cells))
    twin = pickle.loads(pickle.dumps(panel))
    assert (twin, twin.columns, twin.clamped) == (panel, panel.columns, panel.clamped)


def test_columns_of_worlds_may_come_in_any_order() -> None:
    one = World("a", Intervention(), ("X", "Y"), ("u0", "u1"), (0b01, 0b10))
    other = World("b", Intervention({"Y": 1}), ("Y", "X"), ("u0",), (1, 0))
    panel = Panel(("X", "Y"), (one, other))
    assert dict(panel.columns) == {"X": 0b001, "Y": 0b110}
    assert dict(panel.clamped) == {"X": 0, "Y": 0b100}


@pytest.mark.parametrize(
    ("intervention", "mode", "targets", "text"),
    [
        (Intervention(), "none", set(), "no intervention"),
        (Intervention({"X2": 0, "X1": 1}), "hard_constant", {"X1", "X2"}, "do(X1=1, X2=0)"),
        (Intervention({}, ("X3",)), "hard_assigned", {"X3"}, "do(X3 row by row)"),
        (Intervention({"X1": 1}, ("X3",)), "hard_assigned", {"X1", "X3"}, "do(X1=1; X3 row by row)"),
    ],
)
def test_what_an_intervention_is(intervention: Intervention, mode: str, targets: set[str], text: str) -> None:
    assert (intervention.mode, str(intervention)) == (mode, text)
    assert intervention.targets == frozenset(targets)


def test_interventions_with_one_signature_are_the_same_experiment() -> None:
    """Mode, constants and targets make it; two per-row worlds with equal targets share it."""
    assert Intervention({"X1": 1, "X2": 0}).signature == Intervention({"X2": 0, "X1": 1}).signature
    assert Intervention({}, ("X1", "X2")).signature == Intervention({}, ("X2", "X1")).signature
    different = [
        Intervention(),
        Intervention({"X1": 1}),
        Intervention({"X1": 0}),
        Intervention({"X2": 1}),
        Intervention({}, ("X1",)),
        Intervention({"X1": 1}, ("X2",)),
    ]
    assert len({intervention.signature for intervention in different}) == len(different)


def test_a_target_is_set_in_one_way() -> None:
    with pytest.raises(ValueError, match="X2 both constant and assigned"):
        Intervention({"X1": 0, "X2": 1}, ("X2",))
