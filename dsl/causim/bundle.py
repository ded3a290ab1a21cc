"""Programs of state files: read as models without being run, and written from canonical models."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from math import lcm, prod
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from calibrant.dsl.causim.language.driver import Parsed, parse
from calibrant.dsl.causim.language.execution_limits import MAX_SUPPORT, StepBudget
from calibrant.dsl.causim.language.randomness import Unsupported, outcomes, price_of
from calibrant.dsl.causim.language.statements import Function
from calibrant.dsl.causim.language.tables import table
from calibrant.dsl.causim.model import (
    Case,
    Mechanism,
    Model,
    ModelError,
    Node,
    Symbol,
    Tabulate,
    rules_of,
    symbol,
    value_of,
)

# --- Bundles of state files, their module text, and the model that is read from it ------------------------------------
INDENT: Final = "    "


class Definition(msgspec.Struct, frozen=True):
    """One function U_* or f_*; body: dedented source without docstring."""

    name: str
    args: list[str]
    body: str
    doc: str = ""


class Graph(msgspec.Struct, frozen=True):
    """parents: of each node, in the order of its signature; exo: name of the noise of each node."""

    parents: dict[str, list[str]]
    exo: dict[str, str]


class GrowthPlan(msgspec.Struct, frozen=True):
    """The planned growth step that added a node."""

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
    """Return the source of a module (imports, samplers, mechanisms, driver), with or without docstrings."""
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
    """Load the model of a module, which is interpreted but never executed; `Unsupported`, a line, if it cannot be.

    A node's name is that of its function without f_; its parents are in the order of the signature.
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
    noise_index = sources.index(noise)
    name = mechanism[2:]
    if not name:
        raise Unsupported("a mechanism without a name")
    weights = tuple(support[value] for value in values)
    function = parsed.functions[mechanism]
    return Node(
        name, noise, parents, values, weights, _mechanism(function, noise_index), _tabulate(function, noise_index, work)
    )


def noise_support(sampler: Function, work: StepBudget | None = None) -> dict[Symbol, Fraction]:
    """Return the values that a sampler returns with positive probability, and their probabilities."""
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


def _symbol(function: Function, value: Any) -> Symbol:
    try:
        return symbol(value)
    except ModelError as error:
        raise Unsupported(f"{function.name} returns what is no value: {error}") from None


def _mechanism(function: Function, noise_index: int) -> Mechanism:
    def call(parents: tuple[Symbol, ...], noise: Symbol) -> Symbol:
        arguments = [value_of(parent) for parent in parents]
        arguments.insert(noise_index, value_of(noise))
        return _symbol(function, function.call(arguments))

    return call


def _tabulate(function: Function, noise_index: int, work: StepBudget) -> Tabulate:
    def tabulate_domains(domains: Sequence[tuple[Symbol, ...]]) -> tuple[NDArray[np.int32], tuple[Symbol, ...]]:
        for domain in domains:
            for value in domain:
                work.charge_text(value)
        *parents, noise = [[value_of(value) for value in domain] for domain in domains]
        codes, symbols = table(
            function,
            [*parents[:noise_index], noise, *parents[noise_index:]],
            lambda value: _symbol(function, value),
            work,
        )
        return np.moveaxis(codes, noise_index, -1), symbols

    return tabulate_domains


def load_bundle(bundle: Bundle) -> Model:
    """Load the model of a bundle; `ModelError` if its graph or its number of nodes is not that of its program."""
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


# --- A canonical model as a program: noise by `random.choices` with integer weights, mechanisms as if-rules
IMPORTS = ["import random"]


def bundle_of(model: Model, topology: str = "") -> Bundle:
    """Return a program of the model, the inverse of `load_bundle`; `ModelError` if a name is no Python name."""
    bundle = assemble_bundle(model, [_mechanism_source(model, i) for i in range(len(model))], topology)
    for definition in (*bundle.exogenous, *bundle.structural):
        if not definition.name.isidentifier() or not definition.name.isascii():
            raise ModelError(f"{definition.name!a} is no name of a function")
    return bundle


def assemble_bundle(model: Model, mechanisms: list[Definition], topology: str = "") -> Bundle:
    """Return a program of the model with the given definitions of its mechanisms."""
    exogenous = [Definition(node.noise, [], sampler_body(node), f"Noise of {node.name}.") for node in model.nodes]
    return Bundle(len(model), IMPORTS, exogenous, mechanisms, driver_text(model), graph_record(model), topology)


def graph_record(model: Model) -> Graph:
    return Graph(
        {node.name: list(node.parents) for node in model.nodes}, {node.name: node.noise for node in model.nodes}
    )


def sampler_body(node: Node) -> str:
    """Return the body of a sampler with exactly the node's support and weights."""
    common = lcm(*(weight.denominator for weight in node.weights))
    weights = [int(weight * common) for weight in node.weights]
    values = [value_of(value) for value in node.support]
    if len(set(weights)) == 1:
        return f"return random.choice({values!r})"
    return f"return random.choices({values!r}, weights={weights!r})[0]"


def variable(name: str) -> str:
    """Return the driver's local variable for a node."""
    return f"v_{name}"


def driver_text(model: Model) -> str:
    """Return the source of `run_once`, which draws each node's noise right before it calls the mechanism."""
    lines = ["def run_once(seed=None):", "    if seed is not None:", "        random.seed(seed)"]
    for node in model.nodes:
        arguments = ", ".join([*map(variable, node.parents), f"u_{node.name}"])
        lines.append(f"    u_{node.name} = {node.noise}()")
        lines.append(f"    {variable(node.name)} = f_{node.name}({arguments})")
    outputs = ", ".join(f"{node.name!r}: {variable(node.name)}" for node in model.nodes)
    return "\n".join([*lines, f"    return {{{outputs}}}"])


def _mechanism_source(model: Model, i: int) -> Definition:
    node, rules = model.nodes[i], rules_of(model, i)
    arguments = [*map(variable, node.parents), f"u_{node.name}"]
    axes = [*(model.system[parent].domain for parent in model.system[i].parents), node.support]
    lines = []
    for value, cases in rules.branches:
        for case in cases:
            lines.append(f"if {case_test(arguments, axes, case)}:")
            lines.append(f"    return {value_of(value)!r}")
    lines.append(f"return {value_of(rules.otherwise)!r}")
    return Definition(f"f_{node.name}", arguments, "\n".join(lines), f"Mechanism of {node.name}.")


def case_test(arguments: Sequence[str], axes: Sequence[tuple[Symbol, ...]], case: Case) -> str:
    """Return the Python condition of a case."""
    tests = [
        value_test(argument, axis, allowed)
        for argument, axis, allowed in zip(arguments, axes, case, strict=True)
        if allowed is not None
    ]
    return " and ".join(tests) if tests else "True"


def value_test(argument: str, axis: Sequence[Symbol], allowed: Sequence[Symbol]) -> str:
    """Return the Python test whether an argument with values in `axis` has one of the allowed values.

    If two of the values are equal in Python, such as 1 and True, `str` of the list of the argument is compared instead.
    """
    values = [value_of(symbol) for symbol in axis]
    if len(set(values)) < len(values):
        argument = f"str([{argument}])"
        texts = [str([value_of(symbol)]) for symbol in allowed]
    else:
        texts = [value_of(symbol) for symbol in allowed]
    return f"{argument} == {texts[0]!r}" if len(texts) == 1 else f"{argument} in {tuple(texts)!r}"


# --- A canonical model as a program whose mechanisms are lookup tables ------------------------------------------------
MAX_CELLS = 400  # cells of one table; a longer literal is hardly readable for people or models


def table_bundle_of(model: Model, topology: str = "") -> Bundle | None:
    """Return a program of the model with a table for each mechanism; None if a table has more than MAX_CELLS."""
    definitions = (_lookup(model, i) for i in range(len(model)))
    mechanisms = [definition for definition in definitions if definition is not None]
    return assemble_bundle(model, mechanisms, topology) if len(mechanisms) == len(model) else None


def _lookup(model: Model, i: int) -> Definition | None:
    """Return a mechanism as a lookup table; its keys are texts if two values of a parent are equal in Python."""
    node, local = model.nodes[i], model.system[i]
    axes = [*(model.system[parent].domain for parent in local.parents), node.support]
    if prod(map(len, axes)) > MAX_CELLS:
        return None
    plain_axes = [[value_of(symbol) for symbol in axis] for axis in axes]
    is_distinct = all(len(set(values)) == len(values) for values in plain_axes)
    outcomes = (value_of(local.domain[int(code)]) for code in local.table.flat)
    cells = [
        f"{tuple(row) if is_distinct else str(list(row))!r}: {outcome!r}"
        for row, outcome in zip(product(*plain_axes), outcomes, strict=True)
    ]
    arguments = [*map(variable, node.parents), f"u_{node.name}"]
    joined = ", ".join(arguments)
    key = f"({joined}{',' if len(arguments) == 1 else ''})" if is_distinct else f"str([{joined}])"
    body = f"table = {{{', '.join(cells)}}}\nreturn table[{key}]"
    return Definition(f"f_{node.name}", arguments, body, f"Mechanism of {node.name}.")
