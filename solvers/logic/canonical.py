"""Canonical form of a task of logic models: equal for all names of nodes and orders of experiments and columns.

Nodes are merged before they are renamed, since merging depends on names. Values become the rounded integers divided by
the factor, so that values that are rounded to one integer are equal.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from calibrant.dsl.logic.item import Edge, Experiment, Model, Setup, Task, kept_names
from calibrant.solvers.canonical import Structure, StructureBuilder, canonical_order, word


@dataclass(frozen=True)
class CanonicalTask:
    """A task in canonical form.

    names: canonical name -> name of the task; readouts: for each readout of the task, its column in canonical form
    """

    task: Task
    names: Mapping[str, str]
    readouts: tuple[int, ...]


def canonical_task(task: Task) -> CanonicalTask:
    """Return the canonical form of a task; questions keep their order."""
    setup, edges, options = task.setup, task.edges, task.options
    rounded = tuple(tuple(None if v is None else v / options.factor for v in row) for row in task.discretised)
    builder = StructureBuilder()
    nodes = sorted(kept_names(setup) | {name for edge in edges for name in (edge.source, edge.target)})
    index = {
        name: builder.vertex("node", name in setup.stimuli, name in setup.inhibitors, name in setup.readouts)
        for name in nodes
    }
    for edge in edges:
        builder.edge(index[edge.source], index[edge.target], word("edge", edge.sign))
    first_experiment = len(nodes)
    for experiment, values in zip(task.experiments, rounded, strict=True):
        vertex = builder.vertex("experiment")
        _add_clamps(builder, experiment, vertex, index)
        for readout, value in zip(setup.readouts, values, strict=True):
            builder.edge(vertex, index[readout], word("value", value))
    for number, question in enumerate(task.questions):
        _add_clamps(builder, question, builder.vertex("question", number), index)
    rank = canonical_order(builder.build(len(builder.colours))).rank
    width = len(str(len(nodes)))
    ordered = sorted(nodes, key=lambda name: rank[index[name]])
    new = {name: f"n{number:0{width}}" for number, name in enumerate(ordered, start=1)}  # padded: sorts as numbers do
    experiments = sorted(range(len(task.experiments)), key=lambda number: rank[first_experiment + number])
    # quotient times factor is within .5 of the integer: rounding restores it, floor and ceil might not
    options = replace(options, compress=False, rounding="round")
    renamed = rename_task(
        replace(task, prior=edges, values=rounded, options=options, wording="standard"), new, experiments
    )
    readouts = tuple(renamed.setup.readouts.index(new[name]) for name in setup.readouts)
    return CanonicalTask(renamed, {new[name]: name for name in nodes}, readouts)


def _add_clamps(builder: StructureBuilder, experiment: Experiment, vertex: int, index: Mapping[str, int]) -> None:
    for name in experiment.on:
        builder.edge(vertex, index[name], word("on"))
    for name in experiment.inhibited:
        builder.edge(vertex, index[name], word("inhibited"))


def rename_task(task: Task, names: Mapping[str, str], experiments: list[int]) -> Task:
    """Return a task over other names, its experiments in this order, its columns sorted; questions keep their order."""
    setup = task.setup
    readouts = sorted(range(len(setup.readouts)), key=lambda column: names[setup.readouts[column]])
    renamed = Setup(
        tuple(sorted(names[name] for name in setup.stimuli)),
        tuple(sorted(names[name] for name in setup.inhibitors)),
        tuple(names[setup.readouts[column]] for column in readouts),
    )
    return replace(
        task,
        prior=tuple(sorted(Edge(names[edge.source], edge.sign, names[edge.target]) for edge in task.prior)),
        setup=renamed,
        experiments=tuple(rename_experiment(task.experiments[number], names) for number in experiments),
        values=tuple(tuple(task.values[number][column] for column in readouts) for number in experiments),
        questions=tuple(rename_experiment(question, names) for question in task.questions),
    )


def rename_experiment(experiment: Experiment, names: Mapping[str, str]) -> Experiment:
    """Return an experiment over other names."""
    return Experiment(
        frozenset(names[name] for name in experiment.on), frozenset(names[name] for name in experiment.inhibited)
    )


def model_structure(model: Model) -> Structure:
    """Return the structure of a model: nodes and clauses."""
    builder = StructureBuilder()
    nodes = sorted({name for clause in model for name in (clause.target, *clause.sources)})
    index = {name: builder.vertex("node") for name in nodes}
    for clause in sorted(model):
        vertex = builder.vertex("clause")
        builder.edge(vertex, index[clause.target], word("target"))
        for source, sign in clause.literals:
            builder.edge(index[source], vertex, word("literal", sign))
    return builder.build(len(nodes))


def network_structure(edges: Iterable[Edge]) -> Structure:
    """Return the structure of a network: nodes and signed edges."""
    builder = StructureBuilder()
    listed = sorted(set(edges))
    nodes = sorted({name for edge in listed for name in (edge.source, edge.target)})
    index = {name: builder.vertex("node") for name in nodes}
    for edge in listed:
        builder.edge(index[edge.source], index[edge.target], word("edge", edge.sign))
    return builder.build(len(nodes))
