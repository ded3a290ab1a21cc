"""Models in rules, the second style: a uniform number for each noise, then if, else if, otherwise; and the way back.

    Noise "U_A": draw a uniform number from 0 to 1; below 0.3 it is "x", else below 0.7 it is "y", otherwise it is "z".
    Variable "B" has the inputs "A" and "U_B": if "A" is 3 or 4 and "U_B" is "y", it is 1; otherwise it is 2.

A bound is a decimal number where that is exact in at most six digits, else a fraction.
"""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import accumulate
from typing import Final

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

_DRAW: Final = ": draw a uniform number from 0 to 1; "
_DIGITS: Final = 6


def uniform_prose(model: Model) -> str:
    """Return the rules, a line each: all noise first, then the equations in topological order."""
    return "\n".join([*map(_noise_rule, model.nodes), *(_equation_rule(model, i) for i in range(len(model)))]) + "\n"


def _noise_rule(node: Node) -> str:
    bounds = list(accumulate(node.weights))[:-1]
    parts = [f"below {_number(bound)} it is {value}" for bound, value in zip(bounds, node.support, strict=False)]
    last = f"otherwise it is {node.support[-1]}" if parts else f"it is always {node.support[0]}"
    return f"Noise {json.dumps(node.noise)}{_DRAW}{', else '.join(parts)}{', ' if parts else ''}{last}."


def _number(share: Fraction) -> str:
    scaled = share * 10**_DIGITS
    return str(share) if scaled.denominator > 1 else f"{int(scaled) / 10**_DIGITS:.{_DIGITS}f}".rstrip("0").rstrip(".")


def _equation_rule(model: Model, i: int) -> str:
    node, rules = model.nodes[i], rules_of(model, i)
    names = [*node.parents, node.noise]
    branches = [
        f"if {', or if '.join(case_text(names, case) for case in cases)}, it is {value}"
        for value, cases in rules.branches
    ]
    last = f"otherwise it is {rules.otherwise}" if branches else f"it is always {rules.otherwise}"
    inputs = " and ".join(map(json.dumps, names))
    rule = f"{'; else '.join(branches)}{'; ' if branches else ''}{last}"
    return f"Variable {json.dumps(node.name)} has the inputs {inputs}: {rule}."


def read_uniform_prose(text: str) -> Model:
    """Read the model that `uniform_prose` wrote; `ModelError` for any other text."""
    return read_model(text, ProseStyle("Noise ", "Variable ", "rule", _read_noise, _read_equation))


def _read_noise(reader: SentenceReader) -> tuple[str, dict[Symbol, Fraction]]:
    name = reader.name()
    reader.expect(_DRAW)
    support: dict[Symbol, Fraction] = {}
    lower = Fraction(0)
    if reader.sees("it is always "):
        value = reader.value()
    else:
        while not reader.sees("otherwise it is "):
            reader.expect("below ")
            bound = reader.fraction()
            reader.expect(" it is ")
            value = reader.value()
            if not lower < bound < 1 or value in support:
                raise ModelError(f"the bounds of {short_repr(name)} do not ascend from 0 to 1, or a value comes twice")
            support[value], lower = bound - lower, bound
            reader.expect(", ")
            reader.sees("else ")
        value = reader.value()
    if value in support:
        raise ModelError(f"a value of {short_repr(name)} comes twice")
    support[value] = 1 - lower
    reader.expect(".")
    return name, support


def _read_equation(reader: SentenceReader, supports: Supports, domains: Domains) -> tuple[Node, tuple[Symbol, ...]]:
    name = reader.name()
    reader.expect(" has the inputs ")
    inputs = [reader.name()]
    while reader.sees(" and "):
        inputs.append(reader.name())
    *parents, noise = inputs
    reader.expect(": ")
    check_introduced(parents, noise, supports, domains)
    rules = _read_rules(reader, inputs)
    return equation_node(name, parents, noise, rules, supports, domains)


def _read_rules(reader: SentenceReader, names: list[str]) -> Rules:
    branches = []
    if reader.sees("it is always "):
        value = reader.value()
    else:
        while not reader.sees("otherwise it is "):
            reader.expect("if ")
            cases = [read_case(reader, names)]
            while reader.sees(", or if "):
                cases.append(read_case(reader, names))
            reader.expect(", it is ")
            branches.append((reader.value(), tuple(cases)))
            reader.expect("; ")
            reader.sees("else ")
        value = reader.value()
    reader.expect(".")
    return Rules(tuple(branches), value)
