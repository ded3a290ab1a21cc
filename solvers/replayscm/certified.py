"""The last step of every solver: nothing is returned that the reference has not replayed."""

from __future__ import annotations

from dsl.errors import ParseError
from dsl.formulas.text import parse, render
from dsl.replayscm.problem import Task
from dsl.replayscm.reference import first_mismatch
from dsl.replayscm.scm import Scm


def illegality(task: Task, model: Scm) -> str | None:
    """Why an SCM is no answer to a task whatever the evidence: its roots, its parents, its operators; None if legal."""
    if len(model.roots) != task.disclosure.num_roots:
        return f"{len(model.roots)} roots where {task.disclosure.num_roots} are disclosed"
    violation = task.disclosure.violation(model.mechanisms)
    if violation:
        return violation.reason
    for variable, mechanism in model.mechanisms.items():
        try:
            parse(render(mechanism), task.grammar, frozenset(task.variables))
        except ParseError as error:
            return f"mechanism of {variable}: {error}"
    return None


def certified(task: Task, model: Scm) -> Scm:
    """The model, once it is legal and the reference has replayed it on every training row.

    A failure is a defect of the solver that made the model: `AssertionError`.
    """
    wrong = illegality(task, model) or first_mismatch(model, task.training.worlds)
    if wrong:
        raise AssertionError(f"a solver's answer failed its certificate: {wrong}")
    return model
