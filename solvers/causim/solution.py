"""A question worked out in words: abduction, action, prediction, and the answer, every step checked as it is written.

The world that is followed is the first fitting one. What abduction says of a noise variable is the whole set of values
that the evidence allows it where the fitting worlds are a product, else its value in the world that is followed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from calibrant.dsl.causim.model import Model, Node, run
from calibrant.dsl.causim.question import Answer, Question, project
from calibrant.dsl.causim.reasons import allowed_noise
from calibrant.dsl.causim.values import Assignment, ModelError, Symbol, assignment_text
from calibrant.solvers.budget import Budget, BudgetSpent
from calibrant.solvers.causim.answers import MAX_STATES, AnswerSet
from calibrant.solvers.outcome import Found, Impossible, Outcome, OutOfBudget

Stage: TypeAlias = Literal["abduction", "action", "prediction"]


@dataclass(frozen=True)
class SolutionStep:
    """One line of a solution; `name` is the noise variable or node that it settles."""

    stage: Stage
    name: str
    text: str


@dataclass(frozen=True)
class WorkedSolution:
    """steps: in the order in which they are to be read; answer: a right answer, that of the world followed."""

    steps: tuple[SolutionStep, ...]
    answer: Answer

    def __repr__(self) -> str:
        return f"<WorkedSolution of {len(self.steps)} steps>"

    @property
    def text(self) -> str:
        """The steps under their headings, then the answer as one line of JSON."""
        lines: list[str] = []
        for stage in ("abduction", "action", "prediction"):
            texts = [step.text for step in self.steps if step.stage == stage]
            if texts:
                lines += [f"{stage.capitalize()}:", *texts, ""]
        return "\n".join([*lines, assignment_text(self.answer)]) + "\n"


def solution(model: Model, question: Question) -> Outcome[WorkedSolution]:
    """`Impossible` if no world fits."""
    members = AnswerSet(model, question)
    try:
        found = next(members.fitting_worlds(Budget(MAX_STATES)), None)
    except BudgetSpent:
        return OutOfBudget("no fitting world was found among the beginnings looked at")
    if found is None:
        return Impossible("all worlds that agree with the fixed noise")
    world = {node.noise: node.support[k] for node, k in zip(model.nodes, found, strict=True)}
    values = run(model, world, question.do)
    answer = project(question, model, world, values)
    assert members.contains(answer)
    steps = [*_abduction(model, question, world), *_action(question)]
    if question.type != "abduction":
        steps.extend(_prediction(model, question, world, values))
    return Found(WorkedSolution(tuple(steps), answer))


def _abduction(model: Model, question: Question, world: Assignment) -> Iterator[SolutionStep]:
    """Return what is known of every noise variable, and which value is followed."""
    try:
        allowed = allowed_noise(model, question)
    except ModelError:
        allowed = {}
    factual = run(model, world, {})
    for node in model.nodes:
        chosen = world[node.noise]
        if node.noise in question.fixed:
            text = f"{node.noise} = {chosen} is given."
        elif not question.observed:
            text = f"{node.noise} may be any of {_list(node.support)}; take {chosen}."
        else:
            text = _explained(node, question, factual, allowed.get(node.noise, (chosen,)), chosen)
        yield SolutionStep("abduction", node.noise, text)


def _explained(node: Node, question: Question, factual: Assignment, allowed: tuple[Symbol, ...], chosen: Symbol) -> str:
    given = _arguments(node, factual)
    if node.name not in question.observed:
        return f"{node.noise} = {chosen} agrees with everything seen{given}."
    seen = f"{node.name} = {factual[node.name]} was seen{given}"
    if len(allowed) == 1:
        return f"{seen}: only {node.noise} = {chosen} agrees with that and with everything else seen."
    return f"{seen}: {node.noise} may be any of {_list(allowed)}; take {chosen}."


def _action(question: Question) -> Iterator[SolutionStep]:
    for name, value in question.do.items():
        yield SolutionStep("action", name, f"{name} is set to {value}; its equation no longer counts.")


def _prediction(model: Model, question: Question, world: Assignment, values: Assignment) -> Iterator[SolutionStep]:
    for node in model.nodes:
        if node.name in question.do:
            text = f"{node.name} = {values[node.name]}, as set."
        else:
            inputs = [*((parent, values[parent]) for parent in node.parents), (node.noise, world[node.noise])]
            given = ", ".join(f"{name} = {value}" for name, value in inputs)
            text = f"{node.name} = {values[node.name]}, from {given}."
        yield SolutionStep("prediction", node.name, text)


def _arguments(node: Node, values: Assignment) -> str:
    if not node.parents:
        return ""
    return " with " + ", ".join(f"{parent} = {values[parent]}" for parent in node.parents)


def _list(values: tuple[Symbol, ...]) -> str:
    return ", ".join(values)
