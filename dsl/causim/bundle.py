"""Programs: the bundle of a model as state files hold it, its module text, and how it is read without being run."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from calibrant.dsl.causim.language.driver import Parsed, parse
from calibrant.dsl.causim.language.execution_limits import MAX_SUPPORT, StepBudget
from calibrant.dsl.causim.language.randomness import Unsupported, outcomes, price_of
from calibrant.dsl.causim.language.statements import Function
from calibrant.dsl.causim.language.tables import table
from calibrant.dsl.causim.model import Mechanism, Model, Node, Tabulate
from calibrant.dsl.causim.values import ModelError, Symbol, symbol, value_of

INDENT: Final = "    "


class Definition(msgspec.Struct, frozen=True):
    """One U_* or f_*: `body` is dedented source without docstring."""

    name: str
    args: list[str]
    body: str
    doc: str = ""


class Graph(msgspec.Struct, frozen=True):
    """parents: in the order of the signature; exo: the noise of each node."""

    parents: dict[str, list[str]]
    exo: dict[str, str]


class GrowthPlan(msgspec.Struct, frozen=True):
    """The intention of the growth step that added a node."""

    rationale: str = ""
    new_function: str = ""
    new_exo_noise: str = ""
    direct_parents: list[str] = []
    direct_children: list[str] = []


class Bundle(msgspec.Struct, frozen=True, omit_defaults=True):
    """One version of a program; v is its number of nodes."""

    v: int
    imports: list[str]
    exogenous: list[Definition]
    structural: list[Definition]
    driver: str
    graph: Graph
    topology: str = ""
    layer: dict[str, int] | None = None
    plan: GrowthPlan | None = None


def module_text(bundle: Bundle, *, comments: bool = True) -> str:
    """Return the module: imports, samplers, mechanisms, driver; with docstrings or without."""
    parts = ["\n".join(bundle.imports)]
    for definition in (*bundle.exogenous, *bundle.structural):
        lines = [f"def {definition.name}({', '.join(definition.args)}):"]
        if comments and definition.doc:
            lines.append(INDENT + _docstring(definition.doc))
        lines.append(textwrap.indent(definition.body.rstrip("\n"), INDENT))
        parts.append("\n".join(lines))
    parts.append(bundle.driver.rstrip("\n"))
    return "\n\n\n".join(parts) + "\n"


def _docstring(text: str) -> str:
    safe = " ".join(text.split()).replace("\\", "\\\\").replace('"', '\\"')
    return f'"""{safe}"""'


def load_source(source: str) -> Model:
    """Load the model of a module, read and interpreted but never executed; `Unsupported` in one line.

    A node's key is the suffix of its f_; its parents are in the order of the signature.
    """
    parsed = parse(source)
    work = StepBudget()
    used: set[str] = set()
    nodes = []
    for step in parsed.steps:
        noises = [source for source in step.sources if source.startswith("U_")]
        if len(noises) != 1:
            raise Unsupported(f"{step.mechanism} has {len(noises)} noise variables; each mechanism has one of its own")
        if noises[0] in used:
            raise Unsupported(f"{noises[0]} is given to two mechanisms")
        used.add(noises[0])
        nodes.append(_node(parsed, step.mechanism, step.sources, noises[0], work))
    idle = sorted(name for name in parsed.functions if name.startswith("U_") and name not in used)
    if idle:
        raise Unsupported(f"{idle[0]} is given to no mechanism")
    if not nodes:
        raise Unsupported("the module has no mechanism")
    try:
        model = Model(nodes, begin=work.renew)
        _ = model.system
    except Unsupported:
        raise
    except ModelError as error:
        raise Unsupported(str(error)) from None
    return model


def _node(parsed: Parsed, mechanism: str, sources: tuple[str, ...], noise: str, work: StepBudget) -> Node:
    parents = tuple(source[2:] for source in sources if source.startswith("f_"))
    support = noise_support(parsed.functions[noise], work)
    values = tuple(sorted(support))
    place = sources.index(noise)
    name = mechanism[2:]
    if not name:
        raise Unsupported("a mechanism without a name")
    weights = tuple(support[value] for value in values)
    function = parsed.functions[mechanism]
    return Node(name, noise, parents, values, weights, _mechanism(function, place), _tabulate(function, place, work))


def noise_support(sampler: Function, work: StepBudget | None = None) -> dict[Symbol, Fraction]:
    """Every value that a sampler returns with positive probability, and that probability."""
    work = work or StepBudget()
    support: dict[Symbol, Fraction] = {}
    for value, probability in outcomes(lambda choices: sampler.call((), choices, work), work.charge):
        noise_value = _symbol(sampler, value)
        work.charge_text(noise_value)
        if noise_value not in support and len(support) == MAX_SUPPORT:
            raise Unsupported(f"{sampler.name} returns more than {MAX_SUPPORT} different values")
        support[noise_value] = support.get(noise_value, Fraction(0)) + probability
        work.charge(price_of(support[noise_value]))
    return support


def _symbol(called: Function, value: Any) -> Symbol:
    try:
        return symbol(value)
    except ModelError as error:
        raise Unsupported(f"{called.name} returns what is no value: {error}") from None


def _mechanism(called: Function, place: int) -> Mechanism:
    def call(parents: tuple[Symbol, ...], noise: Symbol) -> Symbol:
        arguments = [value_of(parent) for parent in parents]
        arguments.insert(place, value_of(noise))
        return _symbol(called, called.call(arguments))

    return call


def _tabulate(called: Function, place: int, work: StepBudget) -> Tabulate:
    def tabulate_domains(domains: Sequence[tuple[Symbol, ...]]) -> tuple[NDArray[np.int32], tuple[Symbol, ...]]:
        for domain in domains:
            for value in domain:
                work.charge_text(value)
        *parents, noise = [[value_of(value) for value in domain] for domain in domains]
        codes, symbols = table(
            called, [*parents[:place], noise, *parents[place:]], lambda value: _symbol(called, value), work
        )
        return np.moveaxis(codes, place, -1), symbols

    return tabulate_domains


def load_bundle(bundle: Bundle) -> Model:
    """Load the model of a bundle.

    `ModelError` where its graph or its number of nodes says otherwise than its program.
    """
    model = load_source(module_text(bundle, comments=False))
    model_parents = {node.name: list(node.parents) for node in model.nodes}
    if bundle.graph.parents != model_parents:
        wrong = sorted(
            name
            for name in {*model_parents, *bundle.graph.parents}
            if model_parents.get(name) != bundle.graph.parents.get(name)
        )
        raise ModelError(f"graph.parents: {wrong[0]} has other parents in the program")
    if bundle.graph.exo != {node.name: node.noise for node in model.nodes}:
        raise ModelError("graph.exo: the noise of a node is another one in the program")
    if bundle.v != len(model):
        raise ModelError(f"v: {bundle.v}, but the program has {len(model)} nodes")
    return model
