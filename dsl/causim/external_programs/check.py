"""Checks of programs from elsewhere: faults, and mechanisms and graph beside those of a reference.

Order and kinds follow the paper's checks of generated programs (arXiv 2605.09079, H.4 and Table 27): syntax, language,
parts of an SCM, number of nodes, private noise, acyclicity, connectedness, topology. Functions that raise and limits of
work come last, because they show only when equations are tabulated. Programs are interpreted, never executed.

The structure matches iff canonical names and parent sets are equal (arXiv 2605.09079, section 4.2 and Table 2).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from graphlib import CycleError, TopologicalSorter
from typing import Any

from calibrant.dsl.causim.bundle import load_source, noise_support
from calibrant.dsl.causim.external_programs.sources import Outline, lower_function, read_outline
from calibrant.dsl.causim.generated_functions import Parents, is_connected, satisfies, vacuity
from calibrant.dsl.causim.language.driver import (
    DRIVER,
    MECHANISM,
    SAMPLER,
    InvalidSyntax,
    UnsupportedAt,
    parse,
    read_definitions,
)
from calibrant.dsl.causim.language.execution_limits import StepBudget, TooManyCombinations
from calibrant.dsl.causim.language.randomness import Unsupported
from calibrant.dsl.causim.language.statements import Function, FunctionRaises, function
from calibrant.dsl.causim.language.tables import (
    DecisionBudget,
    Decisions,
    Diagram,
    TooManyDecisions,
    diagram,
    reading_order,
)
from calibrant.dsl.causim.model import Model, ModelError, Symbol, symbol, value_of

# --- A program's graph beside a reference graph: equal, or which nodes and edges are missing, extra or reversed -------
Edge = tuple[str, str]


@dataclass(frozen=True, slots=True)
class StructureDifference:
    """Nodes and edges (parent, child), sorted, in the names of the reference where it has them.

    reversed_edges: edges of the reference that the program has the other way round; they are in neither other list
    """

    missing_nodes: tuple[str, ...]
    extra_nodes: tuple[str, ...]
    missing_edges: tuple[Edge, ...]
    extra_edges: tuple[Edge, ...]
    reversed_edges: tuple[Edge, ...]

    @property
    def is_match(self) -> bool:
        return not any(
            (self.missing_nodes, self.extra_nodes, self.missing_edges, self.extra_edges, self.reversed_edges)
        )


def canonical_name(name: str) -> str:
    """Return a name without case and punctuation: its letters and digits, casefolded."""
    return "".join(letter for letter in name.casefold() if letter.isalnum())


def compare_structure(
    graph: Parents, reference: Parents, names: Mapping[str, str] | None = None
) -> StructureDifference:
    """Compare a program's graph with a reference.

    names: name in the program -> name in the reference, for nodes whose canonical names differ

    `ModelError` if two nodes of a graph have the same canonical name, or if `names` has a name that is no node.
    """
    renamed = _rename(graph, reference, names or {})
    edges, required = _edges(renamed), _edges(reference)
    turned = {(parent, child) for parent, child in required - edges if (child, parent) in edges - required}
    return StructureDifference(
        tuple(sorted(set(reference) - set(renamed))),
        tuple(sorted(set(renamed) - set(reference))),
        tuple(sorted(required - edges - turned)),
        tuple(sorted(edges - required - {(child, parent) for parent, child in turned})),
        tuple(sorted(turned)),
    )


def _rename(graph: Parents, reference: Parents, names: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Return the program's graph in the names of the reference; a node that it lacks keeps its own name."""
    for name, target in names.items():
        if name not in graph:
            raise ModelError(f"{name} is to be mapped to {target}, but the program has no such node")
        if target not in reference:
            raise ModelError(f"{name} is to be mapped to {target}, but the reference has no such node")
    by_canonical = _canonical_index(reference)
    program_index = _canonical_index(graph)
    new_names = {node: names.get(node, by_canonical.get(canonical, node)) for canonical, node in program_index.items()}
    if len(set(new_names.values())) < len(new_names):
        raise ModelError("two nodes of the program would have the same name in the reference")
    return {new_names[node]: tuple(new_names[parent] for parent in parents) for node, parents in graph.items()}


def _canonical_index(graph: Parents) -> dict[str, str]:
    index: dict[str, str] = {}
    for node in graph:
        first = index.setdefault(canonical_name(node), node)
        if first != node:
            raise ModelError(f"{first} and {node} are one name without case and punctuation")
    return index


def _edges(graph: Parents) -> set[Edge]:
    return {(parent, node) for node, parents in graph.items() for parent in parents}


# --- Mechanisms whose tables are too large, by decision diagrams: values, effects, and comparison with a reference ----


@dataclass(frozen=True, eq=False)
class DiagramNode:
    """A node of a program.

    sources: for each parameter the function whose result it gets, f_* or U_*
    domains: for each parameter its possible values, sorted
    """

    name: str
    sources: tuple[str, ...]
    domains: tuple[tuple[Symbol, ...], ...]
    diagram: Diagram

    @property
    def values(self) -> tuple[Symbol, ...]:
        return tuple(sorted(self.diagram.values))


def diagram_nodes(source: str) -> dict[str, DiagramNode]:
    """Return the nodes of a module in the order of its calls; `Unsupported` if one raises or exceeds its limits."""
    parsed = parse(source)
    definitions = read_definitions(source)
    work = StepBudget()
    nodes: dict[str, DiagramNode] = {}
    for step in parsed.steps:
        called = function(lower_function(definitions[step.mechanism][1]), random=False)
        domains = tuple(
            tuple(sorted(noise_support(parsed.functions[source], work)))
            if source.startswith(SAMPLER)
            else nodes[source.removeprefix(MECHANISM)].values
            for source in step.sources
        )
        values = [[value_of(value) for value in domain] for domain in domains]
        name = step.mechanism.removeprefix(MECHANISM)
        nodes[name] = DiagramNode(name, step.sources, domains, _diagram(called, values, work))
    return nodes


def _diagram(called: Function, values: Sequence[Sequence[Any]], work: StepBudget) -> Diagram:
    def encode(value: Any) -> Symbol:
        try:
            return symbol(value)
        except ModelError as error:
            raise Unsupported(f"{called.name} returns what is no value: {error}") from None

    return diagram(called, values, encode, work)


def describe_effects(nodes: Mapping[str, DiagramNode]) -> Iterator[str]:
    """Yield a sentence for each edge without effect and each node with one value."""
    budget = DecisionBudget()
    for node in nodes.values():
        parents = {k: s.removeprefix(MECHANISM) for k, s in enumerate(node.sources) if s.startswith(MECHANISM)}
        try:
            effective = _effective_arguments(node, budget)
        except TooManyDecisions as error:
            yield from (f"The edge {parent} -> {node.name} was not checked: {error}." for parent in parents.values())
        else:
            ineffective = [parent for k, parent in parents.items() if k not in effective]
            yield from (f"The edge {parent} -> {node.name} has no effect." for parent in ineffective)
        if len(node.values) == 1:
            yield f"{node.name} has one value only."


def _effective_arguments(node: DiagramNode, budget: DecisionBudget) -> set[int]:
    decisions = Decisions(list(map(len, node.domains)), reading_order(node.diagram), budget)
    return decisions.arguments_of(decisions.function_of(node.diagram))


def compare_mechanisms(
    nodes: Mapping[str, DiagramNode], reference: Mapping[str, DiagramNode], names: Mapping[str, str]
) -> Iterator[str]:
    """Yield a sentence for each node whose values, or whose value for some arguments, differ from the reference.

    Requires equal graphs. A node whose noise has an effect is compared by its set of values alone.
    names: name in the program -> name in the reference, for nodes whose canonical names differ
    """
    budget = DecisionBudget()
    by_canonical = {canonical_name(name): name for name in reference}
    target = {name: names.get(name) or by_canonical[canonical_name(name)] for name in nodes}
    for node in nodes.values():
        counterpart = reference[target[node.name]]
        if node.values != counterpart.values:
            values, reference_values = _list_values(node.values), _list_values(counterpart.values)
            yield f"{node.name} is one of {values}, in the reference of {reference_values}."
        elif len(node.sources) > 1:
            yield from _compare_node(node, counterpart, target, budget)


def _compare_node(
    node: DiagramNode, counterpart: DiagramNode, target: Mapping[str, str], budget: DecisionBudget
) -> Iterator[str]:
    """Compare two mechanisms of equal parents for all values that both parents take."""
    parents = [source.removeprefix(MECHANISM) for source in node.sources]
    order = {source.removeprefix(MECHANISM): k for k, source in enumerate(counterpart.sources)}
    try:
        if any(_noise_of(compared) in _effective_arguments(compared, budget) for compared in (node, counterpart)):
            return
        # parameter of the reference for each parameter of the node; -1 for its noise
        parameters = [order.get(target.get(parent, ""), -1) for parent in parents]
        if any(k >= 0 and node.domains[i] != counterpart.domains[k] for i, k in enumerate(parameters)):
            return  # a parent has other values, which was reported at the parent
        # the last argument is the reference's own noise, which the program does not read
        noise = _noise_of(counterpart)
        sizes = [*map(len, node.domains), len(counterpart.domains[noise])]
        decisions = Decisions(sizes, reading_order(node.diagram), budget)
        first = decisions.function_of(node.diagram.reordered([*range(len(parents)), -1]))
        second = decisions.function_of(counterpart.diagram.reordered([*parameters, noise]))
        difference = decisions.find_difference(first, second)
    except TooManyDecisions as error:
        yield f"{node.name} was not compared: {error}."
        return
    if difference is not None:
        arguments = ", ".join(
            f"{parents[k]} = {node.domains[k][position]}"
            for k, position in sorted(difference.choices.items())
            if node.sources[k].startswith(MECHANISM)
        )
        yield f"{node.name} is {difference.values[0]} where {arguments}, in the reference {difference.values[1]}."


def _noise_of(node: DiagramNode) -> int:
    return next(k for k, source in enumerate(node.sources) if source.startswith(SAMPLER))


def _list_values(values: Sequence[Symbol]) -> str:
    return ", ".join(values[:20]) + (f" and {len(values) - 20} others" if len(values) > 20 else "")


# --- The first fault of an external program, in a fixed order, and findings about one without a fault -----------------


class FaultKind(StrEnum):
    """The checks, in their order."""

    SYNTAX = "syntax"
    UNSUPPORTED = "unsupported"
    NO_SCM = "no_scm"
    NODE_COUNT = "node_count"
    CONFOUNDING = "confounding"
    CYCLE = "cycle"
    DISCONNECTED = "disconnected"
    TOPOLOGY = "topology"
    RAISES = "raises"


@dataclass(frozen=True, slots=True)
class Fault:
    """A failed check.

    line: counted from 1, None for a fault of the whole program; node: None if no single node is at fault
    """

    kind: FaultKind
    sentence: str
    line: int | None = None
    node: str | None = None


@dataclass(frozen=True, slots=True)
class ProgramCheck:
    """The outcome of all checks of one program.

    fault: the first check that failed, None if all passed
    graph: parents of each node, None if the equations could not be read
    model: None if there is a fault, or if the tables are too large
    findings: edges without effect and nodes with one value, a sentence each, of a program without a fault
    """

    fault: Fault | None
    graph: dict[str, tuple[str, ...]] | None = None
    model: Model | None = None
    findings: tuple[str, ...] = ()


def check_program(source: str, *, num_nodes: int | None = None, topology: str | None = None) -> ProgramCheck:
    """Check a module against the requirements on an SCM; `KeyError` for an unknown topology.

    num_nodes, topology: None accepts any.
    """
    try:
        outline = read_outline(source)
    except InvalidSyntax as error:
        return ProgramCheck(Fault(FaultKind.SYNTAX, f"{error}.", error.line))
    except UnsupportedAt as error:
        return ProgramCheck(Fault(FaultKind.UNSUPPORTED, f"{error}.", error.line, _node_of(error.function_name)))
    except Unsupported as error:
        return ProgramCheck(Fault(FaultKind.UNSUPPORTED, f"{error}."))
    fault = next(_structural_faults(outline, num_nodes, topology), None)
    if fault is not None:
        return ProgramCheck(fault, outline.graph or None)
    try:
        model, findings = _read_mechanisms(source)
    except FunctionRaises as error:
        name = error.function_name
        return ProgramCheck(
            Fault(FaultKind.RAISES, f"{error} on a value of its domain.", outline.lines.get(name), _node_of(name)),
            outline.graph,
        )
    except Unsupported as error:
        name = next((name for name in outline.lines if str(error).startswith(name)), DRIVER)
        return ProgramCheck(
            Fault(FaultKind.UNSUPPORTED, f"{error}.", outline.lines[name], _node_of(name)), outline.graph
        )
    return ProgramCheck(None, outline.graph, model, findings)


def _read_mechanisms(source: str) -> tuple[Model | None, tuple[str, ...]]:
    """Return the model, None if its tables are too large, and the findings about its mechanisms."""
    try:
        model = load_source(source)
    except TooManyCombinations as error:
        return None, (f"Checked without tables: {error}.", *describe_effects(diagram_nodes(source)))
    return model, tuple(_describe_vacuity(model))


def _node_of(function_name: str) -> str | None:
    for prefix in (SAMPLER, MECHANISM):
        if function_name.startswith(prefix):
            return function_name.removeprefix(prefix)
    return None


def _structural_faults(outline: Outline, num_nodes: int | None, topology: str | None) -> Iterator[Fault]:
    """Yield the faults that the graph shows, in the order of the checks."""
    checks: tuple[Callable[[], Iterator[Fault]], ...] = (
        lambda: _missing_parts(outline),
        lambda: _wrong_node_count(outline, num_nodes),
        lambda: _shared_noise(outline),
        lambda: _wrong_graph(outline, topology),
    )
    for check in checks:
        yield from check()


def _missing_parts(outline: Outline) -> Iterator[Fault]:
    if DRIVER not in outline.lines:
        yield Fault(FaultKind.NO_SCM, f"The module has no function {DRIVER}.")
    if not outline.samplers:
        yield Fault(FaultKind.NO_SCM, f"The module has no sampler: no function begins with {SAMPLER}.")
    if not outline.mechanisms:
        yield Fault(FaultKind.NO_SCM, f"The module has no mechanism: no function begins with {MECHANISM}.")
    called = {f"{MECHANISM}{equation.name}" for equation in outline.equations}
    for name in outline.mechanisms:
        if name not in called:
            yield Fault(FaultKind.NO_SCM, f"{DRIVER} never calls {name}.", outline.lines[name], _node_of(name))


def _wrong_node_count(outline: Outline, num_nodes: int | None) -> Iterator[Fault]:
    if num_nodes is not None and len(outline.equations) != num_nodes:
        yield Fault(
            FaultKind.NODE_COUNT, f"The program has {len(outline.equations)} nodes where {num_nodes} are asked."
        )


def _shared_noise(outline: Outline) -> Iterator[Fault]:
    node_of_noise: dict[str, str] = {}
    for equation in outline.equations:
        for noise in equation.noises:
            if noise in node_of_noise and node_of_noise[noise] != equation.name:
                sentence = f"{noise} enters the equations of {node_of_noise[noise]} and {equation.name}."
                yield Fault(FaultKind.CONFOUNDING, sentence, equation.line, equation.name)
            node_of_noise[noise] = equation.name
        if len(equation.noises) != 1:
            sentence = f"The equation of {equation.name} has {len(equation.noises)} noise variables instead of one."
            yield Fault(FaultKind.CONFOUNDING, sentence, equation.line, equation.name)
    for name in outline.samplers:
        if name not in node_of_noise:
            yield Fault(FaultKind.CONFOUNDING, f"{name} enters no equation.", outline.lines[name])


def _wrong_graph(outline: Outline, topology: str | None) -> Iterator[Fault]:
    graph = outline.graph
    if cycle := find_cycle(graph):
        line = next(equation.line for equation in outline.equations if equation.name == cycle[0])
        yield Fault(FaultKind.CYCLE, f"The equations form a cycle: {' -> '.join((*cycle, cycle[0]))}.", line, cycle[0])
    if not is_connected(graph):
        yield Fault(FaultKind.DISCONNECTED, "The graph is not connected.")
    if topology is not None and not satisfies(graph, topology):
        yield Fault(FaultKind.TOPOLOGY, f"The graph does not have the topology {topology}.")
    for equation in outline.equations:
        if equation.premature is not None:
            sentence = f"{DRIVER} uses the result of {equation.premature} before it is computed."
            yield Fault(FaultKind.RAISES, sentence, equation.line, equation.name)


def find_cycle(graph: Parents) -> list[str]:
    """Return the nodes of a cycle, each a parent of the next, from the earliest in the graph on; empty without one."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        cycle: list[str] = error.args[1][:-1]  # its first node is also its last
        nodes = list(graph)
        start = min(range(len(cycle)), key=lambda index: nodes.index(cycle[index]))
        return cycle[start:] + cycle[:start]
    return []


def _describe_vacuity(model: Model) -> Iterator[str]:
    try:
        vacuous = vacuity(model)
    except ModelError as error:  # a table beyond the limit: nothing is claimed about its edges
        yield f"Edges and constants were not checked: {error}."
        return
    for parent, child in vacuous.edges:
        yield f"The edge {parent} -> {child} has no effect."
    for name in vacuous.constants:
        yield f"{name} has one value only."
