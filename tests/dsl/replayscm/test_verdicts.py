"""Verdicts: the funnel, which text of a prediction counts, root sets, and where structure is compared."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from calibrant.dsl.formulas.formula import var
from calibrant.dsl.replayscm.disclosure import HiddenOrder, HiddenRoots
from calibrant.dsl.replayscm.item import Problem, TaskKind
from calibrant.dsl.replayscm.scm import scm, structure_metrics
from calibrant.dsl.replayscm.score import Evaluator
from tests.support.replayscm.written import written_problem, written_scm, written_world

NAMES = "A B C D"
GOLD = written_scm("A B", C="(or A B)", D="(xor C A)")
HIDDEN = HiddenOrder(("A", "B", "C", "D"), ("A", "B"))
EXACT = [
    written_world("train_00", NAMES, "0000 0111 1010 1110"),
    written_world("train_01", NAMES, "0101", do={"C": 0, "D": 1}),
]


def _problem() -> Problem:
    return written_problem(HIDDEN, GOLD, EXACT)


# --- the funnel --------------------------------------------------------------------------------------------------

FUNNEL = {
    "extracted": "nothing that looks like an answer",
    "schema": '{"mechanism": {}}',
    "keys": '{"mechanisms": {"C": "(or A B)"}}',
    "parse": '{"mechanisms": {"C": "(or A B", "D": "C"}}',
    "legal": '{"mechanisms": {"C": "C", "D": "C"}}',
    "acyclic": '{"mechanisms": {"C": "D", "D": "C"}}',
}


@pytest.mark.parametrize("stage", FUNNEL)
def test_the_funnel_stops_at_the_stage_that_failed(stage: str) -> None:
    score = Evaluator(_problem()).score_text(FUNNEL[stage])
    stages = list(FUNNEL)
    assert score.rejection is not None
    assert score.rejection.stage == stage
    assert score.funnel == {name: stages.index(name) < stages.index(stage) for name in stages}
    assert (score.valid, score.correct, score.train_exact, score.heldout_exact) == (False, False, False, False)
    made = score.to_dict()
    assert made["failureExplanation"] == score.rejection.reason
    assert {"trainExact", "heldoutExact", "accGoldPlus", "candidateStats"}.isdisjoint(made)
    assert (score.model, score.structure) == (None, None)


def test_a_valid_answer_passed_every_stage() -> None:
    score = Evaluator(_problem()).score_text('{"mechanisms": {"C": "A", "D": "A"}}')
    assert score.funnel == dict.fromkeys(FUNNEL, True)
    assert (score.valid, score.correct, score.failure) == (True, False, None)  # wrong, but nothing is wrong with it


# --- predictions -------------------------------------------------------------------------------------------------

RIGHT = {"mechanisms": {"C": "(or A B)", "D": "(xor C A)"}}
LEGAL = {"mechanisms": {"C": "A", "D": "B"}}


@pytest.mark.parametrize(
    ("prediction", "stage"),
    [
        ({"extractedAnswer": RIGHT, "rawResponse": ""}, None),
        ({"extractedAnswer": {}, "rawResponse": json.dumps(RIGHT)}, "schema"),  # an object, even an empty one
        ({"extractedAnswer": None, "rawResponse": json.dumps(RIGHT)}, None),
        ({"extractedAnswer": [RIGHT], "response": json.dumps(RIGHT)}, None),
        ({"rawResponse": json.dumps(RIGHT), "response": ""}, None),
        ({"rawResponse": "", "response": json.dumps(RIGHT)}, "extracted"),
        ({"rawResponse": None, "response": json.dumps(RIGHT), "text": ""}, None),
        ({"text": json.dumps(RIGHT)}, None),
        ({}, "extracted"),
    ],
)
def test_which_part_of_a_prediction_counts(prediction: dict[str, Any], stage: str | None) -> None:
    score = Evaluator(_problem()).score_prediction(prediction)
    assert (score.rejection and score.rejection.stage) == stage
    assert score.correct == (stage is None)


def test_of_several_objects_the_first_valid_one_counts() -> None:
    evaluator = Evaluator(_problem())
    unreadable = {"mechanisms": {"C": "(or A B", "D": "(xor C A)", "E": ""}}
    assert evaluator.score_text(f"draft {json.dumps(unreadable)} answer {json.dumps(RIGHT)}").answer == RIGHT
    longer = {"mechanisms": {"C": "(or A A A A)", "D": "(or B B B B)"}}  # valid, but wrong: nobody picks the right one
    assert evaluator.score_text(f"{json.dumps(RIGHT)} {json.dumps(longer)}").answer == longer
    assert evaluator.score_text(f"{json.dumps(unreadable)} {{}}").answer == unreadable
    published = Evaluator(_problem(), extractor="published")
    assert published.score_text(f"draft {json.dumps(unreadable)} answer {json.dumps(RIGHT)}").valid is False


# --- Hidden-roots ------------------------------------------------------------------------------------------------

ROOTS = HiddenRoots(("A", "B", "C", "D"), 2)
ROOT_ROWS = [written_world("train_00", NAMES, "0000 0111 1010")]  # here B and C also determine A: A = (xor B C)


def _root_score(roots: list[Any], **mechanisms: Any) -> dict[str, Any]:
    problem = written_problem(ROOTS, GOLD, ROOT_ROWS, kind=TaskKind.ROOTS, latent="B A C D")
    return Evaluator(problem).score_answer({"roots": roots, "mechanisms": mechanisms}).to_dict()


def test_right_roots_and_an_exact_map_are_correct() -> None:
    made = _root_score(["A", "B"], C="(or A B)", D="(xor C A)")
    assert (made["valid"], made["correct"], made["rootSetExact"], made["failureExplanation"]) == (
        True,
        True,
        True,
        None,
    )
    assert (made["rootPrecision"], made["rootRecall"]) == (1.0, 1.0)
    assert (made["predictedRoots"], made["goldRoots"]) == (["B", "A"], ["B", "A"])  # latent order
    assert made["mechanismTrainExact"] is made["trainExact"] is True


def test_a_wrong_root_set_may_be_train_exact_but_is_not_correct() -> None:
    made = _root_score(["C", "B"], A="(xor B C)", D="B")
    assert (made["valid"], made["trainExact"], made["mechanismTrainExact"]) == (True, True, True)
    assert (made["correct"], made["rootSetExact"]) == (False, False)
    assert (made["rootPrecision"], made["rootRecall"]) == (0.5, 0.5)
    assert made["predictedRoots"] == ["B", "C"]
    assert made["failureExplanation"] is not None
    assert made["perVariableTrainAccuracy"] == {"A": 1.0, "D": 1.0}  # a true root that was called endogenous is scored


def test_root_keys_are_there_iff_the_root_checks_passed() -> None:
    keys = {"rootSetExact", "rootPrecision", "rootRecall", "predictedRoots", "goldRoots"}
    late = _root_score(["A", "B"], C="(or A B", D="C")
    assert (late["valid"], late["correct"], late["rootSetExact"]) == (False, False, True)
    assert (late["mechanismTrainExact"], "trainExact" in late) == (False, False)
    assert keys <= late.keys()
    early = _root_score(["A", "B"], C="(or A B)")
    assert early["valid"] is False
    assert keys.isdisjoint(early.keys())
    duplicate = _root_score(["A", "A"], C="A", D="A")
    assert keys & duplicate.keys() == {"predictedRoots"}


def test_without_gold_no_root_set_is_called_right() -> None:
    problem = written_problem(ROOTS, GOLD, ROOT_ROWS, kind=TaskKind.ROOTS)
    blind = replace(problem, sealed=replace(problem.sealed, gold=None, gold_size=None))
    made = Evaluator(blind).score_answer({"roots": ["A", "B"], **RIGHT}).to_dict()
    assert (made["valid"], made["trainExact"], made["rootSetExact"], made["correct"]) == (True, True, False, False)
    assert made["rootPrecision"] is made["rootRecall"] is None
    assert (made["goldRoots"], made["failureExplanation"]) == ([], "the true root set is not known")


# --- structure ---------------------------------------------------------------------------------------------------


def test_structure_is_compared_where_gold_has_the_same_roots() -> None:
    score = Evaluator(_problem()).score_answer({"mechanisms": {"C": "(or A B)", "D": "C"}})
    assert score.model is not None
    assert score.structure == structure_metrics(GOLD, score.model)
    problem = written_problem(ROOTS, GOLD, ROOT_ROWS, kind=TaskKind.ROOTS)
    swapped = Evaluator(problem).score_answer({"roots": ["C", "B"], "mechanisms": {"A": "(xor B C)", "D": "B"}})
    assert (swapped.valid, swapped.structure) == (True, None)
    unknown = replace(problem, sealed=replace(problem.sealed, gold=None))
    assert Evaluator(unknown).score_answer({"roots": ["A", "B"], **RIGHT}).structure is None


def test_a_mechanism_too_wide_for_a_truth_table_has_a_score_but_no_structure() -> None:
    names = [f"X{i}" for i in range(1, 19)]
    gold = scm(names[:-1], {"X18": var("X1")})
    rows = written_world("w", " ".join(names), "0" * 18)
    problem = written_problem(HiddenOrder(tuple(names), tuple(names[:-1])), gold, [rows])
    score = Evaluator(problem).score_answer({"mechanisms": {"X18": f"(and {' '.join(names[:-1])})"}})
    assert (score.train_exact, score.structure) == (True, None)
