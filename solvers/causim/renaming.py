"""Models and questions over other names of nodes, noise and values, with nodes in another topological order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from calibrant.dsl.causim.item import Task
from calibrant.dsl.causim.model import Model, Node, Symbol, Tabulate
from calibrant.dsl.causim.question import Question

Values = Mapping[Symbol, Symbol]


@dataclass(frozen=True)
class ModelNames:
    """New names of a model.

    order: positions of the nodes, in a topological order
    keys: node or noise variable -> new name; values: of each of them, value -> new value; others keep theirs
    """

    order: tuple[int, ...]
    keys: Mapping[str, str]
    values: Mapping[str, Values]

    def assignment(self, assignment: Mapping[str, Symbol]) -> dict[str, Symbol]:
        """Return values of nodes or noise over the new names."""
        return {self.keys[key]: self.values[key].get(value, value) for key, value in assignment.items()}


@dataclass(frozen=True)
class RenamedTask(Task):
    """A task about a model over other names. Its source is that of the original, which rows do not read."""

    renamed: Model | None = None

    @property
    def model(self) -> Model:
        assert self.renamed is not None
        return self.renamed


def rename_task(task: Task, names: ModelNames) -> RenamedTask:
    """Return a task over other names."""
    question, model = rename_question(task.question, names), rename_model(task.model, names)
    return RenamedTask(task.source, question, task.scenario, task.view, task.style, model)


def rename_question(question: Question, names: ModelNames) -> Question:
    """Return a question over other names."""
    return replace(
        question,
        fixed=names.assignment(question.fixed),
        unknown=tuple(sorted(names.keys[key] for key in question.unknown)),
        do=names.assignment(question.do),
        observed=names.assignment(question.observed),
    )


def rename_model(model: Model, names: ModelNames) -> Model:
    """Return a model over other names, nodes in the new order; mechanisms compute over the old values."""
    return Model([_rename_node(model.nodes[position], names) for position in names.order])


def _rename_node(node: Node, names: ModelNames) -> Node:
    forward, noise = names.values[node.name], names.values[node.noise]
    back = [_inverse(names.values[parent]) for parent in node.parents]
    noise_back = _inverse(noise)

    def mechanism(row: tuple[Symbol, ...], value: Symbol) -> Symbol:
        old_row = tuple(values.get(symbol, symbol) for values, symbol in zip(back, row, strict=True))
        output = node.value(old_row, noise_back.get(value, value))
        return forward.get(output, output)

    weights = {noise.get(symbol, symbol): weight for symbol, weight in zip(node.support, node.weights, strict=True)}
    support = tuple(sorted(weights))
    return Node(
        names.keys[node.name],
        names.keys[node.noise],
        tuple(names.keys[parent] for parent in node.parents),
        support,
        tuple(weights[symbol] for symbol in support),
        mechanism,
        None if node.tabulate is None else _rename_table(node.tabulate, [*back, noise_back], forward),
    )


def _rename_table(tabulate: Tabulate, back: Sequence[Values], forward: Values) -> Tabulate:
    def renamed(domains: Sequence[tuple[Symbol, ...]]) -> tuple[npt.NDArray[np.int32], tuple[Symbol, ...]]:
        old = [tuple(values.get(s, s) for s in domain) for values, domain in zip(back, domains, strict=True)]
        codes, symbols = tabulate(old)
        return codes, tuple(forward.get(symbol, symbol) for symbol in symbols)

    return renamed


def _inverse(values: Values) -> Values:
    return {new: old for old, new in values.items()}
