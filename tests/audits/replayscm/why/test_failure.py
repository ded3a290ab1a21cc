"""Why an answer fails: the six cases of the paper's Appendix I with its figures, and the command that shows them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant.audits.replayscm.why.failure import FailureWhy, explain_failure
from calibrant.dsl.formulas.reference import evaluate
from calibrant.dsl.replayscm.item import Problem
from calibrant.dsl.replayscm.reference import first_mismatch
from calibrant.dsl.replayscm.score import Evaluator
from tests.audits.replayscm.why.appendix_cases import CASES, case_record, problem_of, record
from tests.support.replayscm.strategies import answer_of as submission
from tests.support.replayscm.strategies import legal_maps, problems

HEADER = {"format": "calibrant-pool", "version": 1, "name": "cases", "metadata": {}}
SHOWN = {
    "case 1, Hidden-order": (14, 32),
    "case 1, Ordered": (0, 16),
    "case 2": (3, 16),
    "case 4": (6, 16),
    "case 5": (3, 8),
    "case 6": (0, 16),
}


def explained(problem: Problem, answer: dict[str, Any]) -> FailureWhy:
    return explain_failure(problem, Evaluator(problem, compiles=False).score_answer(answer), "m")


def answer_of(name: str) -> dict[str, Any]:
    variable, _, text = CASES[name]
    return {"mechanisms": {variable: text}}


@pytest.mark.parametrize("name", CASES)
def test_differing_assignments_of_the_printed_cases(name: str) -> None:
    (compared,) = explained(problem_of(case_record(name)), answer_of(name)).variables
    assert compared.assignments is not None
    assert (len(compared.assignments), compared.num_assignments) == SHOWN[name]
    assert compared.relation == (
        "same"
        if SHOWN[name][0] == 0
        else "other function"
        if compared.gold_parents == compared.answer_parents
        else "other parents"
    )


@pytest.mark.parametrize(
    ("name", "expected"), [("case 2", ["0000", "1100", "1101"]), ("case 5", ["001", "100", "111"])]
)
def test_the_printed_assignments_are_never_shown_where_training_lacks_them(name: str, expected: list[str]) -> None:
    """Case 2: X3 X4 X6 X7; the item's training world has all other assignments, so the answer is train-exact."""
    why = explained(problem_of(case_record(name, expected)), answer_of(name))
    (compared,) = why.variables
    assert compared.assignments is not None
    assert ["".join(map(str, row.values.values())) for row in compared.assignments] == expected
    assert [(row.train, row.heldout) for row in compared.assignments] == [(0, 1)] * len(expected)
    assert not compared.contradicted
    assert why.totals.train_world == 1
    assert why.totals.heldout_world == 0
    assert why.mismatch is not None
    assert (why.mismatch.row, why.mismatch.is_own_fault) == (int(expected[0], 2), True)
    assert "No scored training row has an assignment at which they differ." in why.reason_text


def test_the_first_corner_of_case_2_is_the_printed_one() -> None:
    why = explained(problem_of(case_record("case 2", ["0000", "1100", "1101"])), answer_of("case 2"))
    mismatch = why.mismatch
    assert mismatch is not None
    assert mismatch.values == {"X3": 0, "X4": 0, "X6": 0, "X7": 0}
    assert (mismatch.expected, mismatch.predicted) == (1, 0)


def test_a_shown_assignment_contradicts_and_case_6_is_right_though_long() -> None:
    why = explained(problem_of(case_record("case 4")), answer_of("case 4"))
    assert [c.contradicted for c in why.variables] == [True]
    assert (why.totals.gold_size, why.totals.answer_size) == (9, 3)  # nodes of the two printed formulas
    assert (why.totals.gold_references, why.totals.answer_references) == (3, 2)
    right = explained(problem_of(case_record("case 6")), answer_of("case 6"))
    assert (right.state, right.mismatch, right.totals.heldout_cells) == ("decided", None, 1.0)


REFERENCE = {
    "X1": "(xor X3 X8)",
    "X2": "(xor X3 X8)",
    "X6": "(xor X1 X2)",
    "X7": "(xor X1 X2)",
    "X5": "(iff X4 (xor (and X1 X6) (or X2 X4)))",
}


def test_case_3_has_the_printed_experiment_rates() -> None:
    """Without an intervention X6 and X7 are equal, so the alternative X6 = X7 fits."""
    content = record(("X3", "X4", "X8"), REFERENCE, ["000", "101", "110"], ["001", "010", "111"], "case 3")
    problem = problem_of(content | {"kind": "CIND_A_SCM_ALT_EXP", "reference": REFERENCE})
    claims = [
        {"variable": "X6", "reference": 0, "alternative": 1},
        {"variable": "X5", "reference": 1, "alternative": 0},
    ]
    answer = {
        "alternative": {"mechanisms": {**REFERENCE, "X6": "X7"}},
        "experiment": {"type": "hard_do", "assignments": {"X7": 1}},
        "witness": {"rootAssignment": {"X3": 1, "X4": 1, "X8": 0}, "differences": claims},
    }
    why = explained(problem, answer)
    assert why.target == "reference"
    assert why.open == ("X6",)
    assert why.experiment is not None
    assert (why.experiment.disagreement_rate, why.experiment.cell_difference_rate) == (1.0, 0.375)
    assert (why.experiment.witness_valid, why.experiment.failure) == (True, "")


def test_an_ancestors_fault_is_told_from_the_mechanisms_own() -> None:
    """Y copies X; the answer negates X in the row that training lacks."""
    content = record(("A", "B"), {"X": "(and A B)", "Y": "(not X)"}, ["00", "01", "10", "00"], ["00", "11"] * 2, "item")
    answer = {"mechanisms": {"X": "(and A (not A))", "Y": "(not X)"}}
    mismatch = explained(problem_of(content), answer).mismatch
    assert mismatch is not None
    assert (mismatch.variable, mismatch.is_own_fault) == ("X", True)
    late = content | {"sealed": content["sealed"] | {"latent_order": ["A", "B", "Y", "X"]}}
    mismatch = explained(problem_of(late), answer).mismatch
    assert mismatch is not None
    assert (mismatch.variable, mismatch.is_own_fault, mismatch.inherited) == ("Y", False, ("X",))


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_comparisons_agree_with_evaluation_of_every_assignment_and_with_the_replay(data: st.DataObject) -> None:
    problem = data.draw(problems(settings=("Ordered", "Hidden-order", "Block")))
    score = Evaluator(problem, compiles=False).score_answer(
        submission(problem, data.draw(legal_maps(problem.task.disclosure, problem.sealed.latent_order)))
    )
    gold, model = problem.sealed.gold, score.model
    if model is None or gold is None:
        with pytest.raises(ValueError, match=r"."):
            explain_failure(problem, score, "m")
        return
    why = explain_failure(problem, score, "m")
    for compared in why.variables:
        assert compared.assignments is not None
        first, second = gold.mechanisms[compared.name], model.mechanisms[compared.name]
        for row in compared.assignments:
            rest = dict.fromkeys((*first.mentioned, *second.mentioned), 0)
            assert (evaluate(first, rest | row.values), evaluate(second, rest | row.values)) == (row.gold, row.answer)
        assert bool(compared.assignments) == (compared.relation != "same")
        rows = [
            row
            for world in problem.task.training.worlds
            if compared.name not in world.intervention.targets
            for row in world.rows()
        ]
        assert compared.contradicted == any(evaluate(second, row) != row[compared.name] for row in rows)
    cell = first_mismatch(model, problem.sealed.heldout.worlds)
    assert (why.mismatch is None) == (cell is None)
    if cell is not None and why.mismatch is not None:
        assert (why.mismatch.world, why.mismatch.row) == (cell.world, cell.row)
