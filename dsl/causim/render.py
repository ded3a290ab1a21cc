"""A canonical model as a program: noise by `random.choices` with whole weights, mechanisms as rules on arguments."""

from __future__ import annotations

from collections.abc import Sequence
from math import lcm

from calibrant.dsl.causim.bundle import Bundle, Definition, Graph
from calibrant.dsl.causim.model import Model, Node
from calibrant.dsl.causim.rules import Case, rules_of
from calibrant.dsl.causim.values import ModelError, Symbol, value_of

IMPORTS = ["import random"]


def bundle_of(model: Model, topology: str = "") -> Bundle:
    """Return a program of the model; `load_bundle` gives the model back. `ModelError` if a name is no Python name."""
    bundle = assemble_bundle(model, [_mechanism(model, i) for i in range(len(model))], topology)
    for definition in (*bundle.exogenous, *bundle.structural):
        if not definition.name.isidentifier() or not definition.name.isascii():
            raise ModelError(f"{definition.name!a} is no name of a function")
    return bundle


def assemble_bundle(model: Model, mechanisms: list[Definition], topology: str = "") -> Bundle:
    """Return a program of the model with these mechanisms."""
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
    """Return the local variable that the driver keeps a node in."""
    return f"v_{name}"


def driver_text(model: Model) -> str:
    """`run_once`: each node's noise is drawn right before its mechanism is called."""
    lines = ["def run_once(seed=None):", "    if seed is not None:", "        random.seed(seed)"]
    for node in model.nodes:
        arguments = ", ".join([*map(variable, node.parents), f"u_{node.name}"])
        lines.append(f"    u_{node.name} = {node.noise}()")
        lines.append(f"    {variable(node.name)} = f_{node.name}({arguments})")
    outputs = ", ".join(f"{node.name!r}: {variable(node.name)}" for node in model.nodes)
    return "\n".join([*lines, f"    return {{{outputs}}}"])


def _mechanism(model: Model, i: int) -> Definition:
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
    """Return the condition of a case in the language."""
    tests = [
        value_test(argument, axis, allowed)
        for argument, axis, allowed in zip(arguments, axes, case, strict=True)
        if allowed is not None
    ]
    return " and ".join(tests) if tests else "True"


def value_test(argument: str, axis: Sequence[Symbol], allowed: Sequence[Symbol]) -> str:
    """Return the test that a variable with the values of `axis` has one of the allowed ones.

    Where Python takes two of the values for equal, such as 1 and True, their texts in a list are compared.
    """
    values = [value_of(symbol) for symbol in axis]
    if len(set(values)) < len(values):
        argument = f"str([{argument}])"
        texts = [str([value_of(symbol)]) for symbol in allowed]
    else:
        texts = [value_of(symbol) for symbol in allowed]
    return f"{argument} == {texts[0]!r}" if len(texts) == 1 else f"{argument} in {tuple(texts)!r}"
