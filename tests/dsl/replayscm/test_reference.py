"""The reference against a recursive oracle, and the published scorer's verdicts (docs/semantics.md, "Replay")."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant.dsl.formulas.text import parse
from calibrant.dsl.replayscm.item import ModelResult, Problem
from calibrant.dsl.replayscm.pools.files import read_pool
from calibrant.dsl.replayscm.reference import Cell, first_mismatch, replay_row, replay_world, replays_exactly
from calibrant.dsl.replayscm.scm import Scm, scm
from calibrant.dsl.replayscm.score import Evaluator
from calibrant.dsl.replayscm.world import Intervention, World
from tests.support.effort import examples
from tests.support.replayscm.brute_force import observed_bit, replay_world_row
from tests.support.replayscm.strategies import (
    arbitrary_worlds,
    scms,
    simulated_worlds,
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
