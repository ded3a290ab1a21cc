"""Generated programs, which grow by one node for each version, and questions drawn about them.

A child that gets a new parent keeps its old table for the parent's default value, and has another rule for the other
values of the parent. A child whose parent is removed computes a substitute for its value from the new node. A draft
with objections is drawn again with the next counter.

Deciding whether two tables are equal up to renaming of values takes a search. Instead, two bounds on the number of
different tables are counted. Lower bound: tables with different profiles (`_profile`) differ under any renaming. Upper
bound: tables that are equal after numbering the node's values by first occurrence are counted once.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from math import comb
from typing import Any, Final, Literal, TypeAlias

import numpy as np

from calibrant.dsl.causim.bundle import Bundle, Definition, Graph, GrowthPlan, module_text, noise_support
from calibrant.dsl.causim.generated_functions import (
    INDENT,
    NEW,
    Draws,
    Input,
    Insertion,
    Setting,
    Vocabulary,
    bundle_objections,
    depths,
    indent_lines,
    insert_node,
    insertions,
    mechanism,
    new_name,
    outcomes,
    sampler,
)
from calibrant.dsl.causim.item import load_model
from calibrant.dsl.causim.language.driver import statements
from calibrant.dsl.causim.language.execution_limits import StepBudget
from calibrant.dsl.causim.language.statements import Function, function
from calibrant.dsl.causim.language.tables import table
from calibrant.dsl.causim.model import Local, Model, ModelError, Symbol, run, symbol, value_of
from calibrant.dsl.causim.question import FORMS, Question, QuestionType

# --- Growth by one node: an insertion that keeps the topology, a new U and f, rewritten children, all verified --------
MAX_ATTEMPTS: Final = 20  # drafts of one version
MAX_RESTARTS: Final = 10  # restarts from version 1, if a version has no accepted draft
ACCEPTED: Final = "accepted"
_EMPTY_MODEL: Final = Model([])


@dataclass(frozen=True)
class _NodeCode:
    """Code of one node; parents: names in the order of the signature, whose last parameter is the noise."""

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
    """Outcomes of drafts, counted as programs grow.

    accepted: number of accepted drafts; refused: first objection -> number of drafts
    versions: number of nodes -> outcome (ACCEPTED or objection) -> number of drafts
    """

    accepted: int = 0
    refused: dict[str, int] = field(default_factory=dict)
    versions: dict[int, dict[str, int]] = field(default_factory=dict)

    @property
    def rate(self) -> float:
        drafts = self.accepted + sum(self.refused.values())
        return self.accepted / drafts if drafts else 1.0

    def add(self, tally: Tally) -> None:
        """Add the outcomes of another tally."""
        for version, outcome_counts in tally.versions.items():
            for outcome, num_drafts in outcome_counts.items():
                self.count(version, None if outcome == ACCEPTED else outcome, num_drafts)

    def count(self, version: int, objection: str | None, num_drafts: int = 1) -> None:
        """Count drafts with `version` nodes; objection: None if they were accepted."""
        outcome_counts = self.versions.setdefault(version, {})
        outcome = ACCEPTED if objection is None else objection
        outcome_counts[outcome] = outcome_counts.get(outcome, 0) + num_drafts
        if objection is None:
            self.accepted += num_drafts
        else:
            self.refused[objection] = self.refused.get(objection, 0) + num_drafts

    @property
    def in_words(self) -> str:
        """Number of drafts, share of accepted ones, and objections by descending frequency, as text."""
        drafts = self.accepted + sum(self.refused.values())
        kinds = sorted(self.refused.items(), key=lambda entry: (-entry[1], entry[0]))
        refused = ", ".join(f"{kind} {num_drafts}" for kind, num_drafts in kinds)
        return f"{drafts} drafts, {100 * self.rate:.0f} % accepted{f'; refused: {refused}' if refused else ''}"


@dataclass(frozen=True)
class _State:
    parts: Mapping[str, _NodeCode]
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
    """Return versions 1 to `nodes` of a program, determined by the arguments; `ModelError` if drafts run out."""
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
    state = _State({}, {}, _EMPTY_MODEL)
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
    parts: Mapping[str, _NodeCode]
    graph: Mapping[str, tuple[str, ...]]
    bundle: Bundle


def _draft(draws: Draws, state: _State, topology: str, vocabulary: Vocabulary) -> _Draft:
    insertion = draws.choice(insertions(state.graph, topology))
    name = new_name(draws, state.graph)
    num_values = _number_of_values(draws, topology)
    outputs = outcomes(draws, vocabulary, num_values)
    noise = sampler(draws, vocabulary)
    setting = Setting(
        [_input(state, parent) for parent in insertion.parents], Input(_noise_of(name), _noise_values(noise)), outputs
    )
    parts = dict(state.parts)
    parts[name] = _NodeCode(noise, insertion.parents, mechanism(draws, setting))
    new = Input(name.lower(), _image(parts[name].body, [*setting.parents, setting.noise]))
    for child, parents in insertion.changed:
        new_parents = tuple(name if parent == NEW else parent for parent in parents)
        parts[child] = _rewrite_child(draws, state, child, new_parents, new)
    graph = insert_node(state.graph, insertion, name)
    return _Draft(parts, graph, _bundle(parts, graph, topology, insertion, name))


def _number_of_values(draws: Draws, topology: str) -> int:
    """Draw the number of a node's values, 2 to 4; mostly 2 for parents of one sink, whose table would be too large."""
    if topology == "inverted_star":
        return 3 if draws.below(5) == 0 else 2
    return 2 + draws.below(3)


def _noise_of(name: str) -> str:
    return f"u_{name.lower()}"


def _noise_values(body: str) -> list[object]:
    return [value_of(value) for value in sorted(noise_support(_function("", body, random=True)))]


def _image(body: str, inputs: Sequence[Input]) -> list[object]:
    """Return the values of a mechanism over all its inputs, sorted by text."""
    function_ = _function(", ".join(item.variable for item in inputs), body, random=False)
    codes, symbols = table(function_, [item.values for item in inputs], symbol, StepBudget())
    return [value_of(value) for value in sorted(symbols[code] for code in np.unique(codes))]


def _function(parameters: str, body: str, *, random: bool) -> Function:
    (definition,) = statements("\n".join([f"def drafted({parameters}):", *indent_lines(body.split("\n"))]))
    assert isinstance(definition, ast.FunctionDef)
    return function(definition, random=random)


def _input(state: _State, name: str) -> Input:
    domain = state.model.system[state.model.position[name]].domain
    return Input(name.lower(), [value_of(value) for value in domain])


def _rewrite_child(draws: Draws, state: _State, child: str, parents: tuple[str, ...], new: Input) -> _NodeCode:
    """Return the code of a child rewritten for its new parents, one of which is the new node."""
    old = state.parts[child]
    lines = old.body.split("\n")
    lost = [parent for parent in old.parents if parent not in parents]
    if lost:
        for parent in lost:
            lines = [*_substitute_lines(draws, _input(state, parent), new), *lines]
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


def _substitute_lines(draws: Draws, lost: Input, new: Input) -> list[str]:
    """Return lines that compute a removed parent's variable from the new node's value."""
    targets = draws.sample(lost.values, min(2, len(lost.values)))  # the first value is the default
    targets += [draws.choice(lost.values) for _ in range(len(new.values) - len(targets))]
    lines = []
    for k, (value, target) in enumerate(zip(new.values[:-1], targets, strict=False)):
        lines += [f"{'elif' if k else 'if'} {new.variable} == {value!r}:", f"{INDENT}{lost.variable} = {target!r}"]
    last = f"{lost.variable} = {targets[len(new.values) - 1]!r}"
    return [*lines, "else:", INDENT + last] if lines else [last]


def _bundle(
    parts: Mapping[str, _NodeCode], graph: Mapping[str, tuple[str, ...]], topology: str, insertion: Insertion, name: str
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
    children = [child for child, _ in insertion.changed]
    plan = GrowthPlan(
        f"{name} is put {'under ' + ', '.join(insertion.parents) if insertion.parents else 'at the top'}"
        f"{', above ' + ', '.join(children) if children else ''}.",
        f"f_{name}",
        f"U_{name}",
        list(insertion.parents),
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


# --- Diversity of generated programs: motifs, sizes of noise supports, and tables up to renaming of values ------------


@dataclass
class Diversity:
    """Totals over models.

    motifs: number of nodes -> [models, forks (pairs of children), colliders (pairs of parents)], each a number
    supports: size of a noise support -> number of nodes; tables, profiles: digest -> number of nodes
    """

    motifs: dict[int, list[int]] = field(default_factory=dict)
    supports: Counter[int] = field(default_factory=Counter)
    tables: Counter[bytes] = field(default_factory=Counter)
    profiles: Counter[bytes] = field(default_factory=Counter)

    def add_graph(self, model: Model) -> None:
        """Count the motifs of a model; pairs joined by an edge count too."""
        totals = self.motifs.setdefault(len(model), [0, 0, 0])
        totals[0] += 1
        totals[1] += sum(comb(len(children), 2) for children in model.children)
        totals[2] += sum(comb(len(node.parents), 2) for node in model.nodes)

    def add_tables(self, model: Model) -> None:
        """Count the noise supports, tables and profiles of a model's mechanisms."""
        for node, local in zip(model.nodes, model.system, strict=True):
            self.supports[len(node.support)] += 1
            self.tables[_digest(_number_values(local))] += 1
            self.profiles[_digest(_profile(local))] += 1

    def add(self, diversity: Diversity) -> None:
        """Add the totals of another diversity."""
        for nodes, totals in diversity.motifs.items():
            before = self.motifs.setdefault(nodes, [0, 0, 0])
            self.motifs[nodes] = [a + b for a, b in zip(before, totals, strict=True)]
        self.supports += diversity.supports
        self.tables += diversity.tables
        self.profiles += diversity.profiles

    def to_dict(self) -> dict[str, Any]:
        """Return the statistics, ready for JSON."""
        return {
            "motifs": {str(nodes): _means(totals) for nodes, totals in sorted(self.motifs.items())},
            "support_sizes": {str(size): count for size, count in sorted(self.supports.items())},
            "mechanisms": self.tables.total(),
            "distinct_tables": {"at_least": len(self.profiles), "at_most": len(self.tables)},
        }


def _means(totals: Iterable[int]) -> Mapping[str, float]:
    models, forks, colliders = totals
    return {"models": models, "forks": forks / models, "colliders": colliders / models}


def _number_values(local: Local) -> tuple[object, ...]:
    """Return a table with the node's values replaced by numbers, in order of first occurrence."""
    flat = local.table.ravel()
    values, first = np.unique(flat, return_index=True)
    numbers = np.empty(int(flat.max(initial=0)) + 1, dtype=np.int64)
    numbers[values[np.argsort(first)]] = np.arange(len(values))
    return local.table.shape, numbers[flat].tobytes()


def _profile(local: Local) -> tuple[object, ...]:
    """Return the counts of each value along each axis, sorted so as to be invariant under renaming and parent order."""
    per_value = []
    for value in range(len(local.domain)):
        is_value = local.table == value
        axes = range(is_value.ndim)
        margins = [tuple(sorted(is_value.sum(axis=tuple(k for k in axes if k != axis)).tolist())) for axis in axes]
        per_value.append((*sorted(margins[:-1]), margins[-1]))
    return tuple(sorted(per_value))


def _digest(value: tuple[object, ...]) -> bytes:
    return sha256(repr(value).encode()).digest()[:16]


# --- Questions drawn about a model: a world, the unknown noise, the intervention, the evidence ------------------------
Evidence: TypeAlias = Literal["full", "minimal"]


@dataclass(frozen=True)
class QuestionOptions:
    """Options of drawing a question.

    missing: share of the noise variables that a deduction or intervention leaves unknown
    intervened: share of the nodes that `do` sets; at least one is set
    evidence: of counterfactuals; full: all nodes are observed and all noise is unknown; minimal: one noise variable is
        unknown, its node and the node's children are observed
    with_noise: counterfactuals ask for the unknown noise too
    """

    missing: float = 0.5
    intervened: float = 0.3
    evidence: Evidence = "full"
    with_noise: bool = False


@dataclass(frozen=True)
class Drawn:
    """A question and the world that it was drawn from, which is consistent with its evidence."""

    question: Question
    world: dict[str, Symbol]


def draw_world(draws: Draws, model: Model) -> dict[str, Symbol]:
    """Draw a world: a value of each noise variable, with its probabilities."""
    world = {}
    for node in model.nodes:
        point, total = draws.below(1 << 40), 0
        for value, weight in zip(node.support, node.weights, strict=True):
            total += int(weight * (1 << 40))
            world[node.noise] = value
            if point < total:
                break
    return world


def draw_question(draws: Draws, model: Model, kind: QuestionType, options: QuestionOptions) -> Drawn:
    """Draw a question; values in `do` differ from those in the drawn world, unless a node has only one value."""
    world = draw_world(draws, model)
    factual = run(model, world, {})
    form = FORMS[kind]
    do = _interventions(draws, model, factual, options) if form.has_do else {}
    if not form.has_evidence:
        unknown = [noise for noise in model.noises if draws.chance(options.missing)]
        if not unknown and options.missing:
            unknown = [draws.choice(model.noises)]
        observed: dict[str, Symbol] = {}
    elif form.evidence == "chosen" and options.evidence == "minimal":
        i = draws.below(len(model))
        unknown = [model.noises[i]]
        observed = {model.names[k]: factual[model.names[k]] for k in sorted((i, *model.children[i]))}
    else:
        unknown, observed = list(model.noises), factual
    fixed = {noise: value for noise, value in world.items() if noise not in unknown}
    with_noise = options.with_noise and form.may_ask_noise
    return Drawn(Question(kind, fixed, tuple(sorted(unknown)), do, observed, with_noise), world)


def _interventions(
    draws: Draws, model: Model, factual: dict[str, Symbol], options: QuestionOptions
) -> dict[str, Symbol]:
    chosen = [i for i in range(len(model)) if draws.chance(options.intervened)] or [draws.below(len(model))]
    do = {}
    for i in chosen:
        name, domain = model.names[i], model.system[i].domain
        do[name] = draws.choice([value for value in domain if value != factual[name]] or list(domain))
    return do
