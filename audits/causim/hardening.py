"""Hardening of questions: the smallest further observation that leaves one answer is revealed."""

from __future__ import annotations

from dataclasses import replace

from calibrant.audits.causim.certificates import minimal_evidence_claim
from calibrant.audits.claims import Certificate
from calibrant.dsl.causim.item import CausimItem, Labels, Task
from calibrant.dsl.causim.model import ModelError, run
from calibrant.dsl.causim.question import Question
from calibrant.solvers.causim.exact import AnswerSet
from calibrant.solvers.causim.experiments import minimal_evidence, observable
from calibrant.solvers.outcome import Found, Impossible, Outcome, OutOfBudget


def harden_item(item: CausimItem) -> Outcome[tuple[CausimItem, Certificate]]:
    """Return the item with the least more evidence that leaves one answer, and the proof that no less does.

    `Impossible` where the whole answer would be revealed. `ModelError` for an item without its sealed world.
    """
    model, question, world = item.task.model, item.task.question, item.sealed.world
    if not world:
        raise ModelError(f"{item.id}: the world that the question was drawn from is not known")
    outcome = minimal_evidence(model, question, world)
    if not isinstance(outcome, Found):
        return outcome
    hardened = _reveal(question, {**world, **run(model, world, {})}, outcome.value.observe, set(model.noises))
    if not hardened.required_keys(model):
        return Impossible("all observations but those that tell the whole answer")
    members = AnswerSet(model, hardened)
    if members.size() != Found(1):
        return OutOfBudget("the decided question could not be counted")
    effect = members.effect or (None, None)
    labels = Labels(1, hardened.is_trivial(model), effect[0], effect[1], members.copy)
    task = Task(item.task.source, hardened, "deterministic", item.task.view)
    certificate = minimal_evidence_claim(
        item.task.source, question, world, outcome.value.observe, outcome.value.against, observable(model, question)
    )
    return Found((replace(item, id=f"{item.id}-decided", task=task, labels=labels), certificate))


def _reveal(question: Question, truth: dict[str, str], observe: tuple[str, ...], noises: set[str]) -> Question:
    fixed = {**question.fixed, **{name: truth[name] for name in observe if name in noises}}
    observed = {**question.observed, **{name: truth[name] for name in observe if name not in noises}}
    unknown = tuple(name for name in question.unknown if name not in fixed)
    return replace(question, fixed=fixed, unknown=unknown, observed=observed)
