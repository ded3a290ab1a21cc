"""CauSim: the right answers of a question, and of one whose evidence is half seen, against the number of nodes."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from calibrant.bench.lab.limits.sweep import Ask, Curve, Sweep
from calibrant.dsl.causim.generation import grow
from calibrant.dsl.causim.item import CausimItem
from calibrant.dsl.causim.model import ModelError
from calibrant.dsl.causim.topology import TOPOLOGIES
from calibrant.solvers.causim.exact import AnswerSet
from calibrant.solvers.causim.generation import items_of_version
from calibrant.solvers.outcome import OutOfBudget

NODES = (3, 5, 8, 10, 15, 20, 25, 30)


def sweeps() -> tuple[Sweep, ...]:
    names = list(TOPOLOGIES)
    return (
        Sweep(
            "causim-answers",
            "right answers counted, evidence complete",
            "nodes",
            [Curve(name.replace("_", " "), NODES, partial(_answers, name, 1)) for name in names],
        ),
        Sweep(
            "causim-half-seen",
            "right answers counted, every other node seen",
            "nodes",
            [Curve(name.replace("_", " "), NODES, partial(_answers, name, 2)) for name in names],
        ),
    )


def _answers(topology: str, stride: int, nodes: int, seed: int) -> Ask:
    """Questions about a counterfactual.

    each: 1 if all nodes are seen, 2 if every other one
    """
    try:
        item = _counterfactual(topology, nodes, seed)
    except ModelError as error:
        why = str(error)
        return lambda: why
    question = item.task.question
    if stride > 1:
        observed = {name: question.observed[name] for name in item.task.model.names[::stride]}
        question = replace(question, observed=observed)

    def ask() -> str | None:
        size = AnswerSet(item.task.model, question).size()
        return size.reached if isinstance(size, OutOfBudget) else None

    return ask


def _counterfactual(topology: str, nodes: int, seed: int) -> CausimItem:
    version = grow(seed, f"{topology}-limits", topology, nodes)[-1]
    items = items_of_version(version, f"{topology}-limits", num_questions=1, seed=seed)
    return next(item for item in items if item.task.question.type == "counterfactual")
