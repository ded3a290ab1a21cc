"""Items of logic models: prior network, experiments, clauses, and the sealed truth."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import Final, Literal, NamedTuple, TypeAlias, TypeVar

from calibrant.dsl.errors import CalibrantError, in_one_line, short_repr
from calibrant.dsl.networks.edge_tables import is_node_name as is_node_name
from calibrant.dsl.pictures import Picture, Pictured, PictureEdge, table_picture
from calibrant.dsl.text import Wording, known_names, plural

# --- Prior networks: signed edges, and the edges of the class, which compression merges -------------------------------
MAX_MERGED_EDGES = 1_000_000  # edges that compression may create, about 2 s
N = TypeVar("N", str, int)
_SIGN_BITS = {1: 1, -1: 2}
_PRODUCTS = ((0, 0, 0, 0), (0, 1, 2, 3), (0, 2, 1, 3), (0, 3, 3, 3))  # products of two sets of signs, as _SIGN_BITS


class Edge(NamedTuple):
    """A signed edge.

    sign: 1 activates, -1 inhibits
    """

    source: str
    sign: int
    target: str

    def __str__(self) -> str:
        return f"{self.source} {self.sign} {self.target}"


def class_edges(
    prior: Iterable[Edge], stimuli: Iterable[str], kept_names: Iterable[str], *, compress: bool, reverse: bool = False
) -> tuple[Edge, ...]:
    """Return the edges of the class, sorted.

    kept_names: names that compression never merges: stimuli, inhibitors, readouts
    reverse: compress in reverse code point order; another result shows that it depends on names
    """
    into_stimuli = set(stimuli)
    edges = {edge for edge in prior if edge.target not in into_stimuli}
    if compress:
        edges = _compress(edges, set(kept_names), reverse=reverse)
    return tuple(sorted(edge for edge in edges if edge.source != edge.target))


def _compress(edges: set[Edge], kept_names: set[str], *, reverse: bool) -> set[Edge]:
    """Merge, in code point order, each node that has at most one source or at most one target."""
    # neighbour: bits of the signs of the edges to it; sets of edges take three times as long
    into: dict[str, dict[str, int]] = defaultdict(dict)
    out: dict[str, dict[str, int]] = defaultdict(dict)
    num_merged = 0
    for source, sign, target in edges:
        sources = into[target]
        sources[source] = out[source][target] = sources.get(source, 0) | _SIGN_BITS[sign]
    for name in sorted((into.keys() | out.keys()) - kept_names, reverse=reverse):
        sources, targets = into[name], out[name]
        if sources and targets and ((len(sources) > 1 and len(targets) > 1) or sources.keys() & targets.keys()):
            continue
        if sources and targets:
            num_merged += sum(map(int.bit_count, sources.values())) * sum(map(int.bit_count, targets.values()))
        if num_merged > MAX_MERGED_EDGES:
            raise CalibrantError(f"merging nodes of the prior makes over {MAX_MERGED_EDGES:,} edges; see --no-compress")
        del into[name], out[name]
        for source in sources:
            del out[source][name]
        for target, bits in targets.items():
            into_target = into[target]
            del into_target[name]
            for source, source_bits in sources.items():
                merged = into_target.get(source, 0) | _PRODUCTS[source_bits][bits]
                into_target[source] = out[source][target] = merged
    return {
        Edge(source, sign, target)
        for target, sources in into.items()
        for source, bits in sources.items()
        for sign, bit in _SIGN_BITS.items()
        if bits & bit
    }


def edges_by_target(edges: Iterable[Edge]) -> dict[str, list[Edge]]:
    """Return the edges into each node, sorted."""
    grouped: dict[str, list[Edge]] = {}
    for edge in sorted(edges):
        grouped.setdefault(edge.target, []).append(edge)
    return grouped


def reachable(starts: Iterable[N], neighbours: Mapping[N, Iterable[N]]) -> set[N]:
    """Return the nodes reachable from the starts, these included."""
    reached = set(starts)
    waiting = list(reached)
    while waiting:
        for name in neighbours.get(waiting.pop(), ()):
            if name not in reached:
                reached.add(name)
                waiting.append(name)
    return reached


def successors(edges: Iterable[Edge]) -> dict[str, set[str]]:
    """Return the targets of each source."""
    targets: dict[str, set[str]] = {}
    for edge in edges:
        targets.setdefault(edge.source, set()).add(edge.target)
    return targets


def predecessors(edges: Iterable[Edge]) -> dict[str, set[str]]:
    """Return the sources of each target."""
    sources: dict[str, set[str]] = {}
    for edge in edges:
        sources.setdefault(edge.target, set()).add(edge.source)
    return sources


def is_cyclic(edges: Iterable[Edge]) -> bool:
    """Return whether the edges contain a directed cycle."""
    try:
        TopologicalSorter(predecessors(edges)).prepare()
    except CycleError:
        return True
    return False


def node_names(edges: Sequence[Edge]) -> set[str]:
    """Return the names at either end of an edge."""
    return {name for edge in edges for name in (edge.source, edge.target)}


# --- Tasks, all that a solver may read: prior network, setup, measured experiments, options and tolerances
Rounding: TypeAlias = Literal["round", "floor", "ceil"]
ROUNDINGS: Final = ("round", "floor", "ceil")
MAX_FACTOR = 1_000_000
MAX_FIT_CHARS = 40  # of the text of a tolerance
ANY_FIT = "any"
_DECIMAL = re.compile(r"[0-9]+(\.[0-9]*)?|\.[0-9]+", re.ASCII)


class LogicError(CalibrantError):
    """A task, option or experiment is invalid; the message states what is allowed."""


@dataclass(frozen=True, slots=True)
class Experiment:
    """Clamps of one experiment.

    on: stimuli that are present; inhibited: nodes that are forced to 0
    """

    on: frozenset[str] = frozenset()
    inhibited: frozenset[str] = frozenset()

    def text(self, setup: Setup) -> str:
        """Return the clamps in header order, such as `tgfa + tnfa, p38 inhibited`."""
        on = [*(name for name in setup.stimuli if name in self.on), *sorted(self.on - set(setup.stimuli))]
        off = [*(n for n in setup.inhibitors if n in self.inhibited), *sorted(self.inhibited - set(setup.inhibitors))]
        return (" + ".join(on) or "no stimulus") + (f", {' + '.join(off)} inhibited" if off else "")


@dataclass(frozen=True, slots=True)
class Setup:
    """Names in header order; stimuli and inhibitors are disjoint, readouts may overlap both."""

    stimuli: tuple[str, ...]
    inhibitors: tuple[str, ...]
    readouts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Options:
    """Discretisation of values and limits of the class.

    factor: values are multiplied by it before rounding; compress: merge nodes that are neither clamped nor measured
    max_clause: maximal number of literals of a clause; 0 for no limit
    """

    factor: int = 100
    rounding: Rounding = "round"
    compress: bool = True
    max_clause: int = 0


@dataclass(frozen=True, slots=True)
class Tolerance:
    """Limits of the family, relative to the optimum.

    fit: relative excess of misfit as decimal text, or "any"; size: additional literals, None for no limit
    """

    fit: str = "0"
    size: int | None = 0


@dataclass(frozen=True)
class Task:
    """All that a solver may read.

    values: a row for each experiment, in the order of readouts; None for a value that was not measured
    questions: held-out experiments whose readouts are the answer; empty for plain data; wording: of the prompt
    """

    prior: tuple[Edge, ...]
    setup: Setup
    experiments: tuple[Experiment, ...]
    values: tuple[tuple[float | None, ...], ...]
    options: Options = Options()
    tolerance: Tolerance = Tolerance()
    questions: tuple[Experiment, ...] = ()
    wording: Wording = "standard"

    def __post_init__(self) -> None:
        check_setup(self.setup)
        check_options(self.options)
        check_tolerance(self.tolerance)
        check_experiments(self.experiments, self.setup)
        check_experiments(self.questions, self.setup)
        if any(edge.sign not in (1, -1) for edge in self.prior):
            raise LogicError("an edge with a sign that is neither 1 nor -1")
        if len(self.values) != len(self.experiments):
            raise LogicError(f"{len(self.values)} rows of values for {len(self.experiments)} experiments")
        for row in self.values:
            if len(row) != len(self.setup.readouts):
                raise LogicError(f"a row of {len(row)} values for {len(self.setup.readouts)} readouts")
            for value in row:
                if value is not None and not math.isfinite(self.options.factor * value):
                    raise LogicError(f"value {value} is not finite, or not after multiplication by the factor")

    def __repr__(self) -> str:
        return (
            f"<Task: {len(self.prior)} edges, {len(self.experiments)} experiments, {len(self.setup.readouts)} readouts>"
        )

    @cached_property
    def edges(self) -> tuple[Edge, ...]:
        """The edges of the class, sorted."""
        return class_edges(self.prior, self.setup.stimuli, kept_names(self.setup), compress=self.options.compress)

    @cached_property
    def merged_nodes(self) -> frozenset[str]:
        """The nodes of the prior that compression merged."""
        if not self.options.compress:
            return frozenset()
        return frozenset(node_names(self.prior) - node_names(self.edges) - kept_names(self.setup))

    def outside_class(self, clause: Clause) -> str:
        """Return why a clause is not of the class, and which clauses are."""
        parts = [f"{clause} is no clause of the class"]
        if merged := sorted({clause.target, *clause.sources} & self.merged_nodes):
            parts.append(f"{', '.join(merged)}: merged into what reads it, neither clamped nor measured")
        by_target = edges_by_target(self.edges)
        if into := by_target.get(clause.target):
            literals = [("" if edge.sign == 1 else "!") + edge.source for edge in into]
            longest = f", at most {self.options.max_clause} of them" if self.options.max_clause else ""
            parts.append(f"clauses of {clause.target} are of {', '.join(literals)}{longest}")
        else:
            parts.append(f"nodes with clauses, {known_names(clause.target, sorted(by_target))}")
        return "; ".join(parts)

    @cached_property
    def discretised(self) -> tuple[tuple[int | None, ...], ...]:
        """The values multiplied by the factor and rounded; None for values that were not measured."""
        return tuple(
            tuple(None if value is None else discretise(value, self.options) for value in row) for row in self.values
        )

    def without_data(self) -> Task:
        """Return the task without experiments and limits, whose family is the whole class."""
        bare = replace(self, experiments=(), values=(), tolerance=Tolerance(ANY_FIT, None))
        vars(bare)["edges"] = self.edges  # not computed again: compressing 100,000 edges takes a second
        return bare


def kept_names(setup: Setup) -> set[str]:
    """Return the names that compression never merges."""
    return {*setup.stimuli, *setup.inhibitors, *setup.readouts}


def discretise(value: float, options: Options) -> int:
    """Return `rounding(factor * value)`, the product in IEEE doubles, `round` half to even."""
    product = options.factor * float(value)
    if options.rounding == "round":
        return round(product)
    return math.floor(product) if options.rounding == "floor" else math.ceil(product)


def fit_fraction(fit: str) -> Fraction | None:
    """Return the fit tolerance as an exact fraction, None for "any"; `LogicError` if it is no decimal of 0 or more."""
    if fit == ANY_FIT:
        return None
    if len(fit) > MAX_FIT_CHARS or _DECIMAL.fullmatch(fit) is None:
        raise LogicError(f"fit {short_repr(fit)}; a decimal of 0 or more, such as 0.1, or '{ANY_FIT}'")
    return Fraction(fit)


def fit_limit(least_misfit: int, fit: str) -> int | None:
    """Return the maximal misfit of members, floor(least_misfit * (1 + fit)); None without a limit."""
    fraction = fit_fraction(fit)
    return None if fraction is None else math.floor(least_misfit * (1 + fraction))


def check_tolerance(tolerance: Tolerance) -> None:
    """Raise `LogicError` for a fit that is no decimal, or a size that is no integer of 0 or more."""
    fit_fraction(tolerance.fit)
    if tolerance.size is not None and (type(tolerance.size) is not int or tolerance.size < 0):
        raise LogicError(f"size {short_repr(tolerance.size)}; an integer of 0 or more, or none")


def check_options(options: Options) -> None:
    """Raise `LogicError`, which names the option, if one is out of range."""
    if not 1 <= options.factor <= MAX_FACTOR:
        raise LogicError(f"factor {options.factor}; an integer from 1 to {MAX_FACTOR}")
    if options.rounding not in ROUNDINGS:
        raise LogicError(f"rounding {short_repr(options.rounding)}; one of {', '.join(ROUNDINGS)}")
    if options.max_clause < 0:
        raise LogicError(f"max_clause {options.max_clause}; an integer of 0 or more, 0 sets no limit")


def check_setup(setup: Setup) -> None:
    """Raise `LogicError` for a name that is repeated in a list, or is both stimulus and inhibitor."""
    for role, names in (
        ("stimulus", setup.stimuli),
        ("inhibitor", setup.inhibitors),
        ("readout", setup.readouts),
    ):
        repeated = next((name for name in names if names.count(name) > 1), None)
        if repeated is not None:
            raise LogicError(f"{role} {short_repr(repeated)} occurs twice")
    clash = next((name for name in setup.stimuli if name in setup.inhibitors), None)
    if clash is not None:
        raise LogicError(f"{short_repr(clash)} is a stimulus and an inhibitor; stimuli and inhibitors are disjoint")


def check_experiments(experiments: tuple[Experiment, ...], setup: Setup) -> None:
    """Raise `LogicError` for a clamp that the setup lacks."""
    stimuli, inhibitors = set(setup.stimuli), set(setup.inhibitors)
    for number, experiment in enumerate(experiments, 1):
        strange = sorted(experiment.on - stimuli) or sorted(experiment.inhibited - inhibitors)
        if strange:
            role = "a stimulus" if experiment.on - stimuli else "an inhibitor"
            raise LogicError(f"experiment {number}: {short_repr(strange[0])} is not {role} of the setup")


# --- Clauses and models: a model is a set of clauses; the clauses of a node are the disjuncts of its formula ----------
MAX_MERGED_CLAUSES = 1_000  # clauses of a merged formula; a class that can be counted has fewer for each node
_Literals: TypeAlias = frozenset[tuple[str, int]]


class ClauseError(CalibrantError):
    """A text is not a clause such as `v<-a+!b`."""


class Clause(NamedTuple):
    """A conjunction that activates a node.

    literals: (source, sign), sorted by source, no source twice
    """

    target: str
    literals: tuple[tuple[str, int], ...]

    def __str__(self) -> str:
        return f"{self.target}<-" + "+".join(("" if sign == 1 else "!") + source for source, sign in self.literals)

    @property
    def edges(self) -> tuple[Edge, ...]:
        """The edges that the clause uses."""
        return tuple(Edge(source, sign, self.target) for source, sign in self.literals)

    @property
    def sources(self) -> tuple[str, ...]:
        """The names that occur in the clause."""
        return tuple(source for source, _ in self.literals)


Model: TypeAlias = frozenset[Clause]


def clause(target: str, literals: Iterable[tuple[str, int]]) -> Clause:
    """Return the clause with its literals in code point order of sources; `ClauseError` if a source occurs twice."""
    ordered = tuple(sorted(literals))
    sources = [source for source, _ in ordered]
    if len(set(sources)) != len(sources) or not sources:
        raise ClauseError(f"clause of {short_repr(target)}: one literal or more, and no source twice")
    return Clause(target, ordered)


def parse_clause(text: str) -> Clause:
    """Return the clause of a text such as `v<-a+!b`, literals in any order; `ClauseError` states what is wrong."""
    target, arrow, body = text.partition("<-")
    target = target.strip()
    literals = [_parse_literal(part.strip()) for part in body.split("+")] if body else []
    if not arrow or not is_node_name(target) or not all(is_node_name(source) for source, _ in literals):
        raise ClauseError(f"{short_repr(text)} is no clause; write it as v<-a+!b")
    return clause(target, literals)


def _parse_literal(text: str) -> tuple[str, int]:
    return (text[1:].strip(), -1) if text.startswith("!") else (text, 1)


def merge_nodes(model: Model, names: Container[str]) -> Model | None:
    """Return an acyclic model with some nodes eliminated: their formulas are substituted into those of other nodes.

    names: eliminated nodes; one without a formula is 0. None is returned if a formula becomes constant 1; `ClauseError`
    is raised for a formula of more than MAX_MERGED_CLAUSES clauses.
    """
    if not any(member.target in names or any(source in names for source in member.sources) for member in model):
        return model
    formulas: dict[str, set[_Literals]] = {}
    for member in model:
        formulas.setdefault(member.target, set()).add(frozenset(member.literals))
    sources = {target: {s for literals in formula for s, _ in literals} for target, formula in formulas.items()}
    clauses: set[Clause] = set()
    for target in TopologicalSorter(sources).static_order():
        formula = formulas.get(target, set())
        if any(source in names for source in sources.get(target, ())):
            formula = _drop_implied(
                merged for literals in formula for merged in _substitute(literals, names, formulas, target)
            )
            formulas[target] = formula
        if target not in names:
            if frozenset() in formula:
                return None
            clauses.update(clause(target, literals) for literals in formula)
    return frozenset(clauses)


def _substitute(
    literals: _Literals, names: Container[str], formulas: Mapping[str, set[_Literals]], target: str
) -> set[_Literals]:
    """Return the disjuncts of a conjunction after substitution of the formulas of some nodes."""
    disjuncts: set[_Literals] = {frozenset()}
    for source, sign in literals:
        options: Iterable[_Literals] = [frozenset({(source, sign)})]
        if source in names:
            options = formulas.get(source, set())
            options = options if sign == 1 else _negate(options, target)
        disjuncts = _conjoin(disjuncts, options, target)
    return disjuncts


def _negate(formula: Iterable[_Literals], target: str) -> set[_Literals]:
    disjuncts: set[_Literals] = {frozenset()}
    for literals in formula:
        disjuncts = _conjoin(disjuncts, [frozenset({(source, -sign)}) for source, sign in literals], target)
    return disjuncts


def _conjoin(first: Iterable[_Literals], second: Iterable[_Literals], target: str) -> set[_Literals]:
    """Return the disjuncts of a conjunction of two formulas."""
    second = list(second)
    pairs = (a | b for a in first for b in second)
    disjuncts = _drop_implied(union for union in pairs if not any((s, -sign) in union for s, sign in union))
    if len(disjuncts) > MAX_MERGED_CLAUSES:
        raise ClauseError(f"over {MAX_MERGED_CLAUSES} clauses of {short_repr(target)} once merged nodes are put in")
    return disjuncts


def _drop_implied(formula: Iterable[_Literals]) -> set[_Literals]:
    """Return the minimal conjunctions, those that contain no other one."""
    minimal: set[_Literals] = set()
    for literals in sorted(set(formula), key=len):
        if not any(smaller <= literals for smaller in minimal):
            minimal.add(literals)
    return minimal


def model_size(model: Iterable[Clause]) -> int:
    """Return the number of literals over all clauses."""
    return sum(len(member.literals) for member in model)


def model_texts(model: Iterable[Clause]) -> list[str]:
    """Return the clause texts of a model, sorted."""
    return sorted(map(str, model))


def signed_edges(edges: Iterable[Edge]) -> tuple[PictureEdge, ...]:
    """Return edges for a picture, with a mark on inhibiting ones."""
    return tuple(PictureEdge(edge.source, edge.target, "" if edge.sign == 1 else "bad") for edge in edges)


# --- Items with a sealed truth: a task, and the model that its values were generated from -----------------------------


@dataclass(frozen=True, slots=True)
class Sealed:
    """The part of an item that is hidden from the solver.

    gold: the model that generated the values; answers: its noise-free answers to the questions, a digit per readout
    optimum: least misfit of the class, and least size of its models with that misfit
    """

    gold: Model
    answers: tuple[str, ...]
    optimum: tuple[int, int]

    def __repr__(self) -> str:
        return "<Sealed: the model behind the values>"


@dataclass(frozen=True)
class LogicItem(Pictured):
    """One item.

    sealed: None if the truth is unknown; labels: stratum, seed and difficulty
    """

    id: str
    task: Task
    sealed: Sealed | None = None
    labels: Mapping[str, str] = field(default_factory=dict)

    def picture(self) -> Picture:
        """Return the prior network and the experiments with their values."""
        task = self.task
        columns: dict[str, list[object]] = {"experiment": [e.text(task.setup) for e in task.experiments]}
        columns |= {name: [row[k] for row in task.values] for k, name in enumerate(task.setup.readouts)}
        facts = (plural(len(task.questions), "questions"), plural(len(task.experiments), "experiments"))
        return table_picture(
            f"{self.id}: {plural(len(task.edges), 'edges')}",
            columns,
            facts=facts,
            caption="Values of readouts by what is on, and !what is inhibited",
            nodes=dict.fromkeys(sorted(node_names(task.edges)), ""),
            edges=signed_edges(task.edges),
        )

    def __repr__(self) -> str:
        return f"<LogicItem {in_one_line(self.id)[:60]}: {self.task!r}>"

    @property
    def benchmark(self) -> str:
        return "logic"

    @property
    def setting(self) -> str:
        return "cyclic" if is_cyclic(self.task.edges) else "acyclic"

    @property
    def stratum(self) -> str:
        return self.labels.get("stratum", "")
