"""The checks of Alternative-SCM answers, trap by trap (docs/semantics.md, "Alternative-SCM")."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from calibrant.dsl.replayscm.score import Evaluator
from tests.support.replayscm.written import own_rows, pair_problem, written_scm

REFERENCE = written_scm("A B", C="(or A B)", D="(xor C A)", E="B")
OTHER = {"C": "(or A B)", "D": "(and C (not A))", "E": "B"}  # differs where A=1, C=0: only do(C=0) shows it
ANSWER: dict[str, Any] = {
    "alternative": {"mechanisms": OTHER},
    "experiment": {"type": "hard_do", "assignments": {"C": 0}},
    "witness": {
        "rootAssignment": {"A": 1, "B": 0},
        "differences": [{"variable": "D", "reference": 1, "alternative": 0}],
    },
}


def _scored(answer: dict[str, Any]) -> dict[str, Any]:
    return Evaluator(pair_problem(REFERENCE, own_rows(REFERENCE))).score_answer(answer).to_dict()


def _with(path: str, value: Any) -> dict[str, Any]:
    answer = copy.deepcopy(ANSWER)
    *parents, key = path.split(".")
    inner = answer
    for parent in parents:
        inner = inner[parent]
    inner[key] = value
    return answer


def test_the_whole_of_a_correct_answer() -> None:
    made = _scored(ANSWER)
    assert made["correct"] is made["jointSuccess"] is made["witnessValid"] is made["experimentResolves"] is True
    assert (made["pairDisagreementRate"], made["cellDifferenceRate"], made["experimentOptimality"]) == (0.5, 0.25, 1.0)
    assert made["bestPairwiseExperiment"] == {"type": "hard_do", "assignments": {"C": 0}}
    assert made["failureExplanation"] is None


@pytest.mark.parametrize("value", [0, "0", False, 0.0])
def test_bits_as_the_scorer_reads_them(value: Any) -> None:
    made = _scored(_with("experiment.assignments", {"C": value}))
    assert (made["correct"], made["experiment"]) == (True, {"type": "hard_do", "assignments": {"C": 0}})


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("experiment", None),
        ("experiment", []),
        ("experiment", {}),
        ("experiment.type", "HARD_DO"),
        ("experiment.type", "soft_do"),
        ("experiment.type", None),
        ("experiment.assignments", {}),
        ("experiment.assignments", {"C": 0, "D": 0}),
        ("experiment.assignments", [["C", 0]]),
        ("experiment.assignments", {"C": 2}),
        ("experiment.assignments", {"C": None}),
        ("experiment.assignments", {"C": "00"}),
        ("experiment.assignments", {"C": [0]}),
        ("experiment.assignments", {"C": 0.5}),
        ("experiment.assignments", {"C": float("nan")}),
    ],
)
def test_these_are_no_experiments(path: str, value: Any) -> None:
    made = _scored(_with(path, value))
    assert (made["valid"], made["correct"], made["altSuccess"], made["experimentValid"]) == (True, False, True, False)
    assert made["failureExplanation"] is not None
    assert {"pairSeparates", "witnessValid", "jointSuccess"}.isdisjoint(made)


def test_the_type_is_trimmed_and_a_foreign_variable_fails_later() -> None:
    assert _scored(_with("experiment.type", " hard_do\n"))["correct"] is True
    foreign = _scored(_with("experiment.assignments", {"Q": 0}))
    assert (foreign["experimentValid"], foreign["correct"]) == (True, False)
    assert "pairSeparates" not in foreign


def test_an_experiment_that_separates_nothing_fails() -> None:
    made = _scored(_with("experiment.assignments", {"C": 1}))
    assert (made["pairSeparates"], made["pairDisagreementRate"], made["experimentOptimality"]) == (False, 0.0, 0.0)
    assert (made["altSuccess"], made["correct"], made["jointSuccess"]) == (True, False, False)


GOOD_CLAIM = {"variable": "D", "reference": 1, "alternative": 0}


@pytest.mark.parametrize(
    ("path", "value", "is_valid"),
    [
        ("rootAssignment", {"A": "1", "B": True}, True),
        ("rootAssignment", {"A": 1, "B": 1}, True),  # B plays no part
        ("rootAssignment", {"A": 1, "B": 0, "Q": None, "D": "x", "C": 2}, True),  # entries that are no bit are dropped
        ("rootAssignment", {"A": 1, "B": 0, "C": 0}, False),  # and those that are have to be the roots
        ("rootAssignment", {"A": 1}, False),
        ("rootAssignment", {"A": 1, "B": None}, False),
        ("rootAssignment", {"A": 0, "B": 1}, False),  # here the two agree
        ("rootAssignment", [1, 0], False),
        ("differences", [{**GOOD_CLAIM, "variable": "C"}, GOOD_CLAIM, 7, None], True),  # one true claim is enough
        ("differences", [{"variable": "D", "reference": "1", "alternative": False}], True),
        ("differences", [{"variable": "D", "reference": 0, "alternative": 1}], False),
        ("differences", [{"variable": "D", "reference": 1, "alternative": 1}], False),
        ("differences", [{"variable": "D", "reference": 1}], False),
        ("differences", [{**GOOD_CLAIM, "variable": "E"}], False),
        ("differences", [{**GOOD_CLAIM, "variable": "A"}], False),
        ("differences", [{**GOOD_CLAIM, "variable": ["D"]}], False),
        ("differences", [{**GOOD_CLAIM, "variable": "C"}], False),  # the target itself
        ("differences", [], False),
        ("differences", GOOD_CLAIM, False),
        ("differences", None, False),
    ],
)
def test_what_makes_a_witness_valid(path: str, value: Any, is_valid: bool) -> None:
    made = _scored(_with(f"witness.{path}", value))
    assert (made["witnessValid"], made["correct"], made["witnessProvided"]) == (is_valid, is_valid, True)
    assert made["pairSeparates"] is True


@pytest.mark.parametrize("witness", [None, [], "none"])
def test_a_witness_that_is_no_object_is_not_provided(witness: Any) -> None:
    made = _scored(_with("witness", witness))
    assert (made["witnessProvided"], made["witnessValid"], made["correct"]) == (False, False, False)


def test_an_intervened_root_is_named_but_its_value_is_not_read() -> None:
    reference, other = written_scm("A B", C="(and A B)"), {"C": "B"}
    for bit in (0, 1):
        claim = {"variable": "C", "reference": 0, "alternative": 1}
        answer = {
            "alternative": {"mechanisms": other},
            "experiment": {"type": "hard_do", "assignments": {"A": 0}},
            "witness": {"rootAssignment": {"A": bit, "B": 1}, "differences": [claim]},
        }
        made = Evaluator(pair_problem(reference, "000 111")).score_answer(answer).to_dict()
        assert (made["correct"], made["pairDisagreementRate"]) == (True, 0.5)
        answer["witness"] = {"rootAssignment": {"B": 1}, "differences": [claim]}
        assert Evaluator(pair_problem(reference, "000 111")).score_answer(answer).to_dict()["witnessValid"] is False


@pytest.mark.parametrize(
    ("mechanisms", "distinct", "exact"),
    [
        ({**OTHER, "D": "(not (iff A C))"}, False, True),  # the reference in other words
        ({**OTHER, "D": "(xor C A (xor B B))"}, False, True),  # an inert mention makes no difference
        ({**OTHER, "D": "A"}, True, False),
        ({**OTHER, "D": "(and C (not A) (iff E E))"}, True, True),
    ],
)
def test_distinct_and_exact_are_asked_before_the_experiment(
    mechanisms: dict[str, str], distinct: bool, exact: bool
) -> None:
    made = _scored(_with("alternative.mechanisms", mechanisms))
    assert (made["altSemanticallyDistinct"], made["altTrainExact"]) == (distinct, exact)
    assert made["altSuccess"] is made["correct"] is (distinct and exact)
    if not (distinct and exact):
        assert {"pairSeparates", "witnessValid", "jointSuccess"}.isdisjoint(made)
        assert ("same as the reference" in made["failureExplanation"]) == (not distinct)


def test_a_map_that_is_neither_distinct_nor_exact_is_called_not_distinct() -> None:
    problem = pair_problem(REFERENCE, "00010")
    answer = _with("alternative.mechanisms", {**OTHER, "D": "(xor A C)"})
    made = Evaluator(problem).score_answer(answer).to_dict()
    assert (made["altTrainExact"], made["altSemanticallyDistinct"]) == (False, False)
    assert "same as the reference" in made["failureExplanation"]


def test_an_invalid_map_has_the_keys_without_values() -> None:
    made = _scored(_with("alternative.mechanisms", {**OTHER, "D": "(nand A C)"}))
    assert (made["valid"], made["correct"]) == (False, False)
    false = {"trainExact", "heldoutExact", "altValid", "altTrainExact", "altHeldoutExact"}
    null = {"trainAccuracy", "heldoutAccuracy", "accGoldPlus", "bloat", "goldAstSize", "firstTrainMismatch"}
    assert {key: made[key] for key in false | null} == {**dict.fromkeys(false, False), **dict.fromkeys(null)}
    plain = _scored({"mechanisms": OTHER})  # no alternative at all: no keys of one
    assert (false | null).isdisjoint(plain)
