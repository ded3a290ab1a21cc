"""Replay: kernel = packed integers = reference = an oracle that looks at every cell."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.formulas.formula import OPERATORS, Formula, apply, var
from calibrant.dsl.kernel_cache import PlainWork
from calibrant.dsl.replayscm.evaluator import Candidate, compile_formulas, compile_tables, lay_out, replays
from calibrant.dsl.replayscm.reference import first_mismatch, replay_row, replay_world
from calibrant.dsl.replayscm.replay import SplitReplay, evaluate, replay, replay_splits
from calibrant.dsl.replayscm.scm import Scm, scm
from calibrant.dsl.replayscm.world import Intervention, Panel, Rows, World, pack_panels, pack_rows
from tests.support.effort import examples
from tests.support.replayscm.brute_force import (
    FEWEST_ARGUMENTS,
    MOST_ARGUMENTS,
    Counts,
    assignments,
    counts,
    replay_world_row,
    tree_of,
    tree_value,
    truth,
)
from tests.support.replayscm.strategies import FULL_GRAMMAR, arbitrary_worlds, formulas, interventions, scms

VARIABLES = ("X1", "X2", "X3", "X4", "X10")


@st.composite
def wide_formulas(draw: st.DrawFn, over: Sequence[str]) -> Formula:
    """Formulas of the largest grammar; often an operator with as many as six arguments at the top."""
    part = formulas(over, grammar=FULL_GRAMMAR, max_size=5)
    operator = draw(st.sampled_from(["", *OPERATORS]))
    if not operator:
        return draw(part)
    low, high = OPERATORS[operator].min_arity, OPERATORS[operator].max_arity or 6
    return apply(operator, draw(st.lists(part, min_size=low, max_size=high)))


@st.composite
def wide_scms(draw: st.DrawFn) -> Scm:
    """SCMs over VARIABLES with any number of roots, `if`, constants and wide operators."""
    order = draw(st.permutations(VARIABLES))
    num_roots = draw(st.integers(1, len(order) - 1))
    return scm(order[:num_roots], {order[i]: draw(wide_formulas(order[:i])) for i in range(num_roots, len(order))})


def _random_world(rng: random.Random, name: str, num_rows: int, intervention: Intervention) -> World:
    mask = (1 << num_rows) - 1
    columns = {v: rng.getrandbits(num_rows) if num_rows else 0 for v in VARIABLES}
    columns |= {v: mask * bit for v, bit in intervention.constants.items()}
    shuffled = rng.sample(VARIABLES, len(VARIABLES))
    units = tuple(f"u{r}" for r in range(num_rows))
    return World(name, intervention, tuple(shuffled), units, tuple(columns[v] for v in shuffled))


@st.composite
def panels(draw: st.DrawFn, num_rows: Sequence[Sequence[int]]) -> tuple[Panel, ...]:
    """One panel per entry, one world of that many rows per number."""
    rng = random.Random(draw(st.integers(0, 2**32)))
    return tuple(
        Panel(
            VARIABLES,
            tuple(_random_world(rng, f"w{p}.{i}", n, draw(interventions(VARIABLES))) for i, n in enumerate(sizes)),
        )
        for p, sizes in enumerate(num_rows)
    )


def _own_rows(model: Scm, world: World) -> World:
    """Return the same world with the rows that the model makes of its roots and assigned values."""
    rows = [replay_world_row(model, world, r) for r in range(len(world.units))]
    columns = tuple(sum(row[v] << r for r, row in enumerate(rows)) for v in world.variables)
    return replace(world, columns=columns)


# --- the four ways to the same answer ----------------------------------------------------------------------------


def check_split(split: SplitReplay, expected: Counts, order: Sequence[str]) -> None:
    assert (split.num_cells, split.num_wrong) == (expected.cells, len(expected.wrong))
    assert (split.num_worlds, split.num_exact_worlds) == (expected.worlds, expected.exact_worlds)
    assert split.accuracy == ((expected.cells - len(expected.wrong)) / expected.cells if expected.cells else None)
    assert split.world_accuracy == (expected.exact_worlds / expected.worlds if expected.worlds else None)
    assert split.all_exact == (expected.cells > 0 and not expected.wrong)
    assert split.first_mismatch == (expected.wrong[0] if expected.wrong else None)
    for variable in order:
        wrong = sum(cell.variable == variable for cell in expected.wrong)
        scored = sum(len(w.units) for w in split.panel.worlds if variable not in w.intervention.targets)
        assert split.variable_accuracy[variable] == ((scored - wrong) / scored if scored else None)
        assert split.wrong[variable].bit_count() == wrong
    assert split.variable_accuracy.keys() == {*order}


ROW_COUNTS = [
    [[1]],
    [[63]],
    [[64]],
    [[65]],
    [[128]],
    [[40, 40, 48]],  # 128 rows; two worlds straddle a word
    [[63, 2], [1]],  # a world of two rows over the edge of a word, the next panel begins in its middle
    [[64, 64], [1, 63]],  # every boundary is one of words
    [[30, 35], [62, 1]],  # 65 rows, then 128
    [[3, 0, 61], [], [65]],  # an empty world and an empty panel
    [[1, 1, 1], [2, 2], [150]],  # a world over three words
    [[256]],  # four words, which the kernel takes at a time
    [[200, 60], [30]],  # 290 rows: a world over the edge of four words, the next panel behind it
]


@pytest.mark.parametrize("num_rows", ROW_COUNTS, ids=str)
@given(data=st.data())
@settings(deadline=None, max_examples=examples(6))
def test_kernel_packed_reference_and_oracle_agree(num_rows: list[list[int]], data: st.DataObject) -> None:
    models = data.draw(st.lists(wide_scms(), min_size=1, max_size=4))
    drawn = data.draw(panels(num_rows))
    own = data.draw(st.sampled_from([None, *models]))  # rows that one of the models explains, or nobody's
    splits = [Panel(p.variables, tuple(_own_rows(own, w) for w in p.worlds)) for p in drawn] if own else list(drawn)
    candidates = [Candidate(model.mechanisms, model.order) for model in models]
    batch = compile_formulas(candidates, VARIABLES).compare(pack_panels(splits))
    for c, (model, candidate) in enumerate(zip(models, candidates, strict=True)):
        for p, panel in enumerate(splits):
            expected = counts(model, panel.worlds, model.order)
            check_split(replay(candidate, panel), expected, model.order)
            assert replays(candidate, panel) == (not expected.wrong)
            kernel = batch.num_cells, batch.num_wrong, batch.num_worlds, batch.num_exact_worlds
            oracle = expected.cells, len(expected.wrong), expected.worlds, expected.exact_worlds
            assert tuple(int(array[c, p]) for array in kernel) == oracle
            assert bool(batch.num_wrong[c, p] == 0) == (not expected.wrong)
            cells = [cell for world in panel.worlds for cell in replay_world(model, world)]
            assert [cell for cell in cells if cell.predicted != cell.expected] == list(expected.wrong)
            assert len(cells) == expected.cells
            assert first_mismatch(model, panel.worlds) == (expected.wrong[0] if expected.wrong else None)
    if own:
        assert batch.num_wrong[models.index(own)].tolist() == [0] * len(splits)


ARITIES = [(op, n) for op in OPERATORS for n in range(FEWEST_ARGUMENTS[op], (MOST_ARGUMENTS[op] or 7) + 1)]


@pytest.mark.parametrize(("operator", "arity"), ARITIES)
def test_every_operator_at_every_arity(operator: str, arity: int) -> None:
    """All rows of its arguments, in one batch: a mechanism that is right everywhere, and one that never is."""
    names = tuple(f"X{i}" for i in range(1, arity + 1))
    rows = list(assignments(names))
    computed = sum(truth(operator, [*row.values()]) << r for r, row in enumerate(rows))
    columns = tuple(sum(row[name] << r for r, row in enumerate(rows)) for name in names)
    units = tuple(map(str, range(len(rows))))
    panel = Panel((*names, "Y"), (World("w", Intervention(), (*names, "Y"), units, (*columns, computed)),))
    right = apply(operator, map(var, names))
    candidates = [Candidate({"Y": right}, ("Y",)), Candidate({"Y": apply("not", [right])}, ("Y",))]
    wrong = [0, len(rows)]
    assert [replay(candidate, panel).num_wrong for candidate in candidates] == wrong
    batch = compile_formulas(candidates, panel.variables).compare(pack_panels([panel]))
    assert batch.num_wrong.tolist() == [[number] for number in wrong]


@given(scms(operators=tuple(OPERATORS)), st.data())
@settings(deadline=None, max_examples=examples(60))
def test_two_splits_in_one_pass_are_each_split_alone(model: Scm, data: st.DataObject) -> None:
    worlds = data.draw(arbitrary_worlds(model)), data.draw(arbitrary_worlds(model))
    first, second = (Panel(model.variables, split) for split in worlds)
    candidate = Candidate(model.mechanisms, model.order)
    both = replay_splits(candidate, Panel(model.variables, (*worlds[0], *worlds[1])), first, second)
    for split, panel in zip(both, (first, second), strict=True):
        check_split(split, counts(model, panel.worlds, model.order), model.order)


def test_nothing_to_replay_is_not_exact() -> None:
    model = scm(["X1"], {"X2": var("X1")})
    candidate = Candidate(model.mechanisms, model.order)
    clamped = World("w", Intervention({}, ("X2",)), ("X1", "X2"), ("u0", "u1"), (0b01, 0b01))
    for panel in (Panel(("X1", "X2"), ()), Panel(("X1", "X2"), (clamped,))):
        check_split(replay(candidate, panel), Counts(0, 0, 0, ()), model.order)
        batch = compile_formulas([candidate], panel.variables).compare(pack_panels([panel]))
        assert (batch.num_cells.tolist(), batch.num_worlds.tolist()) == ([[0]], [[0]])
        assert evaluate([model], panel).all_exact.tolist() == [False]


def test_panels_and_programs_over_other_variables_are_refused() -> None:
    one, other = Panel(("X1", "X2"), ()), Panel(("X1", "X3"), ())
    with pytest.raises(ValueError, match="different variables"):
        pack_panels([one, other])
    with pytest.raises(ValueError, match="different variables"):
        compile_formulas([], ("X2", "X1")).compare(pack_panels([one]))


# --- candidates as tables, and interventions side by side --------------------------------------------------------


def _as_table(model: Scm, variable: str) -> tuple[int, int, int]:
    """Variable, parent set and table by the truth of the formula in each row, the lowest parent as the lowest bit."""
    parents = sorted(model.mechanisms[variable].mentioned, key=VARIABLES.index)
    rows = [{u: row >> i & 1 for i, u in enumerate(parents)} for row in range(1 << len(parents))]
    tree = tree_of(model.mechanisms[variable])
    bits = sum(tree_value(tree, values.__getitem__) << row for row, values in enumerate(rows))
    return VARIABLES.index(variable), sum(1 << VARIABLES.index(u) for u in parents), bits


@contextmanager
def replaying(*, plainly: bool) -> Iterator[None]:
    """Replay tables by numpy, or by the kernel."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PlainWork, "num_cells", 0)
        patch.setattr(PlainWork, "limit", 10**9 if plainly else -1)
        yield


def test_a_process_compiles_once_its_plain_cells_are_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PlainWork, "num_cells", 0)
    assert PlainWork.take(PlainWork.limit)
    assert not PlainWork.take(1)
    assert not PlainWork.take(1)


@pytest.mark.parametrize("is_plain", [True, False])
@pytest.mark.parametrize("num_rows", [0, 1, 7, 63, 64, 65, 200])
@given(data=st.data())
@settings(deadline=None, max_examples=examples(6))
def test_tables_compute_the_rows_of_the_reference(num_rows: int, data: st.DataObject, *, is_plain: bool) -> None:
    """By numpy and by the kernel. Flips hit a cell after its mechanism, before its children, never a clamped one."""
    order = data.draw(st.permutations(VARIABLES))
    models = [
        scm(order[:2], {order[i]: data.draw(wide_formulas(order[:i])) for i in range(2, 5)})
        for _ in range(data.draw(st.integers(1, 3)))
    ]
    rng = random.Random(data.draw(st.integers(0, 2**32)))
    worlds = [
        _random_world(rng, f"w{i}", num_rows // 2 + i * (num_rows % 2), data.draw(interventions(VARIABLES)))
        for i in (0, 1)
    ]
    programs = compile_tables([[_as_table(model, v) for v in model.order] for model in models], 3)
    rows = pack_rows(worlds, VARIABLES)
    flips = np.array([[rng.getrandbits(5) for _ in rows.words] for _ in models], np.uint64).reshape(len(models), -1)
    for given_flips in (None, flips):
        with replaying(plainly=is_plain):
            results = programs.replay(rows, given_flips)
        assert results.shape == (len(models), num_rows)
        for d, model in enumerate(models):
            observed = [(world, row) for world in worlds for row in world.rows()]
            for r, (world, row) in enumerate(observed):
                flipped = 0 if given_flips is None else int(flips[d, r])
                values = dict(row)
                for v in model.order:
                    if v not in world.intervention.targets:
                        computed = tree_value(tree_of(model.mechanisms[v]), values.__getitem__)
                        values[v] = computed ^ flipped >> VARIABLES.index(v) & 1
                assert int(results[d, r]) == sum(values[v] << i for i, v in enumerate(VARIABLES))
                assert flipped or values == replay_row(model, world, row)


@given(wide_scms(), st.lists(interventions(VARIABLES), min_size=1, max_size=5))
@settings(deadline=None, max_examples=examples(30))
def test_interventions_side_by_side_are_what_the_reference_computes_of_each(
    model: Scm, chosen: list[Intervention]
) -> None:
    constants = [dict(intervention.constants) for intervention in chosen]
    layout = lay_out(VARIABLES, model.roots, constants)
    values = layout.simulate(Candidate(model.mechanisms, model.order))
    for index, targets in enumerate(constants):
        world = World("w", Intervention(targets), VARIABLES, ("u",), (0,) * len(VARIABLES))
        ones = dict.fromkeys(VARIABLES, 0)
        for row, roots in enumerate(assignments(model.roots)):
            expected = replay_row(model, world, dict(roots))
            for v in VARIABLES:
                assert layout.block(values[v], index) >> row & 1 == expected[v]
                ones[v] += expected[v]
        assert [layout.counts(values[v])[index] for v in VARIABLES] == [ones[v] for v in VARIABLES]


# --- the public entry --------------------------------------------------------------------------------------------


@given(st.lists(wide_scms(), min_size=1, max_size=4), st.data())
@settings(deadline=None, max_examples=examples(20))
def test_evaluate_counts_what_the_oracle_counts_of_scms_and_of_their_texts(
    models: list[Scm], data: st.DataObject
) -> None:
    (panel,) = data.draw(panels([[data.draw(st.integers(0, 70)), 3]]))
    texts = [{v: str(formula) for v, formula in model.mechanisms.items()} for model in models]
    expected = [counts(model, panel.worlds, model.order) for model in models]
    spellings: list[Sequence[Scm | dict[str, str]]] = [models, texts, [*texts[:1], *models[1:]]]
    for scms_or_texts in spellings:
        found = evaluate(scms_or_texts, list(panel.worlds))
        assert found.num_cells.tolist() == [entry.cells for entry in expected]
        assert found.num_wrong.tolist() == [len(entry.wrong) for entry in expected]
        assert found.num_worlds.tolist() == [entry.worlds for entry in expected]
        assert found.num_exact_worlds.tolist() == [entry.exact_worlds for entry in expected]
    same = evaluate([texts[0]] * 3, panel)  # one evaluation order: read by compiled code
    assert same.num_wrong.tolist() == [len(expected[0].wrong)] * 3


WORLD = World("w", Intervention(), ("X1", "X2", "X3"), ("u",), (1, 1, 0))


@pytest.mark.parametrize(
    ("scms", "message"),
    [
        ([{"X2": "X1", "X3": "X2"}, {"X2": "X9"}], r"scms\[1\] has 'X9'; the worlds have X1, X2, X3"),
        ([{"X2": "(and X1"}], r"scms\[0\]: mechanism of 'X2': "),
        ([{"X2": 1}], r"scms\[0\]: mechanism of 'X2' is 1, not a text"),
        ([{"X2": "X3", "X3": "X2"}], r"scms\[0\]: "),
        (["X1"], r"scms\[0\] is 'X1'; an SCM is a calibrant.Scm or texts by variable"),
        ([{"X2": "X1"}, {"X2": "(nor X1 X3)"}], r"scms\[1\]: mechanism of 'X2': "),
    ],
)
def test_evaluate_names_an_scm_that_cannot_be_replayed(scms: list[dict[str, str]], message: str) -> None:
    with pytest.raises(CalibrantError, match=message):
        evaluate(scms, [WORLD])


def test_evaluate_refuses_what_are_no_worlds() -> None:
    with pytest.raises(CalibrantError, match="worlds are a Panel"):
        evaluate([], [{"id": "w"}])  # type: ignore[list-item]
    with pytest.raises(CalibrantError, match="no world"):
        evaluate([], [])
    with pytest.raises(CalibrantError, match="the same variables"):
        evaluate([], [WORLD, replace(WORLD, variables=("X1", "X2", "X4"))])


@pytest.mark.parametrize("is_plain", [True, False])
def test_a_parent_that_is_0_in_all_rows_is_read_as_0(*, is_plain: bool) -> None:
    """Its column lies behind those of all other variables, where memory holds what the call before left there."""
    copies = compile_tables([[(0, 1 << parent, 0b10)] for parent in range(1, 63)], 1)  # masks are signed words
    ones = Rows(np.full(64, 2**64 - 1, np.uint64), np.zeros(64, np.uint64))
    zero = Rows(np.zeros(1, np.uint64), np.zeros(1, np.uint64))
    for _ in range(20):
        with replaying(plainly=is_plain):
            assert (copies.replay(ones) == 2**64 - 1).all()
            assert not copies.replay(zero).any()
