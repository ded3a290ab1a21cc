"""Mechanisms of a program by diagrams, where their tables are too large: values, effects, and beside a reference."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from calibrant.dsl.causim.bundle import noise_support
from calibrant.dsl.causim.external_programs.lowering import lower_function
from calibrant.dsl.causim.external_programs.reference_graph import canonical_name
from calibrant.dsl.causim.language.diagrams import (
    Diagram,
    PairBudget,
    TooManyPairs,
    diagram,
    find_difference,
    has_effect,
)
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
    budget = PairBudget()
    for node in nodes.values():
        for k, source in enumerate(node.sources):
            if not source.startswith(MECHANISM):
                continue
            edge = f"The edge {source.removeprefix(MECHANISM)} -> {node.name}"
            try:
                if not has_effect(node.diagram, k, len(node.domains[k]), budget):
                    yield f"{edge} has no effect."
            except TooManyPairs as error:
                yield f"{edge} was not checked: {error}."
        if len(node.values) == 1:
            yield f"{node.name} has one value only."


def compare_mechanisms(
    nodes: Mapping[str, DiagramNode], reference: Mapping[str, DiagramNode], names: Mapping[str, str]
) -> Iterator[str]:
    """Yield a sentence for each node that differs from the reference, in its values or for some arguments.

    The graphs are equal. names: the program's name -> the reference's, where canonical names differ. Noise is not
    compared: a node whose noise has an effect is compared in its values alone.
    """
    budget = PairBudget()
    by_canonical = {canonical_name(name): name for name in reference}
    target = {name: names.get(name) or by_canonical[canonical_name(name)] for name in nodes}
    for node in nodes.values():
        counterpart = reference[target[node.name]]
        if node.values != counterpart.values:
            yield f"{node.name} is one of {_listed(node.values)}, in the reference of {_listed(counterpart.values)}."
        elif len(node.sources) > 1:
            yield from _compare_node(node, counterpart, target, budget)


def _compare_node(
    node: DiagramNode, counterpart: DiagramNode, target: Mapping[str, str], budget: PairBudget
) -> Iterator[str]:
    """Compare two mechanisms of equal parents for all values that both parents take."""
    parents = [source.removeprefix(MECHANISM) for source in node.sources]
    order = {source.removeprefix(MECHANISM): k for k, source in enumerate(counterpart.sources)}
    try:
        for compared in (node, counterpart):
            noise = next(k for k, source in enumerate(compared.sources) if source.startswith(SAMPLER))
            if has_effect(compared.diagram, noise, len(compared.domains[noise]), budget):
                return
        places = [order.get(target.get(parent, ""), -1) for parent in parents]
        if any(k >= 0 and node.domains[i] != counterpart.domains[k] for i, k in enumerate(places)):
            return  # a parent takes other values, which was reported
        difference = find_difference(node.diagram, counterpart.diagram.reordered(places), budget)
    except TooManyPairs as error:
        yield f"{node.name} was not compared: {error}."
        return
    if difference is not None:
        arguments = ", ".join(
            f"{parents[k]} = {node.domains[k][position]}"
            for k, position in sorted(difference.choices.items())
            if node.sources[k].startswith(MECHANISM)
        )
        yield f"{node.name} is {difference.values[0]} where {arguments}, in the reference {difference.values[1]}."


def _listed(values: Sequence[Symbol]) -> str:
    return ", ".join(values[:20]) + (f" and {len(values) - 20} others" if len(values) > 20 else "")
