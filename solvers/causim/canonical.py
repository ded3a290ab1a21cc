"""Canonical names of the model of a question, and models and questions under other names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from heapq import heapify, heappop, heappush
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from calibrant.dsl.causim.item import Task
from calibrant.dsl.causim.model import Model, ModelError, Node, Symbol, Tabulate
from calibrant.dsl.causim.question import Question
from calibrant.solvers.canonical import (
    CanonicalOrder,
    Structure,
    StructureBuilder,
    canonical_key,
    canonical_order,
    orbit,
    word,
)

# --- Models and questions over other names of nodes, noise and values, with nodes in another topological order --------
Values = Mapping[Symbol, Symbol]  # value -> value under the other names


@dataclass(frozen=True)
class ModelNames:
    """New names of a model.

    order: positions of the nodes in the model, in the new topological order
    keys: node or noise variable -> new name
    values: node or noise variable -> new value of each of its values; values that are not listed stay
    """

    order: tuple[int, ...]
    keys: Mapping[str, str]
    values: Mapping[str, Values]

    def assignment(self, assignment: Mapping[str, Symbol]) -> dict[str, Symbol]:
        """Return an assignment of nodes or noise under the new names."""
        return {self.keys[key]: self.values[key].get(value, value) for key, value in assignment.items()}


@dataclass(frozen=True)
class RenamedTask(Task):
    """A task about a renamed model; its source is that of the original model, which rows do not read."""

    renamed: Model | None = None

    @property
    def model(self) -> Model:
        assert self.renamed is not None
        return self.renamed


def rename_task(task: Task, names: ModelNames) -> RenamedTask:
    """Return a task under other names."""
    question, model = rename_question(task.question, names), rename_model(task.model, names)
    return RenamedTask(task.source, question, task.scenario, task.view, task.style, model)


def rename_question(question: Question, names: ModelNames) -> Question:
    """Return a question under other names."""
    return replace(
        question,
        fixed=names.assignment(question.fixed),
        unknown=tuple(sorted(names.keys[key] for key in question.unknown)),
        do=names.assignment(question.do),
        observed=names.assignment(question.observed),
    )


def rename_model(model: Model, names: ModelNames) -> Model:
    """Return a model under other names, with its nodes in the new order.

    Its mechanisms translate new values to the old ones, compute, and translate the result back.
    """
    return Model([_rename_node(model.nodes[position], names) for position in names.order])


def _rename_node(node: Node, names: ModelNames) -> Node:
    to_new, noise_to_new = names.values[node.name], names.values[node.noise]
    parents_to_old = [_inverse(names.values[parent]) for parent in node.parents]
    noise_to_old = _inverse(noise_to_new)

    def mechanism(row: tuple[Symbol, ...], value: Symbol) -> Symbol:
        old_row = tuple(values.get(symbol, symbol) for values, symbol in zip(parents_to_old, row, strict=True))
        output = node.value(old_row, noise_to_old.get(value, value))
        return to_new.get(output, output)

    weights = {
        noise_to_new.get(symbol, symbol): weight for symbol, weight in zip(node.support, node.weights, strict=True)
    }
    support = tuple(sorted(weights))
    return Node(
        names.keys[node.name],
        names.keys[node.noise],
        tuple(names.keys[parent] for parent in node.parents),
        support,
        tuple(weights[symbol] for symbol in support),
        mechanism,
        None if node.tabulate is None else _rename_table(node.tabulate, [*parents_to_old, noise_to_old], to_new),
    )


def _rename_table(tabulate: Tabulate, to_old: Sequence[Values], to_new: Values) -> Tabulate:
    def renamed(domains: Sequence[tuple[Symbol, ...]]) -> tuple[npt.NDArray[np.int32], tuple[Symbol, ...]]:
        old = [tuple(values.get(s, s) for s in domain) for values, domain in zip(to_old, domains, strict=True)]
        codes, symbols = tabulate(old)
        return codes, tuple(to_new.get(symbol, symbol) for symbol in symbols)

    return renamed


def _inverse(values: Values) -> Values:
    return {new: old for old, new in values.items()}


# --- Canonical names of a question's model: equations and question decide the order of nodes, noise and values --------
MAX_ROWS = 20_000  # rows of all tables of a model; ordering more takes longer than answering questions about it


class _Labelling(NamedTuple):
    """The canonical order of a structure, with the vertices of keys (nodes and noise) and of their values."""

    keys: Mapping[str, int]
    values: Mapping[str, Mapping[Symbol, int]]
    canonical: CanonicalOrder


def canonical_names(task: Task) -> ModelNames | None:
    """Return canonical names; None if the tables of the model have over MAX_ROWS rows or cannot be computed."""
    model = task.model
    try:
        if sum(local.table.size for local in model.system) > MAX_ROWS:
            return None
    except ModelError:
        return None
    keys, values, canonical = _label(task)
    rank = canonical.rank
    order = _topological_order(model, [rank[keys[name]] for name in model.names])
    width = len(str(len(model)))
    new_keys: dict[str, str] = {}
    for number, position in enumerate(order, start=1):
        new_keys[model.nodes[position].name] = f"K{number:0{width}}"
        new_keys[model.nodes[position].noise] = f"Q{number:0{width}}"
    new_values = {key: _spell(domain, rank) for key, domain in values.items()}
    return ModelNames(order, new_keys, new_values)


@lru_cache(maxsize=4096)  # questions about one program are not always neighbours
def model_keys(model: Model) -> tuple[bytes, bytes]:
    """Return digests of a model and of its graph that are equal under renaming of nodes, noise and values.

    If the tables of the model have over MAX_ROWS rows or cannot be computed, both are that of the graph.
    """
    graph = canonical_key(_graph(model))
    try:
        if sum(local.table.size for local in model.system) > MAX_ROWS:
            return graph, graph
    except ModelError:
        return graph, graph
    return canonical_key(_model_part(model).structure), graph


def _graph(model: Model) -> Structure:
    """Return the nodes of a model with an edge from each parent to its child."""
    builder = StructureBuilder()
    index = {name: builder.vertex("node") for name in model.names}
    for node in model.nodes:
        builder.edges([index[parent] for parent in node.parents], index[node.name])
    return builder.build(len(index))


def value_roles(task: Task) -> dict[str, dict[Symbol, int]]:
    """Return, for each value of each key, a number that is equal for values that are alike in model and question."""
    _, values, canonical = _label(task)
    return {
        key: {
            symbol: min(canonical.rank[v] for v in orbit(vertex, canonical.automorphisms))
            for symbol, vertex in domain.items()
        }
        for key, domain in values.items()
    }


def _label(task: Task) -> _Labelling:
    """Add the question to the structure of the model, and order its vertices."""
    question, part = task.question, _model_part(task.model)
    colours = part.structure.colours.copy()
    for key, vertex in part.keys.items():
        kind = "noise" if key in task.model.of_noise else "node"
        colours[vertex] = word(kind, key in question.unknown, key in question.do, key in question.observed)
    edges = [
        (part.values[key][value], part.keys[key], word(role))
        for role, assignment in (("fixed", question.fixed), ("do", question.do), ("observed", question.observed))
        for key, value in assignment.items()
        if value in part.values[key]
    ]
    structure = part.structure.extended(colours, edges)
    return _Labelling(part.keys, part.values, canonical_order(structure))


class _ModelPart(NamedTuple):
    """Structure of a model without a question, which decides the colours of keys."""

    keys: Mapping[str, int]
    values: Mapping[str, Mapping[Symbol, int]]
    structure: Structure


@lru_cache(maxsize=32)
def _model_part(model: Model) -> _ModelPart:
    """Return the vertices and edges of a model, the same for all questions about it."""
    builder = StructureBuilder()
    keys = {key: builder.vertex("open") for names in (model.names, model.noises) for key in names}
    values = _add_values(builder, model, keys)
    base = len(builder.colours)
    _add_tables(builder, model, keys, values)
    return _ModelPart(keys, values, builder.build(base))


def _add_values(builder: StructureBuilder, model: Model, keys: Mapping[str, int]) -> dict[str, dict[Symbol, int]]:
    """Add the values of nodes and noise; the colour of a noise value is its probability."""
    values: dict[str, dict[Symbol, int]] = {}
    for node, local in zip(model.nodes, model.system, strict=True):
        values[node.name] = {symbol: builder.vertex("value") for symbol in local.domain}
        values[node.noise] = {
            symbol: builder.vertex("noise value", weight)
            for symbol, weight in zip(node.support, node.weights, strict=True)
        }
    for key, domain in values.items():
        for vertex in domain.values():
            builder.edge(vertex, keys[key], word("of"))
    return values


def _add_tables(
    builder: StructureBuilder, model: Model, keys: Mapping[str, int], values: Mapping[str, Mapping[Symbol, int]]
) -> None:
    """Add the rows of all tables, each with edges to its output and to its arguments, which their keys tell apart."""
    row_colour, output_label, argument_label = word("row"), word("output"), word("argument")
    for node, local in zip(model.nodes, model.system, strict=True):
        builder.edge(keys[node.noise], keys[node.name], word("noise"))
        for parent in node.parents:
            builder.edge(keys[parent], keys[node.name], word("parent"))
        rows = builder.vertices_of(row_colour, local.table.size)
        outputs = np.array([values[node.name][symbol] for symbol in local.domain])
        builder.edge_pairs(rows, outputs[local.table.ravel()], output_label)
        axes = [[*values[key].values()] for key in (*node.parents, node.noise)]
        for arguments in np.meshgrid(*axes, indexing="ij"):
            builder.edge_pairs(rows, arguments.ravel(), argument_label)


def _topological_order(model: Model, rank: list[int]) -> tuple[int, ...]:
    """Return the topological order in which, of the nodes that may come next, the one of least rank does."""
    waiting = [len(node.parents) for node in model.nodes]
    ready = [(rank[position], position) for position, num_parents in enumerate(waiting) if not num_parents]
    heapify(ready)
    order = []
    while ready:
        _, position = heappop(ready)
        order.append(position)
        for child in model.children[position]:
            waiting[child] -= 1
            if not waiting[child]:
                heappush(ready, (rank[child], child))
    return tuple(order)


def _spell(domain: Mapping[Symbol, int], rank: Mapping[int, int]) -> dict[Symbol, Symbol]:
    """Return value -> new value: JSON strings whose order is that of the canonical ranks."""
    ordered = sorted(domain, key=lambda symbol: rank[domain[symbol]])
    width = len(str(len(ordered)))
    return {symbol: f'"w{number:0{width}}"' for number, symbol in enumerate(ordered, start=1)}
