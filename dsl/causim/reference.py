"""Reference semantics of a question: run every world. Faster code is tested against it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import prod

from calibrant.dsl.causim.model import Assignment, Model, Symbol, assignment_text, run
from calibrant.dsl.causim.question import Answer, Question, Scenario, copy_evidence, project, scenario_of


@dataclass(frozen=True)
class Worked:
    """Answers and properties of a question.

    worlds: number of worlds that agree with the fixed noise; fitting: number of these that agree with the evidence
    answers: right answers by their texts; probabilities: probability of each answer, given fixed noise and evidence
    trivial: whether `do` sets every variable that is asked for
    effect_all, effect_some: whether `do` changes a variable outside `do` in all, in some fitting worlds; None without
        `do` or if no world fits
    copy: whether the evidence overwritten by `do` is a right answer; None except for counterfactuals
    """

    worlds: int
    fitting: int
    answers: dict[str, Answer]
    probabilities: dict[str, Fraction]
    trivial: bool
    effect_all: bool | None
    effect_some: bool | None
    copy: bool | None

    @property
    def scenario(self) -> Scenario:
        return scenario_of(len(self.answers))


def worlds(model: Model, fixed: Assignment) -> Iterator[tuple[dict[str, Symbol], Fraction]]:
    """Yield every world that agrees with the fixed noise, with its probability."""
    choices = []
    for node in model.nodes:
        weighted_values = list(zip(node.support, node.weights, strict=True))
        choices.append([pair for pair in weighted_values if node.noise not in fixed or pair[0] == fixed[node.noise]])
    for combination in product(*choices):
        noise = {node.noise: value for node, (value, _) in zip(model.nodes, combination, strict=True)}
        yield noise, prod((weight for _, weight in combination), start=Fraction(1))


def work_out(model: Model, question: Question) -> Worked:
    """Return answers and properties of a question; `ModelError` if a mechanism raises for a value of `do`."""
    num_worlds = num_fitting = num_changed = 0
    answers: dict[str, Answer] = {}
    weights: dict[str, Fraction] = {}
    outside = [name for name in model.names if name not in question.do]
    for noise, weight in worlds(model, question.fixed):
        num_worlds += 1
        factual = run(model, noise, {})
        if any(factual[name] != value for name, value in question.observed.items()):
            continue
        num_fitting += 1
        counterfactual = run(model, noise, question.do)
        num_changed += any(counterfactual[name] != factual[name] for name in outside)
        answer = project(question, model, noise, counterfactual)
        text = assignment_text(answer)
        answers[text] = answer
        weights[text] = weights.get(text, Fraction(0)) + weight
    total = sum(weights.values(), start=Fraction(0))
    may_change = bool(question.do) and num_fitting > 0
    is_copied = assignment_text(copy_evidence(question)) in answers if question.form.may_copy else None
    return Worked(
        worlds=num_worlds,
        fitting=num_fitting,
        answers={text: answers[text] for text in sorted(answers)},
        probabilities={text: weights[text] / total for text in sorted(answers)},
        trivial=question.is_trivial(model),
        effect_all=num_changed == num_fitting if may_change else None,
        effect_some=num_changed > 0 if may_change else None,
        copy=is_copied,
    )
