"""Models of published files, judged as functions against a prior network and measurements.

A model's rules are read as functions: helper nodes are put into those that read them, nodes that no readout depends on
leave, and the others are compared with the class one by one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from graphlib import CycleError, TopologicalSorter
from itertools import product
from math import prod

from calibrant.dsl.errors import short_repr
from calibrant.dsl.logic.item import (
    Clause,
    Edge,
    Experiment,
    Model,
    Task,
    clause,
    edges_by_target,
    kept_names,
    model_size,
    model_texts,
)
from calibrant.dsl.logic.reference import broken_rule
from calibrant.dsl.networks.formulas import NetworkError, Nodes
from calibrant.dsl.networks.functions import Function, cover, derive_function, formula_of, restrict
from calibrant.dsl.networks.network import Network
from calibrant.solvers.logic.network import NodeFormulas
from calibrant.solvers.networks.wide import prove_signs

CYCLE, CONSTANT, EDGE, SIGN, CLAUSE = "cycle", "constant", "edge", "sign", "clause"
MISFIT, SIZE = "misfit", "size"
MAX_LISTED_MODELS = 10_000  # with the same functions
Functions = Mapping[str, Function]
_SIGNS = {"+": (1,), "-": (-1,), "both": (1, -1)}


@dataclass(frozen=True)
class Prediction:
    """Answers of functions to the measured experiments.

    answers: of all readouts, a text an experiment; misfit: as of models; mse: mean of (answer - value) squared over
    measured values, not discretised, 0 without any
    differs: measured cells (experiment, readout) that no model of least misfit and least size at it predicts; None if
    their predictions are too many to list
    """

    answers: tuple[str, ...]
    misfit: int
    mse: float
    differs: tuple[tuple[int, str], ...] | None


@dataclass(frozen=True)
class Judgement:
    """A network file against a family.

    reason: "" for a member, else cycle, constant, edge, sign, clause, misfit or size
    detail: of the reason: a node, or source and target of an edge
    zero: names that nothing drives, read as 0; ignored: stimuli whose rule the clamps override
    substituted: helper and merged nodes, put into those that read them; left_out: nodes that no readout depends on
    functions: of the nodes that are left; prediction: None for a cycle
    model: the class formulas of fewest literals with these functions; None where the class has none
    num_formulas: models of the class with these functions, None if they are too many to list or there is none
    num_members: those of them that are members
    limit: greatest misfit and size of members, None for no limit
    """

    reason: str
    detail: str
    zero: tuple[str, ...]
    ignored: tuple[str, ...]
    substituted: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    functions: Functions | None = None
    prediction: Prediction | None = None
    model: Model | None = None
    num_formulas: int | None = None
    num_members: int | None = None
    limit: tuple[int | None, int | None] = (None, None)

    @property
    def is_member(self) -> bool:
        """Whether the network is a model of the class within the limits."""
        return not self.reason

    @property
    def size(self) -> int | None:
        """Literals of the model; None where the class has none."""
        return None if self.model is None else model_size(self.model)


def judge_network(
    task: Task,
    network: Network,
    limit: tuple[int | None, int | None],
    optimal_answers: Sequence[Collection[str]] | None,
) -> Judgement:
    """Return what a network is to the family of a task; `NetworkError` for functions that have no table.

    limit: greatest misfit and size of members; optimal_answers: of the models of least misfit and size, an experiment
    """
    network.require_functions()
    stimuli = set(task.setup.stimuli)
    ignored, zero, functions = [], [], {}
    for name in network.nodes:
        function = network.functions.get(name)
        has_rule = function is not None and not function.is_identity(name)
        if name in stimuli:
            ignored += [name] * has_rule
        elif function is None or not has_rule:
            zero.append(name)
            functions[name] = Function((), "0", (), (False,))
        else:
            functions[name] = function
    try:
        order = [*TopologicalSorter({name: f.inputs for name, f in functions.items()}).static_order()]
    except CycleError:
        return Judgement(CYCLE, "", tuple(zero), tuple(ignored))
    class_names = kept_names(task.setup) | {name for edge in task.edges for name in (edge.source, edge.target)}
    helpers = {name for name in functions if name not in class_names}
    reduced = _put_in([name for name in order if name in functions], functions, helpers)
    used = _leading_to(task.setup.readouts, reduced)
    remaining = {name: function for name, function in sorted(reduced.items()) if name in used and function.table != "0"}
    prediction = _predict(task, remaining, optimal_answers)
    reason, detail = _first_breach(task, remaining)
    equal: dict[str, list[Model]] = {}
    if not reason:
        equal = {name: _equal_formulas(task, name, function) for name, function in remaining.items()}
        missing = next((name for name, formulas in equal.items() if not formulas), None)
        if missing is not None:
            reason, detail = CLAUSE, missing
    model, num_formulas, num_members = None, None, None
    fits = limit[0] is None or prediction.misfit <= limit[0]
    if not reason:
        # prime implicants alone make the fewest literals, so sources that change nothing do not occur
        model = frozenset().union(*(formulas[0] for formulas in equal.values()))
        sizes = _sizes(task, equal)
        if sizes is not None:
            num_formulas = sizes.total()
            num_members = sum(n for size, n in sizes.items() if fits and (limit[1] is None or size <= limit[1]))
        reason = MISFIT if not fits else SIZE if limit[1] is not None and model_size(model) > limit[1] else ""
    return Judgement(
        reason,
        detail,
        tuple(zero),
        tuple(ignored),
        tuple(sorted(helpers - {*zero})),
        tuple(sorted(name for name, function in reduced.items() if name not in used and function.table != "0")),
        remaining,
        prediction,
        model,
        num_formulas,
        num_members,
        limit,
    )


def _put_in(order: Sequence[str], functions: Functions, helpers: Collection[str]) -> dict[str, Function]:
    """Return the functions of the other nodes, with helpers and nodes that are constantly 0 put in."""
    reduced: dict[str, Function] = {}
    for name in order:
        function = functions[name]
        inputs = [source for source in function.inputs if source in reduced]
        inner = {source: reduced[source] for source in inputs if source in helpers or reduced[source].table == "0"}
        if inner:
            function = _composed(function, inner)
        if function.table is None:
            problem = f"{short_repr(name)} has {len(function.inputs)} inputs and no table"
            raise NetworkError(problem, reason="wide", name=name)
        reduced[name] = function
    return {name: function for name, function in reduced.items() if name not in helpers}


def _composed(function: Function, inner: Functions) -> Function:
    """Return a function with the functions of some inputs put in."""
    if all(not part.inputs for part in inner.values()) and function.table is not None:
        return restrict(function, {name: part.bits for name, part in inner.items()})
    nodes: Nodes = ()
    parts = {name: formula_of(part) for name, part in inner.items()}
    for node in formula_of(function):
        nodes += parts.get(node, (node,)) if isinstance(node, str) else (node,)
    return derive_function(nodes, prove_signs)


def _leading_to(readouts: Sequence[str], functions: Functions) -> set[str]:
    """Return the readouts and what they depend on."""
    waiting, reached = [*readouts], set(readouts)
    while waiting:
        name = waiting.pop()
        for source in functions[name].inputs if name in functions else ():
            if source not in reached:
                reached.add(source)
                waiting.append(source)
    return reached


def _predict(task: Task, functions: Functions, optimal_answers: Sequence[Collection[str]] | None) -> Prediction:
    order = [*TopologicalSorter({name: function.inputs for name, function in functions.items()}).static_order()]
    answers, squares, differs = [], [], []
    misfit, factor = 0, task.options.factor
    for number, experiment in enumerate(task.experiments):
        values = _values(order, functions, experiment, task.setup.stimuli)
        answer = "".join(str(values.get(name, 0)) for name in task.setup.readouts)
        answers.append(answer)
        rows = zip(answer, task.values[number], task.discretised[number], task.setup.readouts, strict=True)
        for place, (bit, value, discretised, readout) in enumerate(rows):
            if value is None or discretised is None:
                continue
            misfit += (factor * int(bit) - discretised) ** 2
            squares.append(Fraction(int(bit) - Fraction(value)) ** 2)
            if optimal_answers is not None and all(text[place] != bit for text in optimal_answers[number]):
                differs.append((number, readout))
    mse = float(sum(squares) / len(squares)) if squares else 0.0
    return Prediction(tuple(answers), misfit, mse, None if optimal_answers is None else tuple(differs))


def _values(
    order: Sequence[str], functions: Functions, experiment: Experiment, stimuli: Sequence[str]
) -> dict[str, int]:
    values = {name: int(name in experiment.on) for name in stimuli}
    for name in order:
        if name not in values:
            values[name] = 0 if name in experiment.inhibited else functions[name].value(values)
    return values


def _first_breach(task: Task, functions: Functions) -> tuple[str, str]:
    """Return the first rule of the class that functions break, with its node or edge; empty texts without any."""
    edges = {*task.edges}
    for name, function in functions.items():
        if function.table == "1":
            return CONSTANT, name
    for name, function in functions.items():
        signed = [*zip(function.inputs, function.signs, strict=True)]
        for source, _ in signed:
            if not any(Edge(source, sign, name) in edges for sign in (1, -1)):
                return EDGE, f"{source} {name}"
        for source, word in signed:
            if not all(Edge(source, sign, name) in edges for sign in _SIGNS[word]):
                return SIGN, f"{source} {name}"
    return "", ""


def _equal_formulas(task: Task, name: str, function: Function) -> list[Model]:
    """Return the class formulas with a function: those of fewest literals first, of equals by text."""
    edges = edges_by_target(task.edges).get(name, [])
    longest = task.options.max_clause
    if len({edge.source for edge in edges}) == len(edges):
        # one sign a source: the only formula without a contained clause is that of all prime implicants
        cubes = cover(function.bits, len(function.inputs))
        if longest and any(len(cube) > longest for cube in cubes):
            return []
        return [frozenset(_clause(name, function, cube) for cube in cubes)]
    formulas = NodeFormulas(edges, longest)
    rows = [*product((0, 1), repeat=len(formulas.sources))]
    places = [formulas.sources.index(source) for source in function.inputs]
    numbers = [sum(row[p] << i for i, p in enumerate(places)) for row in rows]  # of each row in the function's table
    response = sum((function.bits >> number & 1) << t for t, number in enumerate(numbers))
    equal = [formulas.model(formula.number) for formula in formulas.on_rows(rows) if formula.response == response]
    return sorted(equal, key=lambda model: (model_size(model), model_texts(model)))


def _clause(name: str, function: Function, cube: Sequence[tuple[int, bool]]) -> Clause:
    return clause(name, [(function.inputs[i], 1 if value else -1) for i, value in cube])


def _sizes(task: Task, equal: Mapping[str, Sequence[Model]]) -> Counter[int] | None:
    """Return the sizes of the models of the class with given formulas of each node; None if they are too many to list.

    Formulas with sources that change nothing may close a cycle or name a node without a formula.
    """
    if prod(len(formulas) for formulas in equal.values()) > MAX_LISTED_MODELS:
        return None
    models = (frozenset[Clause]().union(*formulas) for formulas in product(*equal.values()))
    return Counter(model_size(model) for model in models if not broken_rule(model, task))
