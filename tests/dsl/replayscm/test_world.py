"""Worlds as rows and as columns, and panels of many worlds, cell by cell."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant.dsl.replayscm.scm import Scm
from calibrant.dsl.replayscm.world import Intervention, Panel, World, columns_from_rows
from tests.support.effort import examples
from tests.support.replayscm.oracles import observed_bit
from tests.support.replayscm.strategies import arbitrary_worlds, scms

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


@given(MODELS_AND_WORLDS, st.data())
@settings(deadline=None, max_examples=examples(60))
def test_scored_cells_are_counted_for_any_set_of_endogenous_variables(
    case: tuple[Scm, tuple[World, ...]], data: st.DataObject
) -> None:
    model, worlds = case
    panel = Panel(model.variables, worlds)
    for endogenous in data.draw(st.lists(st.frozensets(st.sampled_from(model.variables)), max_size=3)):
        cells = [
            (i, r, variable)
            for i, world in enumerate(worlds)
            for r in range(world.num_rows)
            for variable in endogenous
            if variable not in world.intervention.constants and variable not in world.intervention.assigned
        ]
        assert panel.scored_counts(endogenous) == (len(cells), len({i for i, _, _ in cells}))


def test_columns_of_worlds_may_come_in_any_order() -> None:
    one = World("a", Intervention(), ("X", "Y"), ("u0", "u1"), (0b01, 0b10))
    other = World("b", Intervention({"Y": 1}), ("Y", "X"), ("u0",), (1, 0))
    panel = Panel(("X", "Y"), (one, other))
    assert dict(panel.columns) == {"X": 0b001, "Y": 0b110}
    assert dict(panel.clamped) == {"X": 0, "Y": 0b100}


def test_an_empty_panel_has_no_rows() -> None:
    panel = Panel(("X",), ())
    assert (panel.num_rows, panel.all_rows, dict(panel.columns), dict(panel.clamped)) == (0, 0, {"X": 0}, {"X": 0})


@pytest.mark.parametrize(
    ("intervention", "mode", "targets", "text"),
    [
        (Intervention(), "none", set(), "no intervention"),
        (Intervention({"X2": 0, "X1": 1}), "hard_constant", {"X1", "X2"}, "do(X1=1, X2=0)"),
        (Intervention({}, ("X3",)), "hard_assigned", {"X3"}, "do(X3=per row)"),
        (Intervention({"X1": 1}, ("X3",)), "hard_assigned", {"X1", "X3"}, "do(X1=1, X3=per row)"),
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
