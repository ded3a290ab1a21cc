"""Answers by running worlds one after the other, all of them or a first part."""

from __future__ import annotations

from itertools import islice

from calibrant.dsl.causim.model import Model, assignment_text, run
from calibrant.dsl.causim.question import Answer, Question, project
from calibrant.dsl.causim.reference import Worked, work_out, worlds
from calibrant.solvers.causim.answers import AnswerSet
from calibrant.solvers.outcome import Found, Outcome, OutOfBudget


def enumerate_worlds(model: Model, question: Question, max_worlds: int) -> Outcome[Worked]:
    """Work out everything about a question, if at most `max_worlds` worlds agree with the fixed noise."""
    # a product of set sizes: refused before the first world is run
    number = AnswerSet(model, question).worlds
    if number > max_worlds:
        return OutOfBudget(f"{number} worlds agree with the fixed noise; up to {max_worlds} are run")
    return Found(work_out(model, question))


def first_answers(model: Model, question: Question, max_worlds: int) -> dict[str, Answer]:
    """Return the answers of the first worlds, in the order of their noise, as a pipeline with a cap stores them."""
    answers: dict[str, Answer] = {}
    for noise, _ in islice(worlds(model, question.fixed), max_worlds):
        factual = run(model, noise, {})
        if all(factual[name] == value for name, value in question.observed.items()):
            answer = project(question, model, noise, run(model, noise, question.do))
            answers.setdefault(assignment_text(answer), answer)
    return answers
