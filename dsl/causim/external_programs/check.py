"""The first fault of a program from elsewhere, in a fixed order, and what is odd about one without a fault.

Order and kinds follow the paper's checks of generated programs (arXiv 2605.09079, H.4 and Table 27): syntax, language,
what an SCM needs, number of nodes, private noise, acyclicity, connectedness, topology. What only tabulating the
equations shows comes last: functions that raise, and limits of work. Nothing is ever executed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from graphlib import CycleError, TopologicalSorter

from calibrant.dsl.causim.bundle import load_source
from calibrant.dsl.causim.external_programs.mechanisms import describe_effects, diagram_nodes
from calibrant.dsl.causim.external_programs.outline import Outline, read_outline
from calibrant.dsl.causim.language.driver import DRIVER, MECHANISM, SAMPLER, UnsupportedAt
from calibrant.dsl.causim.language.execution_limits import TooManyCombinations
from calibrant.dsl.causim.language.modules import InvalidSyntax
from calibrant.dsl.causim.language.randomness import Unsupported
from calibrant.dsl.causim.language.statements import FunctionRaises
from calibrant.dsl.causim.model import Model
from calibrant.dsl.causim.topology import Parents, is_connected, satisfies
from calibrant.dsl.causim.values import ModelError
from calibrant.dsl.causim.verifier import vacuity


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
    """line: counted from 1, None for a fault of the whole program; node: None where no single node is at fault."""

    kind: FaultKind
    sentence: str
    line: int | None = None
    node: str | None = None


@dataclass(frozen=True, slots=True)
class ProgramCheck:
    """The outcome of all checks of one program.

    fault: the first that fails, None if none does
    graph: the parents of each node, None where the equations could not be read
    model: None if there is a fault, and where the tables are too large to be made
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
    """Return the model, None where its tables are too large, and the findings about its mechanisms."""
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
    """Return the nodes of a cycle, each a parent of the next and the last of the first, from the earliest one on.

    An acyclic graph has none.
    """
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        cycle: list[str] = error.args[1][:-1]  # its first node is also its last
        nodes = list(graph)
        start = min(range(len(cycle)), key=lambda place: nodes.index(cycle[place]))
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
