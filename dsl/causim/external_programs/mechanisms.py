"""Mechanisms of a program by diagrams, where their tables are too large: values, effects, and beside a reference."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from calibrant.dsl.causim.bundle import noise_support
from calibrant.dsl.causim.external_programs.lowering import lower_function
from calibrant.dsl.causim.external_programs.reference_graph import canonical_name
from calibrant.dsl.causim.language.decisions import DecisionBudget, Decisions, TooManyDecisions, reading_order
from calibrant.dsl.causim.language.diagrams import Diagram, diagram
from calibrant.dsl.causim.language.driver import MECHANISM, SAMPLER, parse, read_definitions
from calibrant.dsl.causim.language.execution_limits import StepBudget
from calibrant.dsl.causim.language.randomness import Unsupported
from calibrant.dsl.causim.language.statements import Function, function
from calibrant.dsl.causim.values import ModelError, Symbol, symbol, value_of


@dataclass(frozen=True, eq=False)
class DiagramNode:
    """A node of a program.

    sources: of each parameter, the parent or the sampler; domains: the values that it gives, sorted
    """

    name: str
    sources: tuple[str, ...]
    domains: tuple[tuple[Symbol, ...], ...]
    diagram: Diagram

    @property
    def values(self) -> tuple[Symbol, ...]:
        return tuple(sorted(self.diagram.values))


def diagram_nodes(source: str) -> dict[str, DiagramNode]:
    """Return the nodes of a module in the order of its calls; `Unsupported` where it raises or leaves its limits."""
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
    """Yield a sentence for each node that differs from the reference, in its values or for some arguments.

    The graphs are equal. names: the program's name -> the reference's, where canonical names differ. Noise is not
    compared: a node whose noise has an effect is compared in its values alone.
    """
    budget = DecisionBudget()
    by_canonical = {canonical_name(name): name for name in reference}
    target = {name: names.get(name) or by_canonical[canonical_name(name)] for name in nodes}
    for node in nodes.values():
        counterpart = reference[target[node.name]]
        if node.values != counterpart.values:
            yield f"{node.name} is one of {_listed(node.values)}, in the reference of {_listed(counterpart.values)}."
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
        places = [order.get(target.get(parent, ""), -1) for parent in parents]
        if any(k >= 0 and node.domains[i] != counterpart.domains[k] for i, k in enumerate(places)):
            return  # a parent takes other values, which was reported
        # the last argument is the reference's own noise, which the program does not read
        noise = _noise_of(counterpart)
        sizes = [*map(len, node.domains), len(counterpart.domains[noise])]
        decisions = Decisions(sizes, reading_order(node.diagram), budget)
        first = decisions.function_of(node.diagram.reordered([*range(len(parents)), -1]))
        second = decisions.function_of(counterpart.diagram.reordered([*places, noise]))
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


def _listed(values: Sequence[Symbol]) -> str:
    return ", ".join(values[:20]) + (f" and {len(values) - 20} others" if len(values) > 20 else "")
