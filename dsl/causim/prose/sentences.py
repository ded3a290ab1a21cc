"""Models in sentences, one for each noise variable and one for each equation, and the way back.

Names and values stand as JSON, so that every text has one reading:

    The noise "U_A" is "x" with probability 1/4 or "y" with probability 3/4.
    The variable "B" follows from "A" and its noise "U_B": it is 1 if "A" is 3 or 4 and "U_B" is "y", and 2 otherwise.
"""

from __future__ import annotations

import json
from fractions import Fraction

from calibrant.dsl.causim.model import Model, Node
from calibrant.dsl.causim.prose.reader import (
    Domains,
    ProseStyle,
    SentenceReader,
    Supports,
    case_text,
    check_introduced,
    equation_node,
    read_case,
    read_model,
)
from calibrant.dsl.causim.rules import Rules, rules_of
from calibrant.dsl.causim.values import ModelError, Symbol
from calibrant.dsl.errors import short_repr


def prose(model: Model) -> str:
    """Return the sentences, a line each: all noise first, then the equations in topological order."""
    noise = [_noise_sentence(node) for node in model.nodes]
    return "\n".join([*noise, *(_equation_sentence(model, i) for i in range(len(model)))]) + "\n"


def _noise_sentence(node: Node) -> str:
    shares = [f"{value} with probability {weight}" for value, weight in zip(node.support, node.weights, strict=True)]
    return f"The noise {json.dumps(node.noise)} is {' or '.join(shares)}."


def _equation_sentence(model: Model, i: int) -> str:
    node, rules = model.nodes[i], rules_of(model, i)
    sources = "".join(f"{json.dumps(parent)} and " for parent in node.parents)
    names = [*node.parents, node.noise]
    parts = [
        f"it is {value} if {' or if '.join(case_text(names, case) for case in cases)}"
        for value, cases in rules.branches
    ]
    last = f"and {rules.otherwise} otherwise" if parts else f"it is always {rules.otherwise}"
    return (
        f"The variable {json.dumps(node.name)} follows from {sources}its noise {json.dumps(node.noise)}: "
        f"{', '.join([*parts, last])}."
    )


def read_prose(text: str) -> Model:
    """Read the model that `prose` wrote; `ModelError` for any other text."""
    return read_model(text, ProseStyle("The noise ", "The variable ", "sentence", _read_noise, _read_equation))


def _read_noise(reader: SentenceReader) -> tuple[str, dict[Symbol, Fraction]]:
    name = reader.name()
    reader.expect(" is ")
    support = {}
    while True:
        value = reader.value()
        reader.expect(" with probability ")
        support[value] = reader.fraction()
        if not reader.sees(" or "):
            break
    reader.expect(".")
    if sum(support.values()) != 1:
        raise ModelError(f"the probabilities of {short_repr(name)} do not add up to one")
    return name, support


def _read_equation(reader: SentenceReader, supports: Supports, domains: Domains) -> tuple[Node, tuple[Symbol, ...]]:
    name = reader.name()
    reader.expect(" follows from ")
    parents = []
    while not reader.sees("its noise "):
        parents.append(reader.name())
        reader.expect(" and ")
    noise = reader.name()
    reader.expect(": ")
    check_introduced(parents, noise, supports, domains)
    rules = _read_rules(reader, [*parents, noise])
    return equation_node(name, parents, noise, rules, supports, domains)


def _read_rules(reader: SentenceReader, names: list[str]) -> Rules:
    if reader.sees("it is always "):
        rules = Rules((), reader.value())
    else:
        branches = []
        while not reader.sees("and "):
            reader.expect("it is ")
            value = reader.value()
            reader.expect(" if ")
            cases = [read_case(reader, names)]
            while reader.sees(" or if "):
                cases.append(read_case(reader, names))
            branches.append((value, tuple(cases)))
            reader.expect(", ")
        rules = Rules(tuple(branches), reader.value())
        reader.expect(" otherwise")
    reader.expect(".")
    return rules
