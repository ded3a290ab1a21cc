"""Scores of one answer, beyond the shared vectors of the published keys (tests/dsl/replayscm/test_reference.py)."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant.dsl.formulas.formula import var
from calibrant.dsl.replayscm.disclosure import HiddenOrder, HiddenRoots
from calibrant.dsl.replayscm.item import Problem, TaskKind
from calibrant.dsl.replayscm.scm import scm, structure_metrics
from calibrant.dsl.replayscm.score import Evaluator, Score
from tests.support.effort import examples
from tests.support.replayscm.brute_force import counts
from tests.support.replayscm.strategies import SETTINGS, answer_of, legal_maps, problems
from tests.support.replayscm.written import written_problem, written_scm, written_world

NAMES = "A B C D"
GOLD = written_scm("A B", C="(or A B)", D="(xor C A)")
HIDDEN = HiddenOrder(("A", "B", "C", "D"), ("A", "B"))
EXACT = [
    written_world("train_00", NAMES, "0000 0111 1010 1110"),
    written_world("train_01", NAMES, "0101", do={"C": 0, "D": 1}),
]


def _problem(**given: Any) -> Any:
    return written_problem(given.pop("disclosure", HIDDEN), GOLD, given.pop("training", EXACT), **given)


def _score(mechanisms: Mapping[str, str], **given: Any) -> Score:
    return Evaluator(_problem(**given)).score_answer({"mechanisms": dict(mechanisms)})


# --- sizes -------------------------------------------------------------------------------------------------------


def test_candidate_stats_are_those_of_the_submitted_text() -> None:
    made = _score({"C": "(or A (B) (not (not A)))", "D": "(xor C (iff A A) C)"}).to_dict()["candidateStats"]
    assert (made["astSize"], made["maxDepth"], made["parentCount"], made["equationCount"]) == (12, 4, 4, 2)
    assert made["operatorCounts"] == {"or": 1, "not": 2, "xor": 1, "iff": 1}
    assert made["parentsByVar"] == {"C": ["A", "B"], "D": ["A", "C"]}
    assert made["perVariable"]["D"] == {
        "astSize": 6, "maxDepth": 3, "parentCount": 2, "operatorCounts": {"xor": 1, "iff": 1}, "containsIf": False,
        "variables": ["A", "C"],
    }  # fmt: skip


# --- what an evaluator keeps --------------------------------------------------------------------------------------


def test_what_an_evaluator_keeps_is_neither_another_answer_nor_changed_by_who_reads_it() -> None:
    """Right answers of several sizes and wrong ones in turns, each as an evaluator that met no other one says it."""
    maps = [
        {"C": "(or A B)", "D": "(xor C A)"},
        {"C": "(or B A A)", "D": "(xor A C)"},
        {"C": "(or A B)", "D": "(xor C B)"},
        {"C": "A", "D": "(xor C A)"},
        {"C": "(or A B" + " B" * 30 + ")", "D": "(xor C A)"},
    ]
    one, exact = Evaluator(_problem()), set()
    for mechanisms in [*maps, *maps[::-1]]:
        made = one.score_answer({"mechanisms": mechanisms}).to_dict()
        alone = _score(mechanisms).to_dict()
        assert json.dumps(made) == json.dumps(alone)
        exact.add((made["trainExact"], made["candidateStats"]["astSize"], made["bloat"]))
        for inner in (one for one in made.values() if isinstance(one, dict)):
            inner.clear()
        made.clear()
    assert {(True, 6, False), (True, 7, False), (True, 36, True)} < exact
    assert any(not is_exact for is_exact, _, _ in exact)


# --- drawn -------------------------------------------------------------------------------------------------------


@given(problems(settings=SETTINGS), st.data())
@settings(deadline=None, max_examples=examples(100))
def test_scores_are_what_the_oracle_counts(problem: Any, data: st.DataObject) -> None:
    disclosure, sealed = problem.task.disclosure, problem.sealed
    gold_map = dict(sealed.gold.mechanisms)
    mechanisms = data.draw(st.just(gold_map) | legal_maps(disclosure, sealed.latent_order))
    answer = answer_of(problem, mechanisms)
    before = copy.deepcopy(answer)
    evaluator = Evaluator(problem)
    score = evaluator.score_answer(answer)
    assert score.valid
    assert score.submission is not None
    order = score.submission.candidate.order
    model = scm([v for v in problem.task.variables if v not in mechanisms], mechanisms)
    train = counts(model, problem.task.training.worlds, order)
    heldout = counts(model, sealed.heldout.worlds, order)
    made = score.to_dict()
    for split, found in (("train", train), ("heldout", heldout)):
        assert made[f"{split}Worlds"] == found.worlds
        assert made[f"{split}WorldExactCount"] == found.exact_worlds
        assert made[f"{split}Accuracy"] == ((found.cells - len(found.wrong)) / found.cells if found.cells else None)
        first = made[f"first{split.capitalize()}Mismatch"]
        assert (tuple(first.values()) if first else None) == (found.wrong[0] if found.wrong else None)
    exact, heldout_exact = (found.cells > 0 and not found.wrong for found in (train, heldout))
    assert (made["trainExact"], made["heldoutAllWorldsExact"]) == (exact, heldout_exact)
    assert made["heldoutExact"] == (exact and heldout_exact)
    assert (score.train_exact, score.heldout_exact) == (made["trainExact"], made["heldoutExact"])
    assert score.correct == made["correct"]
    assert score.model == model
    if problem.task.kind is not TaskKind.ALTERNATIVE:
        assert made["correct"] == (exact and (problem.task.kind is TaskKind.SCM or model.roots == sealed.gold.roots))
    assert answer == before
    assert json.dumps(made, allow_nan=False) == json.dumps(evaluator.score_answer(answer).to_dict(), allow_nan=False)


# --- Verdicts: the funnel, which text of a prediction counts, root sets, and where structure is compared --------------


def _verdict_problem() -> Problem:
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
    score = Evaluator(_verdict_problem()).score_text(FUNNEL[stage])
    stages = list(FUNNEL)
    assert score.rejection is not None
    assert score.rejection.stage == stage
    assert score.funnel == {name: stages.index(name) < stages.index(stage) for name in stages}
    assert (score.valid, score.correct, score.train_exact, score.heldout_exact) == (False, False, False, False)
    made = score.to_dict()
    assert made["failureExplanation"] == score.rejection.reason
    assert {"trainExact", "heldoutExact", "accGoldPlus", "candidateStats"}.isdisjoint(made)
    assert (score.model, score.structure) == (None, None)


# --- predictions -------------------------------------------------------------------------------------------------

RIGHT = {"mechanisms": {"C": "(or A B)", "D": "(xor C A)"}}


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
    score = Evaluator(_verdict_problem()).score_prediction(prediction)
    assert (score.rejection and score.rejection.stage) == stage
    assert score.correct == (stage is None)


def test_of_several_objects_the_first_valid_one_counts() -> None:
    evaluator = Evaluator(_verdict_problem())
    unreadable = {"mechanisms": {"C": "(or A B", "D": "(xor C A)", "E": ""}}
    assert evaluator.score_text(f"draft {json.dumps(unreadable)} answer {json.dumps(RIGHT)}").answer == RIGHT
    longer = {"mechanisms": {"C": "(or A A A A)", "D": "(or B B B B)"}}  # valid, but wrong: nobody picks the right one
    assert evaluator.score_text(f"{json.dumps(RIGHT)} {json.dumps(longer)}").answer == longer
    assert evaluator.score_text(f"{json.dumps(unreadable)} {{}}").answer == unreadable
    published = Evaluator(_verdict_problem(), extractor="published")
    assert published.score_text(f"draft {json.dumps(unreadable)} answer {json.dumps(RIGHT)}").valid is False


# --- Hidden-roots ------------------------------------------------------------------------------------------------

ROOTS = HiddenRoots(("A", "B", "C", "D"), 2)
ROOT_ROWS = [written_world("train_00", NAMES, "0000 0111 1010")]  # here B and C also determine A: A = (xor B C)


def test_without_gold_no_root_set_is_called_right() -> None:
    problem = written_problem(ROOTS, GOLD, ROOT_ROWS, kind=TaskKind.ROOTS)
    blind = replace(problem, sealed=replace(problem.sealed, gold=None, gold_size=None))
    made = Evaluator(blind).score_answer({"roots": ["A", "B"], **RIGHT}).to_dict()
    assert (made["valid"], made["trainExact"], made["rootSetExact"], made["correct"]) == (True, True, False, False)
    assert made["rootPrecision"] is made["rootRecall"] is None
    assert (made["goldRoots"], made["failureExplanation"]) == ([], "the true root set is not known")


# --- structure ---------------------------------------------------------------------------------------------------


def test_structure_is_compared_where_gold_has_the_same_roots() -> None:
    score = Evaluator(_verdict_problem()).score_answer({"mechanisms": {"C": "(or A B)", "D": "C"}})
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
