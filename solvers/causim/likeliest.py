"""Most probable fitting world and most probable answer (MAP).

Where the fitting worlds form a product, the world is a maximum per node, and the answer the maximum of a product of one
factor per equation, decoded value by value with max-product elimination. Elsewhere members are listed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from math import prod
from typing import TypeVar

from calibrant.dsl.causim.model import Model, Symbol
from calibrant.dsl.causim.question import Answer, Question
from calibrant.solvers.budget import Budget, BudgetSpent
from calibrant.solvers.causim.answers import AnswerSet
from calibrant.solvers.causim.compiled import Compiled, Sets
from calibrant.solvers.causim.elimination import equation_factor, max_of_products, restrict
from calibrant.solvers.outcome import Found, Impossible, Outcome, OutOfBudget

T = TypeVar("T")
_NOTHING = Impossible("all worlds that agree with the fixed noise")
_LISTED = OutOfBudget("members could not all be listed, so none of them is known to be the most probable")


def likeliest_world(model: Model, question: Question, budget: Budget | None = None) -> Outcome[dict[str, Symbol]]:
    """Return the noise of the most probable fitting world, the first of equals. A state is a world or a prefix."""
    members = AnswerSet(model, question)
    compiled = Compiled(model, question)
    if compiled.product is not None:
        if not all(compiled.product):
            return _NOTHING
        # noise is independent: the maximum of the product is the product of the maxima; -k prefers the first of equals
        best: tuple[int, ...] | None = tuple(
            max(positions, key=lambda k, i=i: (model.nodes[i].weights[k], -k))  # type: ignore[misc]
            for i, positions in enumerate(compiled.product)
        )
    else:
        budget = budget or Budget(50_000)

        def weight(world: tuple[int, ...]) -> Fraction:
            budget.spend(1)
            return prod((node.weights[k] for node, k in zip(model.nodes, world, strict=True)), start=Fraction(1))

        try:
            best = _most_probable(members.fitting_worlds(budget), weight)
        except BudgetSpent:
            return _LISTED
        if best is None:
            return _NOTHING
    return Found({node.noise: node.support[k] for node, k in zip(model.nodes, best or (), strict=True)})


def likeliest_answer(model: Model, question: Question, budget: Budget | None = None) -> Outcome[Answer]:
    """Return the answer of greatest probability, the first of equals. A state is an answer or a prefix."""
    members = AnswerSet(model, question)
    compiled = Compiled(model, question)
    if not members.fitting:
        return _NOTHING
    if question.asks_noise:
        world = likeliest_world(model, question, budget)
        if not isinstance(world, Found):
            return world
        return Found(members.answer_of(world.value))
    if compiled.product is not None:
        return Found(dict(compiled.symbols(compiled.target, _decode_output(compiled, compiled.product))))
    budget = budget or Budget(5_000)
    try:
        best = _most_probable(members.answers(budget), members.probability)
    except BudgetSpent:
        return _LISTED
    return Found(best) if best is not None else _NOTHING


def _most_probable(members: Iterable[T], weight: Callable[[T], Fraction]) -> T | None:
    best: T | None = None
    max_probability = Fraction(-1)
    for member in members:
        probability = weight(member)
        if probability > max_probability:
            best, max_probability = member, probability
    return best


def _decode_output(compiled: Compiled, sets: Sets) -> list[int]:
    """Decode the output of greatest probability, node by node: fix the first value that attains the maximum."""
    factors = [
        equation_factor(local, i, [compiled.weights[i][k] for k in sets[i]], sets[i])
        for i, local in enumerate(compiled.target)
    ]
    bound = prod(compiled.denominators)
    decided: dict[int, int] = {}
    for i, local in enumerate(compiled.target):
        if len(local.domain) == 1:
            decided[i] = 0
            continue
        scores = []
        for k in range(len(local.domain)):
            # each fixed value keeps the maximum attainable, so no step is taken back: one elimination a value
            scores.append(max_of_products([restrict(factor, {**decided, i: k}) for factor in factors], bound))
        decided[i] = scores.index(max(scores))
    return [decided[i] for i in range(len(compiled.target))]
