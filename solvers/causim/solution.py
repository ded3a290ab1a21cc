"""Worked solution of a question in words: abduction, action, prediction (J. Pearl, Causality, 2000), and the answer.

Prediction follows the first fitting world. Abduction states, for each noise variable, all values that the evidence
allows where the fitting worlds are a product, else its value in that world.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from calibrant.dsl.causim.model import Assignment, Model, ModelError, Node, Symbol, assignment_text, run
from calibrant.dsl.causim.question import Answer, Question, project
from calibrant.dsl.causim.score import allowed_noise
from calibrant.solvers.causim.exact import MAX_STATES, AnswerSet
from calibrant.solvers.outcome import Budget, BudgetSpent, Found, Impossible, Outcome, OutOfBudget

Stage: TypeAlias = Literal["abduction", "action", "prediction"]


@dataclass(frozen=True)
class SolutionStep:
    """Line of a solution; `name` is the noise variable or node that it determines."""

    stage: Stage
    name: str
    text: str


@dataclass(frozen=True)
class WorkedSolution:
    """Steps in reading order, and a right answer: that of the world followed."""

    steps: tuple[SolutionStep, ...]
    answer: Answer

    def __repr__(self) -> str:
        return f"<WorkedSolution of {len(self.steps)} steps>"

    @property
    def text(self) -> str:
        """Steps under their headings, then the answer as one line of JSON."""
        lines: list[str] = []
        for stage in ("abduction", "action", "prediction"):
            texts = [step.text for step in self.steps if step.stage == stage]
            if texts:
                lines += [f"{stage.capitalize()}:", *texts, ""]
        return "\n".join([*lines, assignment_text(self.answer)]) + "\n"


def work_solution(model: Model, question: Question) -> Outcome[WorkedSolution]:
    """Work out a question step by step; `Impossible` if no world fits."""
    members = AnswerSet(model, question)
    try:
        positions = next(members.fitting_worlds(Budget(MAX_STATES)), None)
    except BudgetSpent:
        return OutOfBudget("no fitting world was found among the beginnings looked at")
    if positions is None:
        return Impossible("all worlds that agree with the fixed noise")
    world = {node.noise: node.support[k] for node, k in zip(model.nodes, positions, strict=True)}
    values = run(model, world, question.do)
    answer = project(question, model, world, values)
    assert members.contains(answer)
    steps = [*_abduction(model, question, world), *_action(question)]
    if not question.form.asks_noise:
        steps.extend(_prediction(model, question, world, values))
    return Found(WorkedSolution(tuple(steps), answer))


def _abduction(model: Model, question: Question, world: Assignment) -> Iterator[SolutionStep]:
    """Yield the possible values of every noise variable, and the one that is followed."""
    try:
        allowed = allowed_noise(model, question)
    except ModelError:
        # not a product: a list for each variable alone would admit combinations that do not fit
        allowed = {}
    factual = run(model, world, {})
    for node in model.nodes:
        chosen = world[node.noise]
        if node.noise in question.fixed:
            text = f"{node.noise} = {chosen} is given."
        elif not question.observed:
            text = f"{node.noise} may be any of {_list(node.support)}; take {chosen}."
        else:
            text = _explain_observation(node, question, factual, allowed.get(node.noise, (chosen,)), chosen)
        yield SolutionStep("abduction", node.noise, text)


def _explain_observation(
    node: Node, question: Question, factual: Assignment, allowed: tuple[Symbol, ...], chosen: Symbol
) -> str:
    inputs = _arguments(node, factual)
    if node.name not in question.observed:
        return f"{node.noise} = {chosen} agrees with everything seen{inputs}."
    observation = f"{node.name} = {factual[node.name]} was seen{inputs}"
    if len(allowed) == 1:
        return f"{observation}: only {node.noise} = {chosen} agrees with that and with everything else seen."
    return f"{observation}: {node.noise} may be any of {_list(allowed)}; take {chosen}."


def _action(question: Question) -> Iterator[SolutionStep]:
    for name, value in question.do.items():
        yield SolutionStep("action", name, f"{name} is set to {value}; its equation no longer counts.")


def _prediction(model: Model, question: Question, world: Assignment, values: Assignment) -> Iterator[SolutionStep]:
    for node in model.nodes:
        if node.name in question.do:
            text = f"{node.name} = {values[node.name]}, as set."
        else:
            inputs = [*((parent, values[parent]) for parent in node.parents), (node.noise, world[node.noise])]
            inputs_text = ", ".join(f"{name} = {value}" for name, value in inputs)
            text = f"{node.name} = {values[node.name]}, from {inputs_text}."
        yield SolutionStep("prediction", node.name, text)


def _arguments(node: Node, values: Assignment) -> str:
    if not node.parents:
        return ""
    return " with " + ", ".join(f"{parent} = {values[parent]}" for parent in node.parents)


def _list(values: tuple[Symbol, ...]) -> str:
    return ", ".join(values)
