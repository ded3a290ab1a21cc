"""What each disclosure admits, what must never change a verdict, and worlds cell by cell."""

from __future__ import annotations

import pickle
import random
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise, permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant.dsl.formulas.formula import OPERATORS, Formula, apply, constant, fold, rename, var
from calibrant.dsl.formulas.text import parse
from calibrant.dsl.replayscm.disclosure import Blocks, HiddenOrder, HiddenRoots, Ordered, Violation, key_violation
from calibrant.dsl.replayscm.evaluator import Candidate
from calibrant.dsl.replayscm.replay import SplitReplay, replay
from calibrant.dsl.replayscm.scm import Scm, scm
from calibrant.dsl.replayscm.world import Intervention, Panel, World, columns_from_rows
from tests.support.effort import examples
from tests.support.replayscm.brute_force import observed_bit, replay_world_row, tree_of, tree_value
from tests.support.replayscm.strategies import arbitrary_worlds, formulas, scms, simulated_worlds

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


# --- What must never change a verdict: labels, the order of worlds and rows, spelling, and what is not scored ---------
Case = tuple[Scm, tuple[World, ...]]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Return a model and worlds: its own, those of a model like it, or nobody's."""
    model = draw(scms(operators=tuple(OPERATORS)))
    variable = draw(st.sampled_from(model.order))
    earlier = [*model.roots, *model.order[: model.order.index(variable)]]
    other = scm(model.roots, {**model.mechanisms, variable: draw(formulas(earlier, max_size=5))})
    worlds = simulated_worlds(model) | simulated_worlds(other) | arbitrary_worlds(model)
    return model, draw(worlds)


def _replay(model: Scm, worlds: Sequence[World], order: Sequence[str] | None = None) -> SplitReplay:
    return replay(Candidate(model.mechanisms, tuple(order or model.order)), Panel(model.variables, tuple(worlds)))


def _numbers(split: SplitReplay) -> tuple[int, ...]:
    return split.num_cells, split.num_wrong, split.num_worlds, split.num_exact_worlds


@given(cases(), st.data())
@settings(deadline=None, max_examples=examples(60))
def test_labels_do_not_matter(case: Case, data: st.DataObject) -> None:
    model, worlds = case
    fresh = data.draw(st.permutations([f"Z{i}" for i in range(len(model.variables))]))
    new = dict(zip(model.variables, fresh, strict=True))
    renamed = scm(
        [new[v] for v in model.roots],
        {new[v]: rename(formula, new.__getitem__) for v, formula in model.mechanisms.items()},
    )
    moved = []
    for world in worlds:
        before = world.intervention
        after = Intervention(
            {new[v]: bit for v, bit in before.constants.items()}, tuple(new[v] for v in before.assigned)
        )
        moved.append(replace(world, intervention=after, variables=tuple(new[v] for v in world.variables)))
    original, relabelled = _replay(model, worlds), _replay(renamed, moved, [new[v] for v in model.order])
    assert _numbers(relabelled) == _numbers(original)
    assert relabelled.variable_accuracy == {new[v]: share for v, share in original.variable_accuracy.items()}
    cell = original.first_mismatch
    assert relabelled.first_mismatch == (cell and cell._replace(variable=new[cell.variable]))


@given(cases(), st.data())
@settings(deadline=None, max_examples=examples(60))
def test_the_order_of_worlds_and_rows_does_not_matter(case: Case, data: st.DataObject) -> None:
    model, worlds = case
    moved = []
    for world in data.draw(st.permutations(worlds)):
        rows = data.draw(st.permutations(range(world.num_rows)))
        columns = tuple(sum((bits >> r & 1) << i for i, r in enumerate(rows)) for bits in world.columns)
        moved.append(replace(world, units=tuple(world.units[r] for r in rows), columns=columns))
    original, permuted = _replay(model, worlds), _replay(model, moved)
    assert _numbers(permuted) == _numbers(original)
    assert permuted.variable_accuracy == original.variable_accuracy


REWRITINGS = {  # each keeps the operator's meaning in docs/semantics.md, "Mechanism texts"
    "not": lambda a: [apply("xor", [a[0], constant(True)]), apply("not", [apply("not", [apply("not", a)])])],
    "and": lambda a: [apply("not", [apply("or", [apply("not", [x]) for x in a])]), apply("and", [*a, a[0]])],
    "or": lambda a: [apply("not", [apply("and", [apply("not", [x]) for x in a])]), apply("or", [a[-1], *a])],
    "xor": lambda a: [apply("xor", [a[0], apply("xor", [*a[1:], a[0], a[0]])]), apply("xor", [*reversed(a)])],
    "iff": lambda a: [
        apply("or", [apply("and", a), apply("not", [apply("or", a)])]),
        apply("and", [apply("iff", [a[0], x]) for x in [*a[1:], a[0]]]),
    ],
    "if": lambda a: [apply("xor", [apply("and", a[:2]), apply("and", [apply("not", a[:1]), a[2]])])],
}


@given(cases(), st.data())
@settings(deadline=None, max_examples=examples(60))
def test_equivalent_formulas_do_not_matter(case: Case, data: st.DataObject) -> None:
    model, worlds = case
    seed = random.Random(data.draw(st.integers(0, 2**32)))

    def rewritten(formula: Formula) -> Formula:
        return fold(
            formula,
            lambda atom: constant(atom) if isinstance(atom, bool) else var(atom),
            lambda node, parts: seed.choice([apply(node.operator, parts), *REWRITINGS[node.operator](list(parts))]),
        )

    other = scm(model.roots, {v: rewritten(formula) for v, formula in model.mechanisms.items()})
    original, found = _replay(model, worlds), _replay(other, worlds, model.order)
    assert (_numbers(found), found.wrong) == (_numbers(original), original.wrong)
    assert found.first_mismatch == original.first_mismatch


@given(cases(), st.data())
@settings(deadline=None, max_examples=examples(60))
def test_clamping_a_variable_to_what_its_mechanism_computes_changes_nothing(case: Case, data: st.DataObject) -> None:
    model, worlds = case
    variable = data.draw(st.sampled_from(model.endogenous))
    clamped = []
    for world in worlds:
        before = world.intervention
        computed = sum(replay_world_row(model, world, r)[variable] << r for r in range(world.num_rows))
        others = {v: bit for v, bit in before.constants.items() if v != variable}
        assigned = (*(v for v in before.assigned if v != variable), variable)
        columns = tuple(
            computed if v == variable else bits for v, bits in zip(world.variables, world.columns, strict=True)
        )
        clamped.append(replace(world, intervention=Intervention(others, assigned), columns=columns))
    original, found = _replay(model, worlds), _replay(model, clamped)
    assert found.wrong[variable] == 0
    assert found.variable_accuracy[variable] is None
    assert [found.wrong[v] for v in model.order if v != variable] == [
        original.wrong[v] for v in model.order if v != variable
    ]


@given(cases(), st.data())
@settings(deadline=None, max_examples=examples(60))
def test_what_a_row_shows_of_intervened_cells_is_not_scored(case: Case, data: st.DataObject) -> None:
    """The bits of assigned variables that no mechanism mentions can be anything."""
    model, worlds = case
    unread = set(model.variables).difference(*(formula.mentioned for formula in model.mechanisms.values()))
    noisy = []
    for world in worlds:
        noise = {v: data.draw(st.integers(0, 2**world.num_rows - 1)) for v in {*world.intervention.assigned} & unread}
        columns = tuple(noise.get(v, bits) for v, bits in zip(world.variables, world.columns, strict=True))
        noisy.append(replace(world, columns=columns))
    original, found = _replay(model, worlds), _replay(model, noisy)
    assert (_numbers(found), found.wrong) == (_numbers(original), original.wrong)


@given(cases())
@settings(deadline=None, max_examples=examples(100))
def test_train_exactness_decomposes_by_variable(case: Case) -> None:
    """Exact iff each mechanism, fed observed rows, gives its variable in the rows where it is not a target."""
    model, worlds = case
    fits = all(
        tree_value(tree_of(formula), partial(observed_bit, world, r)) == observed_bit(world, r, variable)
        for world in worlds
        for variable, formula in model.mechanisms.items()
        if variable not in world.intervention.targets
        for r in range(world.num_rows)
    )
    split = _replay(model, worlds)
    assert (split.num_wrong == 0) == fits
    assert split.all_exact == (fits and split.num_cells > 0)


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
