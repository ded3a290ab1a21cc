"""Answers that follow from the exact family: its least model, the majority of its members cell by cell, the shares."""

from __future__ import annotations

from fractions import Fraction

from calibrant.dsl.logic.clause import Model
from calibrant.dsl.logic.grading import Table
from calibrant.dsl.logic.task import Task
from calibrant.solvers.logic.elimination.lattice import LatticeLimitError
from calibrant.solvers.logic.family import LogicFamily, solve_family
from calibrant.solvers.logic.search import USUAL_LIMITS, Limits
from calibrant.solvers.outcome import Found, OutOfBudget


def exact(task: Task, limits: Limits = USUAL_LIMITS) -> Found[Model] | OutOfBudget:
    """Return a model of the least misfit, and of these of the least size, proven."""
    outcome = solve_family(task, limits)
    return Found(outcome.value.witness) if isinstance(outcome, Found) else outcome


def posterior(task: Task, limits: Limits = USUAL_LIMITS) -> Found[Table] | OutOfBudget:
    """Return the share of members that answer 1, cell by cell of the questions."""
    shares = _shares(task, limits)
    if not isinstance(shares, Found):
        return shares
    return Found(tuple(tuple(map(float, row)) for row in shares.value))


def vote(task: Task, limits: Limits = USUAL_LIMITS) -> Found[Table] | OutOfBudget:
    """Return the answer of most members, cell by cell of the questions; 0 if as many answer 1 as 0."""
    shares = _shares(task, limits)
    if not isinstance(shares, Found):
        return shares
    return Found(tuple(tuple(float(share > Fraction(1, 2)) for share in row) for row in shares.value))


def _shares(task: Task, limits: Limits) -> Found[tuple[tuple[Fraction, ...], ...]] | OutOfBudget:
    outcome = solve_family(task, limits)
    if not isinstance(outcome, Found):
        return outcome
    try:
        return Found(question_shares(outcome.value))
    except LatticeLimitError as error:
        return OutOfBudget(str(error))


def question_shares(family: LogicFamily) -> tuple[tuple[Fraction, ...], ...]:
    """Return of each question and readout the share of members that answer 1."""
    predictions = family.predict(family.task.questions)
    return tuple(predictions.shares(number) for number in range(len(family.task.questions)))
