"""What must never change a verdict: labels, the order of worlds and rows, spelling, and what is not scored."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant.dsl.formulas.formula import OPERATORS, Formula, apply, constant, fold, rename, var
from calibrant.dsl.replayscm.evaluator import Candidate
from calibrant.dsl.replayscm.replay import SplitReplay, replay
from calibrant.dsl.replayscm.scm import Scm, scm
from calibrant.dsl.replayscm.world import Intervention, Panel, World
from tests.support.effort import examples
from tests.support.replayscm.oracles import observed_bit, replay_world_row, tree_of, tree_value
from tests.support.replayscm.strategies import arbitrary_worlds, formulas, scms, simulated_worlds

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
