"""Why an answer over V is wrong, node by node, from the answer's own parents.

`do ignored`: an intervened node does not have its value. `impossible`: no noise value gives this value from the
answer's parents, an error of propagation. `wrong noise`: some value gives it, but none that the evidence allows, an
error of abduction. All nodes are `ok` iff the answer is right. This holds where the allowed noise is a product: without
evidence, with full evidence, and with one unknown noise variable.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from calibrant.dsl.causim.model import Model, Node, run
from calibrant.dsl.causim.question import Answer, Question
from calibrant.dsl.causim.values import ModelError, Symbol

Reason: TypeAlias = Literal["ok", "do ignored", "impossible", "wrong noise"]


def allowed_noise(model: Model, question: Question) -> dict[str, tuple[Symbol, ...]]:
    """Per noise variable the values of the worlds that fit, where they form a product; `ModelError` where they may not.

    A world fits iff each of its noise values is listed. Nothing is listed for anybody if no world fits.
    """
    allowed = {}
    for node in model.nodes:
        fixed = question.fixed.get(node.noise)
        allowed[node.noise] = tuple(value for value in node.support if fixed is None or value == fixed)
    if question.has_full_evidence(model):
        for node in model.nodes:
            parent_values = tuple(question.observed[parent] for parent in node.parents)
            allowed[node.noise] = tuple(
                value
                for value in allowed[node.noise]
                if _gives(node, parent_values, value, question.observed[node.name])
            )
    elif question.observed:
        free = [node.noise for node in model.nodes if len(allowed[node.noise]) > 1]
        if len(free) > 1:
            raise ModelError("the noise that partial evidence allows is no product")
        if all(allowed.values()):
            open_noise = free[0] if free else model.noises[0]
            base = {noise: values[0] for noise, values in allowed.items()}
            allowed[open_noise] = tuple(
                value for value in allowed[open_noise] if _agrees(model, question, {**base, open_noise: value})
            )
    if not all(allowed.values()):
        return dict.fromkeys(allowed, ())
    return allowed


def _agrees(model: Model, question: Question, noise: dict[str, Symbol]) -> bool:
    factual = run(model, noise, {})
    return all(factual[name] == value for name, value in question.observed.items())


def _gives(node: Node, parents: tuple[Symbol, ...], noise: Symbol, value: Symbol) -> bool:
    try:
        return node.value(parents, noise) == value
    except ModelError:  # an answer may hold values for which the mechanism raises
        return False


def reasons(model: Model, question: Question, answer: Answer) -> dict[str, Reason]:
    """Return a reason for every node, in topological order; the answer has all V. `ModelError` as `allowed_noise`."""
    allowed = allowed_noise(model, question)
    by_node: dict[str, Reason] = {}
    for node in model.nodes:
        value = answer[node.name]
        if node.name in question.do:
            by_node[node.name] = "ok" if value == question.do[node.name] else "do ignored"
            if not allowed[node.noise] and by_node[node.name] == "ok":
                by_node[node.name] = "wrong noise"  # no world fits, so nothing is right
            continue
        parents = tuple(answer[parent] for parent in node.parents)
        if not any(_gives(node, parents, noise, value) for noise in node.support):
            by_node[node.name] = "impossible"
        elif not any(_gives(node, parents, noise, value) for noise in allowed[node.noise]):
            by_node[node.name] = "wrong noise"
        else:
            by_node[node.name] = "ok"
    return by_node
