"""The prompt of an item: the prior network, the data, what a model is, the held-out experiments, the answer's form."""

from __future__ import annotations

from typing import Final

from calibrant.dsl.logic.prior import Edge
from calibrant.dsl.logic.rephrased import PHRASES
from calibrant.dsl.logic.task import Experiment, Task
from calibrant.dsl.text import reword

_RULES: Final = """\
A Boolean model gives every node but the stimuli a formula: a set of clauses. A clause v<-a+!b makes v 1 where a is 1
and b is 0. Every literal of a clause is an edge of the network into v, with its sign, and no source occurs twice in it.
- A stimulus is 1 where it is present, else 0. An inhibited node is 0.
- Another node is 1 where one of its clauses holds, else 0; a node without clauses is 0.
- No clause of a node contains another one. No node depends on itself through clauses.
- A node in a clause is a stimulus or has clauses itself. A node with clauses is a readout or occurs in a clause."""


def prompt(task: Task) -> str:
    """Return the text of a task; values are shown as they were measured."""
    return "\n\n".join([*facts(task), reword(_form(task), task.wording, PHRASES)])


def facts(task: Task) -> tuple[str, ...]:
    """Return the paragraphs of a task without the form of an answer."""
    setup = task.setup
    parts = [
        "A network of signed edges states which node may act on which. Stimuli were switched on, nodes were inhibited,"
        " and readouts were measured, from 0 to 1; - stands for a value that was not measured.",
        _RULES,
        "Edges, source -> target, or source -| target for an edge that inhibits:\n" + "\n".join(map(_edge, task.prior)),
        f"Stimuli: {_listed(setup.stimuli)}\nInhibited nodes: {_listed(setup.inhibitors)}\n"
        f"Readouts, in this order: {_listed(setup.readouts)}",
        "Experiments and what was measured:\n"
        + "\n".join(
            f"{experiment.text(setup)}: {' '.join(map(_value, row))}"
            for experiment, row in zip(task.experiments, task.values, strict=True)
        ),
    ]
    if task.options.max_clause:
        parts.append(f"A clause has at most {task.options.max_clause} literals.")
    if task.options.compress:
        parts.append(
            "Nodes that are neither clamped nor measured and have a single source or a single target are merged first:"
            f" clauses use these edges alone: {', '.join(map(_edge, task.edges)) or 'none'}."
        )
    parts.append(_questions(task.questions, task))
    return tuple(reword(part, task.wording, PHRASES) for part in parts if part)


def _edge(edge: Edge) -> str:
    return f"{edge.source} {'->' if edge.sign > 0 else '-|'} {edge.target}"


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names) or "none"


def _value(value: float | None) -> str:
    return "-" if value is None else f"{value:g}"


def _questions(questions: tuple[Experiment, ...], task: Task) -> str:
    if not questions:
        return ""
    lines = [f"{number}. {question.text(task.setup)}" for number, question in enumerate(questions, 1)]
    return "New experiments, without noise. What do the readouts give?\n" + "\n".join(lines)


def _form(task: Task) -> str:
    table = (
        f' or {{"probabilities": [[...], ...]}}, for each of the {len(task.questions)} new experiments in order the'
        " probability that each readout is 1"
        if task.questions
        else ""
    )
    return (
        'Answer with a JSON object: {"model": ["v<-a+!b", ...]}, the clauses of a model, whose answers are computed'
        f"{table}."
    )
