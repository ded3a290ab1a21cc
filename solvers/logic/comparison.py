"""Lists and models of other tools, compared with a family: members, models outside, and the first rule they break."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from graphlib import CycleError, TopologicalSorter
from itertools import product
from math import fsum, prod
from typing import Protocol

from calibrant.dsl.logic import reference
from calibrant.dsl.logic.files.networks import ListedModel
from calibrant.dsl.logic.item import (
    Clause,
    Edge,
    Experiment,
    Model,
    Setup,
    Task,
    edges_by_target,
    kept_names,
    merge_nodes,
    model_size,
    model_texts,
)
from calibrant.dsl.logic.item import clause as make_clause
from calibrant.dsl.logic.reference import class_violation
from calibrant.dsl.networks.formulas import (
    Function,
    Nodes,
    cover,
    derive_function,
    formula_of,
    require_table,
    restrict,
)
from calibrant.dsl.networks.network import Network, SignedEdge
from calibrant.solvers.logic.network import NodeFormulas
from calibrant.solvers.networks.cut import shortest_cycle
from calibrant.solvers.networks.network import find_recurrent_values, prove_signs

# --- Audit of another tool's list of models: members, models outside, claims that the family contradicts --------------
MSE_TOLERANCE = 1e-4  # lists print four decimals


class Counted(Protocol):
    """Interface of a family that a comparison needs."""

    @property
    def task(self) -> Task: ...
    @property
    def count(self) -> int: ...
    def clauses(self) -> Mapping[Clause, int]: ...
    def edges(self) -> Mapping[Edge, int]: ...
    def fits(self, member: Model) -> bool: ...
    def models(self) -> Iterable[Model]: ...
    def condition(self, clause: Clause, *, present: bool = True) -> Counted: ...


@dataclass(frozen=True, slots=True)
class OutsideModel:
    """Model of the list that is no member.

    number: index in the list; rule: first rule of the class that it breaks, "" if it only exceeds the limits
    misfit: None for a model outside of the class
    """

    number: int
    rule: str
    misfit: int | None
    size: int


@dataclass(frozen=True, slots=True)
class Overclaim:
    """Clause or edge that all models of the list have, or none of them, while a member of the family differs.

    claimed: "always" or "never"; count: number of members that have it; witness: a member that contradicts the list
    """

    part: Clause | Edge
    claimed: str
    count: int
    witness: Model


@dataclass(frozen=True, slots=True)
class Misstatement:
    """Figure of the list that is wrong.

    number: index of the model; field: mse or size; stated, actual: its value in the list, and by the reference
    """

    number: int
    field: str
    stated: float
    actual: float


@dataclass(frozen=True)
class Comparison:
    """Common part of a list and a family; models are numbered from 0 in the order of the list.

    num_listed: number of entries; num_distinct: number of different models; num_members: number of different members
    share: num_members / count of the family
    outside_class, outside_limits: models that are no members; overclaims, misstatements: wrong claims of the list
    unknown_edges: edges of the list that the class lacks
    max_difference: greatest difference between the weighted frequency of a clause in the list and its share in the
        family; max_difference_clause: that clause, None without one
    models: models of the list over the nodes of the class
    merged_nodes: nodes of the list that the compression of the prior merged into others
    """

    num_listed: int
    num_distinct: int
    num_members: int
    share: Fraction
    outside_class: tuple[OutsideModel, ...]
    outside_limits: tuple[OutsideModel, ...]
    overclaims: tuple[Overclaim, ...]
    misstatements: tuple[Misstatement, ...]
    unknown_edges: tuple[Edge, ...]
    max_difference: Fraction
    max_difference_clause: Clause | None
    models: tuple[Model, ...]
    merged_nodes: tuple[str, ...]


def compare_models(family: Counted, listed: Sequence[ListedModel]) -> Comparison:
    """Return what a list of models has in common with a family, and where it claims more."""
    task = family.task
    judged = [_merge(entry.model, task) for entry in listed]
    models = [entry.model if model is None else model for entry, model in zip(listed, judged, strict=True)]
    distinct = set(models)
    # by the reference, not the lattice: the list is compared with counts of the lattice
    members = {model for model in distinct if family.fits(model)}
    outside_class, outside_limits, misstatements = [], [], []
    for index, (entry, model) in enumerate(zip(listed, judged, strict=True)):
        rule = reference.CONSTANT if model is None else reference.class_violation(model, task)
        size = model_size(models[index])
        misfit = None if rule else reference.misfit(models[index], task)
        if rule:
            outside_class.append(OutsideModel(index, rule, None, size))
        elif model not in members:
            outside_limits.append(OutsideModel(index, "", misfit, size))
        misstatements += _misstatements(index, entry, task)
    edges = sorted({edge for model in distinct for clause in model for edge in clause.edges} - set(task.edges))
    weighted = [replace(entry, model=model) for entry, model in zip(listed, models, strict=True)]
    difference, clause = _max_difference(family, weighted)
    names = {name for entry in listed for clause in entry.model for name in (clause.target, *clause.sources)}
    return Comparison(
        len(listed),
        len(distinct),
        len(members),
        Fraction(len(members), family.count) if family.count else Fraction(0),
        tuple(outside_class),
        tuple(outside_limits),
        tuple(_overclaims(family, distinct)),
        tuple(misstatements),
        tuple(edges),
        difference,
        clause,
        tuple(models),
        tuple(sorted(names & task.merged_nodes)),
    )


def _merge(model: Model, task: Task) -> Model | None:
    """Return the model over the nodes of the compressed prior; None if a formula becomes constantly 1."""
    return merge_nodes(model, task.merged_nodes) if task.merged_nodes and reference.is_acyclic(model) else model


def _misstatements(number: int, entry: ListedModel, task: Task) -> list[Misstatement]:
    findings = []
    size = model_size(entry.model)
    if entry.size is not None and entry.size != size:
        findings.append(Misstatement(number, "size", entry.size, size))
    if entry.mse is not None and reference.is_acyclic(entry.model):
        actual = mean_squared_error(entry.model, task)
        if abs(actual - entry.mse) > MSE_TOLERANCE:
            findings.append(Misstatement(number, "mse", entry.mse, actual))
    return findings


def mean_squared_error(model: Model, task: Task) -> float:
    """Return the mean of (prediction - value) squared over measured values, not discretised; 0 without any."""
    squares = [square for row in _squares(model, task).values() for square in row]
    return fsum(squares) / len(squares) if squares else 0.0


def errors_by_readout(model: Model, task: Task) -> dict[str, float]:
    """Return the mean squared error of each readout that has a measured value."""
    return {readout: fsum(row) / len(row) for readout, row in _squares(model, task).items() if row}


def _squares(model: Model, task: Task) -> dict[str, list[float]]:
    """Return (prediction - value) squared of the measured values, by readout."""
    squares: dict[str, list[float]] = {readout: [] for readout in task.setup.readouts}
    for experiment, row in zip(task.experiments, task.values, strict=True):
        answers = reference.predict(model, task.setup, experiment)
        for readout, answer, value in zip(task.setup.readouts, answers, row, strict=True):
            if value is not None:
                difference = int(answer) - value
                squares[readout].append(difference * difference)  # `**` raises where a product is infinite
    return squares


def _overclaims(family: Counted, models: set[Model]) -> Iterable[Overclaim]:
    """Yield what all models have and some member lacks, or no model has and some member has: clauses, then edges."""
    if not models or not family.count:
        return
    counts: Mapping[Clause, int] = family.clauses()
    first = next(iter(family.models()))  # contradicts every "always" about what no member has
    always = frozenset.intersection(*models)
    ever = frozenset.union(*models)
    for clause in sorted(always | counts.keys()):
        count = counts.get(clause, 0)
        if clause in always and count < family.count:
            lacking = _witness(family, [clause], present=False) if count else first
            yield Overclaim(clause, "always", count, lacking)
        elif clause not in ever and count:
            yield Overclaim(clause, "never", count, _witness(family, [clause], present=True))
    edge_sets = [frozenset(edge for clause in model for edge in clause.edges) for model in models]
    edge_counts = family.edges()
    always_edges, ever_edges = frozenset.intersection(*edge_sets), frozenset.union(*edge_sets)
    for edge in sorted(always_edges | edge_counts.keys()):
        count = edge_counts.get(edge, 0)
        # a member lacks an edge iff it lacks every clause with the edge
        using = [clause for clause in counts if edge in clause.edges] if count else []
        if edge in always_edges and count < family.count:
            yield Overclaim(edge, "always", count, _witness(family, using, present=False) if count else first)
        elif edge not in ever_edges and count:
            yield Overclaim(edge, "never", count, _witness(family, using[:1], present=True))


def _witness(family: Counted, clauses: Sequence[Clause], *, present: bool) -> Model:
    """Return a member that has all these clauses, or none of them if not `present`."""
    for clause in clauses:
        family = family.condition(clause, present=present)
    return next(iter(family.models()))


def _max_difference(family: Counted, listed: Sequence[ListedModel]) -> tuple[Fraction, Clause | None]:
    weight = sum(entry.weight for entry in listed)
    if not weight or not family.count:
        return Fraction(0), None
    frequencies: dict[Clause, int] = {}
    for entry in listed:
        for clause in entry.model:
            frequencies[clause] = frequencies.get(clause, 0) + entry.weight
    counts = family.clauses()
    best: tuple[Fraction, Clause | None] = (Fraction(0), None)
    for clause in sorted(frequencies.keys() | counts.keys()):
        difference = abs(Fraction(frequencies.get(clause, 0), weight) - Fraction(counts.get(clause, 0), family.count))
        if difference > best[0]:
            best = (difference, clause)
    return best


# --- Models of published files, judged as functions against a prior network and measurements --------------------------
# A model's rules are read as functions. The functions of helper nodes (outside of the class) are substituted into their
# readers, nodes on which no readout depends are left out, and the other functions are compared with the class.
CYCLE, CONSTANT, EDGE, SIGN, CLAUSE = "cycle", "constant", "edge", "sign", "clause"
MISFIT, SIZE = "misfit", "size"
MAX_LISTED_MODELS = 10_000  # models of the class with the same functions that are listed
MAX_FREE_NODES = 14  # nodes of a network with feedback: 16,384 states for each experiment, some ms
Functions = Mapping[str, Function]
_SIGNS = {"+": (1,), "-": (-1,), "both": (1, -1)}


NOTHING_LACKING = Setup((), (), ())


@dataclass(frozen=True)
class Prediction:
    """Answers of functions to the measured experiments.

    answers: for each experiment, the answers of all readouts as a text; misfit: as for models
    mse: mean of (answer - value) squared over measured values, not discretised; 0 without any
    differs: measured cells (experiment, readout) where no optimal model has this answer; None if the predictions of
        optimal models are too many to list
    """

    answers: tuple[str, ...]
    misfit: int
    mse: float
    differs: tuple[tuple[int, str], ...] | None


@dataclass(frozen=True)
class Judgement:
    """Comparison of a network file with a family.

    reason: "" for a member, else cycle, constant, edge, sign, clause, misfit or size
    detail: node of the reason, or source and target of an edge
    lacks: stimuli, inhibitors and readouts of the data that are no node of the network
    cycle: edges of a shortest cycle through some node, if a cycle is the reason; nodes: all nodes of such a network
    reached: for such a network and each experiment, the values of each readout in states of attractors (synchronous,
        under the clamps of the experiment): 0, 1 or 01; None for more than MAX_FREE_NODES nodes
    zero: nodes without a rule, read as 0; ignored: stimuli whose rule the clamps override
    substituted: helper and merged nodes, substituted into their readers; left_out: nodes on which no readout depends
    functions: functions of the other nodes; prediction: None for a cycle
    model: model of the class with these functions and fewest literals; None if the class has none
    num_formulas: number of models of the class with these functions; None if too many to list, or without any
    num_members: number of members among them
    limit: upper limits of misfit and size of members, None for no limit
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
    lacks: Setup = NOTHING_LACKING
    cycle: tuple[SignedEdge, ...] = ()
    reached: tuple[tuple[str, ...], ...] | None = None
    nodes: tuple[str, ...] = ()

    @property
    def is_member(self) -> bool:
        """Whether the network is a model of the class within the limits."""
        return not self.reason

    @property
    def size(self) -> int | None:
        """Number of literals of the model; None if the class has none."""
        return None if self.model is None else model_size(self.model)


def judge_network(
    task: Task,
    network: Network,
    limit: tuple[int | None, int | None],
    optimal_answers: Sequence[Collection[str]] | None,
) -> Judgement:
    """Compare a network with the family of a task; `NetworkError` for a function without a table.

    limit: upper limits of misfit and size of members
    optimal_answers: for each experiment, the answers that optimal models have; None if too many to list
    """
    network.require_functions()
    lacks = _lacking(task.setup, {*network.nodes})
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
        cycle, reached = _name_cycle(functions), _reached(task, network)
        return Judgement(
            CYCLE, "", tuple(zero), tuple(ignored), lacks=lacks, cycle=cycle, reached=reached, nodes=network.nodes
        )
    class_names = kept_names(task.setup) | {name for edge in task.edges for name in (edge.source, edge.target)}
    helpers = {name for name in functions if name not in class_names}
    reduced = _substitute([name for name in order if name in functions], functions, helpers)
    used = _ancestors_of(task.setup.readouts, reduced)
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
        # the first formula of each node has the fewest literals, so no source without effect occurs in it
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
        lacks,
    )


def _lacking(setup: Setup, nodes: Collection[str]) -> Setup:
    groups = (setup.stimuli, setup.inhibitors, setup.readouts)
    return Setup(*(tuple(name for name in names if name not in nodes) for names in groups))


def network_clamps(setup: Setup, experiment: Experiment, nodes: Collection[str]) -> dict[str, int]:
    """Return the clamps of an experiment on nodes of a network: stimuli on or off, inhibited nodes 0."""
    clamps = {name: int(name in experiment.on) for name in setup.stimuli if name in nodes}
    return clamps | {name: 0 for name in setup.inhibitors if name in experiment.inhibited and name in nodes}


def _reached(task: Task, network: Network) -> tuple[tuple[str, ...], ...] | None:
    """Return `Judgement.reached`."""
    nodes, rows, by_experiment = {*network.nodes}, [], dict[Experiment, dict[str, str] | None]()
    for experiment in task.experiments:
        if experiment not in by_experiment:
            clamps = network_clamps(task.setup, experiment, nodes)
            by_experiment[experiment] = find_recurrent_values(network, clamps, MAX_FREE_NODES)
        values = by_experiment[experiment]
        if values is None:
            return None
        rows.append(tuple(values.get(name, "0") for name in task.setup.readouts))
    return tuple(rows)


def _name_cycle(functions: Functions) -> tuple[SignedEdge, ...]:
    """Return the edges of a shortest cycle through some node, the same for any order of the file's lines."""
    names = shortest_cycle({name: sorted(functions[name].inputs) for name in sorted(functions)})
    first = names.index(min(names))
    names = [*names[first:], *names[:first]]
    following = [*names[1:], *names[:1]]
    signs = (
        functions[target].signs[functions[target].inputs.index(source)]
        for source, target in zip(names, following, strict=True)
    )
    return tuple(map(SignedEdge, names, following, signs))


def _substitute(order: Sequence[str], functions: Functions, helpers: Collection[str]) -> dict[str, Function]:
    """Return the functions of nodes that are no helpers, with helpers and nodes that are constantly 0 substituted."""
    reduced: dict[str, Function] = {}
    for name in order:
        function = functions[name]
        inputs = [source for source in function.inputs if source in reduced]
        inner = {source: reduced[source] for source in inputs if source in helpers or reduced[source].table == "0"}
        if inner:
            function = _compose(function, inner)
        require_table(name, function)
        reduced[name] = function
    return {name: function for name, function in reduced.items() if name not in helpers}


def _compose(function: Function, inner: Functions) -> Function:
    """Return a function with the functions of some inputs substituted."""
    if all(not part.inputs for part in inner.values()) and function.table is not None:
        return restrict(function, {name: part.bits for name, part in inner.items()})
    nodes: Nodes = ()
    parts = {name: formula_of(part) for name, part in inner.items()}
    for node in formula_of(function):
        nodes += parts.get(node, (node,)) if isinstance(node, str) else (node,)
    return derive_function(nodes, prove_signs)


def _ancestors_of(readouts: Sequence[str], functions: Functions) -> set[str]:
    """Return the readouts and all nodes on which they depend."""
    waiting, reached = [*readouts], set(readouts)
    while waiting:
        name = waiting.pop()
        for source in functions[name].inputs if name in functions else ():
            if source not in reached:
                reached.add(source)
                waiting.append(source)
    return reached


def _predict(task: Task, functions: Functions, optimal_answers: Sequence[Collection[str]] | None) -> Prediction:
    """Return the readouts of a network without feedback in every experiment, with its misfit to the data."""
    order = [*TopologicalSorter({name: function.inputs for name, function in functions.items()}).static_order()]
    answers, squares, differs = [], [], []
    misfit, factor = 0, task.options.factor
    for index, experiment in enumerate(task.experiments):
        values = _values(order, functions, experiment, task.setup.stimuli)
        answer = "".join(str(values.get(name, 0)) for name in task.setup.readouts)
        answers.append(answer)
        cells = zip(answer, task.values[index], task.discretised[index], task.setup.readouts, strict=True)
        for column, (bit, value, discretised, readout) in enumerate(cells):
            if value is None or discretised is None:
                continue
            misfit += (factor * int(bit) - discretised) ** 2
            squares.append(Fraction(int(bit) - Fraction(value)) ** 2)
            if optimal_answers is not None and all(text[column] != bit for text in optimal_answers[index]):
                differs.append((index, readout))
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
    """Return the first rule of the class that functions break, and its node or edge; ("", "") without any."""
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
    """Return the formulas of the class that have a function, by number of literals, then by text."""
    edges = edges_by_target(task.edges).get(name, [])
    longest = task.options.max_clause
    if len({edge.source for edge in edges}) == len(edges):
        # one sign for each source: the only formula without redundant clauses is that of all prime implicants
        cubes = cover(function.bits, len(function.inputs))
        if longest and any(len(cube) > longest for cube in cubes):
            return []
        return [frozenset(_clause(name, function, cube) for cube in cubes)]
    formulas = NodeFormulas(edges, longest)
    rows = [*product((0, 1), repeat=len(formulas.sources))]
    positions = [formulas.sources.index(source) for source in function.inputs]
    table_rows = [sum(row[p] << i for i, p in enumerate(positions)) for row in rows]
    response = sum((function.bits >> table_row & 1) << t for t, table_row in enumerate(table_rows))
    equal = [formulas.model(formula.number) for formula in formulas.on_rows(rows) if formula.response == response]
    return sorted(equal, key=lambda model: (model_size(model), model_texts(model)))


def _clause(name: str, function: Function, cube: Sequence[tuple[int, bool]]) -> Clause:
    return make_clause(name, [(function.inputs[i], 1 if value else -1) for i, value in cube])


def _sizes(task: Task, equal: Mapping[str, Sequence[Model]]) -> Counter[int] | None:
    """Return size -> number of models of the class with these formulas of each node; None if too many to list.

    Combinations outside of the class are left out: formulas with sources that change nothing may close a cycle, or have
    a source without a formula.
    """
    if prod(len(formulas) for formulas in equal.values()) > MAX_LISTED_MODELS:
        return None
    models = (frozenset[Clause]().union(*formulas) for formulas in product(*equal.values()))
    return Counter(model_size(model) for model in models if not class_violation(model, task))
