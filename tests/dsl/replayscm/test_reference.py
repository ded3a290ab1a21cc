"""The reference against a recursive oracle, and the properties that replay must have (docs/semantics.md, "Replay")."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache, partial
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from calibrant.dsl.formulas.formula import Formula
from calibrant.dsl.formulas.reference import evaluate
from calibrant.dsl.formulas.text import STANDARD, parse
from calibrant.dsl.replayscm.item import ModelResult, Problem
from calibrant.dsl.replayscm.pools.files import read_pool
from calibrant.dsl.replayscm.reference import Cell, first_mismatch, replay_row, replay_world, replays_exactly
from calibrant.dsl.replayscm.scm import Scm, scm
from calibrant.dsl.replayscm.score import Evaluator
from calibrant.dsl.replayscm.world import Intervention, World
from tests.support.effort import examples
from tests.support.replayscm.brute_force import Tree, assignments, observed_bit, replay_world_row, tree_of, tree_value
from tests.support.replayscm.strategies import (
    FULL_GRAMMAR,
    arbitrary_worlds,
    formula_of,
    formulas,
    scms,
    simulated_worlds,
    trees,
)
from tests.support.shared import shared_file, shared_records

Worlds = tuple[World, ...]

SCMS_AND_WORLDS = scms().flatmap(lambda model: st.tuples(st.just(model), arbitrary_worlds(model)))
SCMS_AND_OWN_WORLDS = scms().flatmap(lambda model: st.tuples(st.just(model), simulated_worlds(model)))


def _model(roots: str, **mechanisms: str) -> Scm:
    return scm(roots.split(), {variable: parse(text) for variable, text in mechanisms.items()})


def _world(rows: list[str], variables: str, intervention: Intervention | None = None) -> World:
    columns = tuple(sum(int(row[i]) << r for r, row in enumerate(rows)) for i in range(len(variables)))
    units = tuple(f"u{r}" for r in range(len(rows)))
    return World("w", intervention or Intervention(), tuple(variables), units, columns)


def _expected_cells(model: Scm, world: World, order: tuple[str, ...]) -> list[Cell]:
    cells = []
    for r in range(len(world.units)):
        values = replay_world_row(model, world, r)
        for variable in order:
            if variable not in world.intervention.constants and variable not in world.intervention.assigned:
                cells.append(Cell(world.id, r, variable, values[variable], observed_bit(world, r, variable)))
    return cells


# --- against the oracle ------------------------------------------------------------------------------------------


@given(trees(("X1", "X2", "X3"), grammar=FULL_GRAMMAR, max_size=16))
@settings(deadline=None, max_examples=examples(100))
def test_a_mechanism_has_the_value_of_its_tree(tree: Tree) -> None:
    formula = formula_of(tree)
    for row in assignments(("X1", "X2", "X3")):
        assert evaluate(formula, row) == tree_value(tree, row.__getitem__)


@given(SCMS_AND_WORLDS | SCMS_AND_OWN_WORLDS)
@settings(deadline=None, max_examples=examples(80))
def test_replay_is_what_the_oracle_replays(case: tuple[Scm, Worlds]) -> None:
    model, worlds = case
    expected = []
    for world in worlds:
        for r in range(world.num_rows):
            assert replay_row(model, world, world.row(r)) == replay_world_row(model, world, r)
        assert list(replay_world(model, world)) == _expected_cells(model, world, model.order)
        expected += _expected_cells(model, world, model.order)
    wrong = [cell for cell in expected if cell.predicted != cell.expected]
    assert first_mismatch(model, worlds) == (wrong[0] if wrong else None)
    assert replays_exactly(model, worlds) == (not wrong)


@given(SCMS_AND_WORLDS, st.data())
@settings(deadline=None, max_examples=examples(40))
def test_another_order_changes_only_what_is_reported_first(case: tuple[Scm, Worlds], data: st.DataObject) -> None:
    model, worlds = case
    waiting, order = list(model.endogenous), []
    while waiting:
        order.append(
            data.draw(st.sampled_from([v for v in waiting if not {*model.mechanisms[v].variables} & {*waiting}]))
        )
        waiting.remove(order[-1])
    cells = [cell for world in worlds for cell in _expected_cells(model, world, tuple(order))]
    assert [cell for world in worlds for cell in replay_world(model, world, order)] == cells
    assert first_mismatch(model, worlds, order) == next((c for c in cells if c.predicted != c.expected), None)


# --- properties --------------------------------------------------------------------------------------------------


@given(SCMS_AND_OWN_WORLDS)
@settings(deadline=None, max_examples=examples(50))
def test_a_model_replays_the_worlds_it_made(case: tuple[Scm, Worlds]) -> None:
    assert replays_exactly(*case)


def _flipped(world: World, variable: str, row: int) -> World:
    columns = zip(world.variables, world.columns, strict=True)
    return replace(world, columns=tuple(bits ^ (1 << row if name == variable else 0) for name, bits in columns))


@given(SCMS_AND_OWN_WORLDS, st.data())
@settings(deadline=None, max_examples=examples(60))
def test_one_wrong_scored_cell_is_one_mismatch(case: tuple[Scm, Worlds], data: st.DataObject) -> None:
    """Replay reads neither scored values nor those of constant targets: nothing but the flipped cell can be wrong."""
    model, worlds = case
    unread = [(i, v) for i, w in enumerate(worlds) for v in model.endogenous if v not in w.intervention.assigned]
    assume(unread)
    index, variable = data.draw(st.sampled_from(unread))
    world = worlds[index]
    row = data.draw(st.integers(0, world.num_rows - 1))
    bit = observed_bit(world, row, variable)
    damaged = (*worlds[:index], _flipped(world, variable, row), *worlds[index + 1 :])
    scored = variable not in world.intervention.constants
    expected = [Cell(world.id, row, variable, bit, 1 - bit)] if scored else []
    assert [c for w in damaged for c in replay_world(model, w) if c.predicted != c.expected] == expected
    assert first_mismatch(model, damaged) == (expected[0] if scored else None)


@given(SCMS_AND_WORLDS)
@settings(deadline=None, max_examples=examples(50))
def test_targets_are_not_scored(case: tuple[Scm, Worlds]) -> None:
    model, worlds = case
    for world in worlds:
        scored = {v for v in model.mechanisms if v not in world.intervention.targets}
        assert {cell.variable for cell in replay_world(model, world)} == scored
        assert len(list(replay_world(model, world))) == world.num_rows * len(scored)


@given(SCMS_AND_WORLDS, st.data())
@settings(deadline=None, max_examples=examples(60))
def test_clamping_a_variable_to_its_own_value_changes_nothing(case: tuple[Scm, Worlds], data: st.DataObject) -> None:
    model, (world, *_) = case
    row = world.row(data.draw(st.integers(0, world.num_rows - 1)))
    values = replay_row(model, world, row)
    variable, before = data.draw(st.sampled_from(model.variables)), world.intervention
    others = {v: bit for v, bit in before.constants.items() if v != variable}
    assigned = tuple(v for v in before.assigned if v != variable)
    constant = replace(world, intervention=Intervention({**others, variable: values[variable]}, assigned))
    per_row = replace(world, intervention=Intervention(others, (*assigned, variable)))
    assert replay_row(model, constant, row) == values
    assert replay_row(model, constant, row | {variable: 1 - values[variable]}) == values
    assert replay_row(model, per_row, row | {variable: values[variable]}) == values


def _reproduces_observed_rows(mechanism: Formula, variable: str, world: World) -> bool:
    tree = tree_of(mechanism)
    rows = range(world.num_rows)
    return all(tree_value(tree, partial(observed_bit, world, r)) == observed_bit(world, r, variable) for r in rows)


@given(scms(), st.data())
@settings(deadline=None, max_examples=examples(120))
def test_training_fit_decomposes_by_variable(model: Scm, data: st.DataObject) -> None:
    """Exact iff each mechanism, fed observed rows, reproduces those in which its variable is not a target.

    Candidates are the model that made the worlds with up to one mechanism replaced, and worlds that no model made.
    """
    worlds = data.draw(simulated_worlds(model, max_worlds=2) | arbitrary_worlds(model, max_worlds=2))
    variable = data.draw(st.sampled_from(model.order))
    earlier = [*model.roots, *model.order[: model.order.index(variable)]]
    replacement = data.draw(st.just(model.mechanisms[variable]) | formulas(earlier, grammar=STANDARD, max_size=5))
    candidate = scm(model.roots, {**model.mechanisms, variable: replacement})
    for world in worlds:
        fits = {
            v: v in world.intervention.targets or _reproduces_observed_rows(f, v, world)
            for v, f in candidate.mechanisms.items()
        }
        assert replays_exactly(candidate, [world]) == all(fits.values())


# --- worked by hand ----------------------------------------------------------------------------------------------


def test_the_worked_example_of_the_specification() -> None:
    gold = _model("R", Y="(not R)", Z="(xor R Y)")
    submitted = _model("R", Y="R", Z="(xor R Y)")
    clamped = _world(["011", "110"], "RYZ", Intervention({"Y": 1}))
    free = _world(["011", "101"], "RYZ")
    assert replays_exactly(gold, [clamped, free])
    assert replays_exactly(submitted, [clamped])
    assert list(replay_world(submitted, free)) == [
        Cell("w", 0, "Y", 0, 1),
        Cell("w", 0, "Z", 0, 1),
        Cell("w", 1, "Y", 1, 0),
        Cell("w", 1, "Z", 0, 1),
    ]


@pytest.mark.parametrize(
    ("intervention", "row", "values"),
    [
        (Intervention(), "0101", {"A": 0, "B": 1, "C": 1, "D": 0}),
        (Intervention({"A": 1}), "0000", {"A": 1, "B": 0, "C": 0, "D": 1}),  # a clamped root is not copied
        (Intervention({"C": 1}), "0000", {"A": 0, "B": 0, "C": 1, "D": 0}),
        (Intervention({}, ("C",)), "1100", {"A": 1, "B": 1, "C": 0, "D": 1}),  # the row's own bit, per row
        (Intervention({}, ("C",)), "1110", {"A": 1, "B": 1, "C": 1, "D": 0}),
        (Intervention({"D": 1}, ("A",)), "1000", {"A": 1, "B": 0, "C": 0, "D": 1}),
    ],
)
def test_where_each_value_comes_from(intervention: Intervention, row: str, values: dict[str, int]) -> None:
    model = _model("A B", C="(or B (and A B))", D="(and A (not C))")
    world = _world([row], "ABCD", intervention)
    assert replay_row(model, world, world.row(0)) == values


def test_the_first_mismatch_is_first_by_world_then_row_then_order() -> None:
    model = _model("A", C="A", B="(not A)")
    right, wrong = _world(["010", "101"], "ABC"), _world(["010", "110", "010"], "ABC")
    assert first_mismatch(model, [right, wrong]) == Cell("w", 1, "B", 0, 1)
    assert first_mismatch(model, [right, wrong], ("C", "B")) == Cell("w", 1, "C", 1, 0)
    assert first_mismatch(model, [right]) is None


def test_nothing_scored_is_nothing_wrong() -> None:
    model = _model("A", B="(not A)")
    all_clamped = _world(["00", "11"], "AB", Intervention({}, ("B",)))
    assert list(replay_world(model, all_clamped)) == []
    assert replays_exactly(model, [all_clamped])
    assert replays_exactly(model, [])


# --- The published scorer's verdicts: every shared conformance vector, and the model outputs of the official sample
SAMPLE = "official_sample.runtime.yaml"
VARIANTS = {"ordered": 345, "block": 345, "hidden_order": 345, "hidden_roots": 345, "alt_exp": 154}
WORDING = {"failureExplanation", "parseError"}  # whose English is each program's own
ABSENT: Any = "(absent)"


@cache
def _problems(file: str) -> Mapping[str, Problem]:
    return {problem.id: problem for problem in read_pool(shared_file(file)).problems}


@cache
def _evaluator(file: str, instance: str, extractor: str) -> Evaluator:
    return Evaluator(_problems(file)[instance], extractor=extractor)


def _verdict(vector: Mapping[str, Any]) -> Mapping[str, Any]:
    file = SAMPLE if vector["poolFile"].startswith("OFFICIAL:") else vector["poolFile"]
    evaluator = _evaluator(file, vector["instanceId"], "published")
    if "rawResponse" in vector:
        return evaluator.score_text(vector["rawResponse"]).to_dict()
    return evaluator.score_answer(vector["submission"]).to_dict()


def _differences(expected: Mapping[str, Any], found: Mapping[str, Any], known: set[str]) -> dict[str, tuple[Any, Any]]:
    """Keys on which a verdict differs: another value, missing here, or here although the published one lacks it."""
    differences = {}
    for key in known:
        wanted, given = expected.get(key, ABSENT), found.get(key, ABSENT)
        if key == "candidateStats" and wanted is not ABSENT and given is not ABSENT:
            given = {name: given[name] for name in wanted}
        if type(wanted) is not type(given) or wanted != given:
            differences[key] = wanted, given
    if (expected["failureExplanation"] is None) != (found["failureExplanation"] is None):
        differences["failureExplanation"] = expected["failureExplanation"], found["failureExplanation"]
    return differences


@pytest.mark.parametrize(("variant", "number"), VARIANTS.items())
def test_every_vector_gets_the_published_verdict(variant: str, number: int) -> None:
    vectors = list(shared_records("conformance_dev.jsonl", variant=variant))
    assert len(vectors) == number
    known = {key for vector in vectors for key in vector["expect"]} - WORDING
    differing = {
        f"{vector['id']} {vector['kind']}": differences
        for vector in vectors
        if (differences := _differences(vector["expect"], _verdict(vector), known))
    }
    assert differing == {}


def test_there_is_no_vector_of_another_variant() -> None:
    assert {vector["variant"] for vector in shared_records("conformance_dev.jsonl")} == VARIANTS.keys()


# --- what real models answered -----------------------------------------------------------------------------------


def _stored() -> Iterator[tuple[Problem, ModelResult]]:
    for problem in _problems(SAMPLE).values():
        yield from ((problem, result) for result in problem.results())


def _agrees(result: ModelResult, found: Mapping[str, Any]) -> bool:
    """Whether a verdict has every key of the stored evaluation that is a verdict, with its value."""
    told = {
        "referenceRole",
        "candidateStats",
        *WORDING,
    }  # the first tells of the item; the second has a test of its own
    return all(found.get(key, ABSENT) == value for key, value in result.evaluation.items() if key not in told)


def test_the_sample_holds_eighteen_outputs_with_verdicts() -> None:
    stored = list(_stored())
    assert len(stored) == 18
    assert all(isinstance(result.extracted_answer, dict) and result.raw_response for _, result in stored)
    assert all(result.evaluation["valid"] for _, result in stored)
    assert sum(result.evaluation["correct"] for _, result in stored) == 12
    assert all(len(result.evaluation) >= 28 for _, result in stored)


def test_extracted_answers_get_the_stored_verdicts() -> None:
    for problem, result in _stored():
        prediction = {"extractedAnswer": result.extracted_answer, "rawResponse": "not looked at"}
        score = Evaluator(problem).score_prediction(prediction)
        assert _agrees(result, score.to_dict()), result.model
        assert score.to_dict()["candidateStats"] == result.evaluation["candidateStats"]


@pytest.mark.parametrize(("extractor", "number"), [("paper", 18), ("published", 14)])
def test_raw_responses_get_the_stored_verdicts(extractor: str, number: int) -> None:
    """The released extractor calls four counted answers invalid; the protocol's rule does not."""
    scored = [
        (result, _evaluator(SAMPLE, problem.id, extractor).score_prediction({"rawResponse": result.raw_response}))
        for problem, result in _stored()
    ]
    assert sum(_agrees(result, score.to_dict()) for result, score in scored) == number
    assert sum(score.valid for _, score in scored) == number
