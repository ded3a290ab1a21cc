"""Programs that grow by one node a version: a legal insertion, a new U and f, children rewritten, all verified.

A child that gets a new parent keeps its old table where that parent has its default value, and follows another rule
elsewhere. A child whose parent is taken away computes a stand-in for it from the new node. What the verifier refuses is
drawn again with the next counter.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from calibrant.dsl.causim.bundle import Bundle, Definition, Graph, GrowthPlan, module_text, noise_support
from calibrant.dsl.causim.generation.draws import Draws
from calibrant.dsl.causim.generation.mechanisms import INDENT, Input, Setting, indent_lines, mechanism
from calibrant.dsl.causim.generation.samplers import sampler
from calibrant.dsl.causim.generation.words import Vocabulary, new_name, outcomes
from calibrant.dsl.causim.item import load_model
from calibrant.dsl.causim.language.execution_limits import StepBudget
from calibrant.dsl.causim.language.modules import statements
from calibrant.dsl.causim.language.statements import Function, function
from calibrant.dsl.causim.language.tables import table
from calibrant.dsl.causim.model import Model
from calibrant.dsl.causim.topology import NEW, Insertion, depths, insert_node, insertions
from calibrant.dsl.causim.values import ModelError, symbol, value_of
from calibrant.dsl.causim.verifier import bundle_objections

MAX_ATTEMPTS: Final = 20
MAX_RESTARTS: Final = 10
ACCEPTED: Final = "accepted"
_NOTHING: Final = Model([])


@dataclass(frozen=True)
class _Part:
    """One node's code: parents are its parents' names in the order of the signature; the noise comes last."""

    sampler: str
    parents: tuple[str, ...]
    body: str


@dataclass(frozen=True)
class Version:
    """A program and its model."""

    bundle: Bundle
    model: Model


@dataclass
class Tally:
    """The outcomes of drafts: accepted ones, and how often each objection was the first. Filled as programs grow.

    versions: the outcomes of drafts with so many nodes, `accepted` or the objection
    """

    accepted: int = 0
    refused: dict[str, int] = field(default_factory=dict)
    versions: dict[int, dict[str, int]] = field(default_factory=dict)

    @property
    def rate(self) -> float:
        drafts = self.accepted + sum(self.refused.values())
        return self.accepted / drafts if drafts else 1.0

    def add(self, tally: Tally) -> None:
        """Add the outcomes of further drafts."""
        for version, of_version in tally.versions.items():
            for outcome, number in of_version.items():
                self.count(version, None if outcome == ACCEPTED else outcome, number)

    def count(self, version: int, objection: str | None, number: int = 1) -> None:
        """Count drafts with so many nodes; None where there was no objection."""
        of_version = self.versions.setdefault(version, {})
        outcome = ACCEPTED if objection is None else objection
        of_version[outcome] = of_version.get(outcome, 0) + number
        if objection is None:
            self.accepted += number
        else:
            self.refused[objection] = self.refused.get(objection, 0) + number

    @property
    def in_words(self) -> str:
        """Number of drafts, share of accepted ones, and the objections, the most frequent first."""
        drafts = self.accepted + sum(self.refused.values())
        kinds = sorted(self.refused.items(), key=lambda entry: (-entry[1], entry[0]))
        listed = ", ".join(f"{kind} {number}" for kind, number in kinds)
        return f"{drafts} drafts, {100 * self.rate:.0f} % accepted{f'; refused: {listed}' if listed else ''}"


@dataclass(frozen=True)
class _State:
    parts: Mapping[str, _Part]
    graph: Mapping[str, tuple[str, ...]]
    model: Model


def grow(
    seed: int,
    scm_id: str,
    topology: str,
    nodes: int,
    *,
    vocabulary: Vocabulary = "nonsense",
    tally: Tally | None = None,
) -> list[Version]:
    """Versions 1 to `nodes` of one program; the same arguments give the same bytes. `ModelError` if none is found."""
    tally = tally if tally is not None else Tally()
    for restart in range(MAX_RESTARTS):
        versions = _grow_once(
            ("program", seed, scm_id, topology, vocabulary, restart), topology, nodes, vocabulary, tally
        )
        if len(versions) == nodes:
            return versions
    raise ModelError(f"no {topology} of {nodes} nodes after {MAX_RESTARTS} starts with {MAX_ATTEMPTS} attempts a node")


def _grow_once(
    key: tuple[object, ...], topology: str, nodes: int, vocabulary: Vocabulary, tally: Tally
) -> list[Version]:
    state = _State({}, {}, _NOTHING)
    versions: list[Version] = []
    for step in range(nodes):
        for attempt in range(MAX_ATTEMPTS):
            drafted = _draft(Draws(*key, step, attempt), state, topology, vocabulary)
            source = module_text(drafted.bundle, comments=False)
            try:
                model = load_model(source)
                objections = bundle_objections(drafted.bundle, model, source)
            except ModelError as error:
                objections = [str(error)]
            else:
                if not objections:
                    tally.count(step + 1, None)
                    state = _State(drafted.parts, drafted.graph, model)
                    versions.append(Version(drafted.bundle, model))
                    break
            kind = "too large" if "rows" in objections[0] else objections[0].rpartition(" ")[2]
            tally.count(step + 1, kind)
        else:
            return versions
    return versions


@dataclass(frozen=True)
class _Draft:
    parts: Mapping[str, _Part]
    graph: Mapping[str, tuple[str, ...]]
    bundle: Bundle


def _draft(draws: Draws, state: _State, topology: str, vocabulary: Vocabulary) -> _Draft:
    place = draws.choice(insertions(state.graph, topology))
    name = new_name(draws, state.graph)
    values = _number_of_values(draws, topology)
    outputs = outcomes(draws, vocabulary, values)
    noise = sampler(draws, vocabulary)
    setting = Setting(
        [_input(state, parent) for parent in place.parents], Input(_noise_of(name), _noise_values(noise)), outputs
    )
    parts = dict(state.parts)
    parts[name] = _Part(noise, place.parents, mechanism(draws, setting))
    new = Input(name.lower(), _image(parts[name].body, [*setting.parents, setting.noise]))
    for child, parents in place.changed:
        after = tuple(name if parent == NEW else parent for parent in parents)
        parts[child] = _rewritten(draws, state, child, after, new)
    graph = insert_node(state.graph, place, name)
    return _Draft(parts, graph, _bundle(parts, graph, topology, place, name))


def _number_of_values(draws: Draws, topology: str) -> int:
    """Two to four; the parents of a wide sink mostly have two, or its table explodes."""
    if topology == "inverted_star":
        return 3 if draws.below(5) == 0 else 2
    return 2 + draws.below(3)


def _noise_of(name: str) -> str:
    return f"u_{name.lower()}"


def _noise_values(body: str) -> list[object]:
    return [value_of(value) for value in sorted(noise_support(_function("", body, random=True)))]


def _image(body: str, inputs: Sequence[Input]) -> list[object]:
    """Return the values that a mechanism gives, sorted by text."""
    called = _function(", ".join(item.variable for item in inputs), body, random=False)
    codes, symbols = table(called, [item.values for item in inputs], symbol, StepBudget())
    return [value_of(value) for value in sorted(symbols[code] for code in np.unique(codes))]


def _function(parameters: str, body: str, *, random: bool) -> Function:
    (definition,) = statements("\n".join([f"def drafted({parameters}):", *indent_lines(body.split("\n"))]))
    assert isinstance(definition, ast.FunctionDef)
    return function(definition, random=random)


def _input(state: _State, name: str) -> Input:
    domain = state.model.system[state.model.position[name]].domain
    return Input(name.lower(), [value_of(value) for value in domain])


def _rewritten(draws: Draws, state: _State, child: str, parents: tuple[str, ...], new: Input) -> _Part:
    """Return a child under its new parents, of which one is the new node."""
    old = state.parts[child]
    lines = old.body.split("\n")
    lost = [parent for parent in old.parents if parent not in parents]
    if lost:
        for parent in lost:
            lines = [*_stand_in(draws, _input(state, parent), new), *lines]
        return replace(old, parents=parents, body="\n".join(lines))
    node = state.model.nodes[state.model.position[child]]
    noise = Input(_noise_of(child), [value_of(value) for value in node.support])
    domain = [value_of(value) for value in state.model.system[state.model.position[child]].domain]
    default = draws.choice(new.values)
    other_values = [value for value in new.values if value != default]
    elsewhere = [Input(new.variable, other_values)] if len(other_values) > 1 else []
    setting = Setting([*(_input(state, parent) for parent in old.parents[-1:]), *elsewhere], noise, domain)
    body = [f"if {new.variable} == {default!r}:", *indent_lines(lines), *mechanism(draws, setting).split("\n")]
    return replace(old, parents=parents, body="\n".join(body))


def _stand_in(draws: Draws, lost: Input, new: Input) -> list[str]:
    """Lines that give a lost parent's variable a value that follows from the new node's."""
    targets = draws.sample(lost.values, min(2, len(lost.values)))  # the first value is the default
    targets += [draws.choice(lost.values) for _ in range(len(new.values) - len(targets))]
    lines = []
    for k, (value, target) in enumerate(zip(new.values[:-1], targets, strict=False)):
        lines += [f"{'elif' if k else 'if'} {new.variable} == {value!r}:", f"{INDENT}{lost.variable} = {target!r}"]
    last = f"{lost.variable} = {targets[len(new.values) - 1]!r}"
    return [*lines, "else:", INDENT + last] if lines else [last]


def _bundle(
    parts: Mapping[str, _Part], graph: Mapping[str, tuple[str, ...]], topology: str, place: Insertion, name: str
) -> Bundle:
    exogenous = [Definition(f"U_{node}", [], parts[node].sampler, f"Noise of {node}.") for node in graph]
    structural = []
    lines = ["def run_once(seed=None):", "    if seed is not None:", "        random.seed(seed)"]
    for node in graph:
        part = parts[node]
        arguments = [*(parent.lower() for parent in part.parents), _noise_of(node)]
        doc = f"{node} from {', '.join([*part.parents, f'U_{node}'])}."
        structural.append(Definition(f"f_{node}", arguments, part.body, doc))
        lines.append(f"    {_noise_of(node)} = U_{node}()")
        lines.append(f"    {node.lower()} = f_{node}({', '.join(arguments)})")
    outputs = ", ".join(f"{node!r}: {node.lower()}" for node in graph)
    children = [child for child, _ in place.changed]
    plan = GrowthPlan(
        f"{name} is put {'under ' + ', '.join(place.parents) if place.parents else 'at the top'}"
        f"{', above ' + ', '.join(children) if children else ''}.",
        f"f_{name}",
        f"U_{name}",
        list(place.parents),
        children,
    )
    return Bundle(
        len(graph),
        ["import random"],
        exogenous,
        structural,
        "\n".join([*lines, f"    return {{{outputs}}}"]),
        Graph({node: list(parts[node].parents) for node in graph}, {node: f"U_{node}" for node in graph}),
        topology,
        depths(graph) if topology == "layered" else None,
        plan,
    )
