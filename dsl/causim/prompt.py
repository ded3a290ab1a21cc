"""The prompt of a question, with its model as a program or in prose, and the parser of each style of prose.

Names and values are written as JSON, so that every text can be parsed uniquely:

    The noise "U_A" is "x" with probability 1/4 or "y" with probability 3/4.
    The variable "B" follows from "A" and its noise "U_B": it is 1 if "A" is 3 or 4 and "U_B" is "y", and 2 otherwise.

    Noise "U_A": draw a uniform number from 0 to 1; below 0.3 it is "x", else below 0.7 it is "y", otherwise it is "z".
    Variable "B" has the inputs "A" and "U_B": if "A" is 3 or 4 and "U_B" is "y", it is 1; otherwise it is 2.

A bound is a decimal number where that is exact in at most six digits, else a fraction.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, product
from math import prod
from typing import Final, Literal, TypeAlias

from calibrant.dsl.causim.model import (
    MAX_ROWS,
    Case,
    Model,
    ModelError,
    Node,
    Rules,
    Symbol,
    assignment_text,
    compact,
    outcome,
    rules_of,
    symbols,
    table_node,
)
from calibrant.dsl.causim.question import Question, Scenario
from calibrant.dsl.errors import short_repr

# --- Parts of both styles of prose: names and values as JSON, cases, equality of models -------------------------------
Supports: TypeAlias = dict[str, dict[Symbol, Fraction]]
"""Values of each noise variable with their probabilities."""

Domains: TypeAlias = dict[str, tuple[Symbol, ...]]
"""Values of each node."""


def case_text(names: list[str], case: Case) -> str:
    """Return the tests of a case."""
    tests = [
        f"{json.dumps(name)} is {' or '.join(allowed)}"
        for name, allowed in zip(names, case, strict=True)
        if allowed is not None
    ]
    return " and ".join(tests)


class SentenceReader:
    """A reader of one sentence; each method consumes text from the current position."""

    def __init__(self, line: str) -> None:
        self.line, self.at = line, 0

    def sees(self, words: str) -> bool:
        """Consume the words if they come next; return whether they did."""
        if self.line.startswith(words, self.at):
            self.at += len(words)
            return True
        return False

    def expect(self, words: str) -> None:
        if not self.sees(words):
            raise ModelError(f"{short_repr(self.line[self.at :])} where {words!r} was expected")

    def value(self) -> Symbol:
        try:
            decoded, self.at = json.JSONDecoder().raw_decode(self.line, self.at)
        except (ValueError, RecursionError):
            raise ModelError(f"{short_repr(self.line[self.at :])} where a JSON value was expected") from None
        return symbols({"value": decoded})["value"]

    def name(self) -> str:
        text = json.loads(self.value())
        if not isinstance(text, str):
            raise ModelError(f"{short_repr(text)} where a name was expected")
        return text

    def fraction(self) -> Fraction:
        match = re.compile(r"[0-9]{1,40}(/[1-9][0-9]{0,40}|\.[0-9]{1,40})?").match(self.line, self.at)
        if match is None:
            raise ModelError(f"{short_repr(self.line[self.at :])} where a probability was expected")
        self.at = match.end()
        return Fraction(match.group())


@dataclass(frozen=True)
class ProseForm:
    """Wording of the lines of one style of prose.

    noise, variable: first words of a line about noise, about a variable; line: name of a line in messages
    read_noise, read_equation: parse the rest of a line about a noise variable, about a node
    """

    noise: str
    variable: str
    line: str
    read_noise: Callable[[SentenceReader], tuple[str, dict[Symbol, Fraction]]]
    read_equation: Callable[[SentenceReader, Supports, Domains], tuple[Node, tuple[Symbol, ...]]]


def read_model(text: str, style: ProseForm) -> Model:
    """Parse a text with a line for each noise variable and node; `ModelError` if a line is not in the style."""
    supports: Supports = {}
    domains: Domains = {}
    nodes = []
    for line in filter(None, text.split("\n")):
        reader = SentenceReader(line)
        if reader.sees(style.noise):
            name, support = style.read_noise(reader)
            supports[name] = support
        else:
            reader.expect(style.variable)
            node, domain = style.read_equation(reader, supports, domains)
            nodes.append(node)
            domains[node.name] = domain
        if reader.at != len(line):
            raise ModelError(f"{short_repr(line[reader.at :])} after a {style.line}")
    return Model(nodes)


def read_case(reader: SentenceReader, names: list[str]) -> Case:
    """Parse a case that `case_text` wrote."""
    case: list[tuple[Symbol, ...] | None] = [None] * len(names)
    while True:
        name = reader.name()
        if name not in names:
            raise ModelError(f"{short_repr(name)} is not among the causes of its equation")
        reader.expect(" is ")
        allowed = [reader.value()]
        while not reader.line.startswith(" or if ", reader.at) and reader.sees(" or "):
            allowed.append(reader.value())
        case[names.index(name)] = tuple(allowed)
        if not reader.sees(" and "):
            return tuple(case)


def equation_node(
    name: str,
    parents: Sequence[str],
    noise: str,
    rules: Rules,
    supports: Mapping[str, Mapping[Symbol, Fraction]],
    domains: Mapping[str, tuple[Symbol, ...]],
) -> tuple[Node, tuple[Symbol, ...]]:
    """Return the node of an equation, and its domain; `ModelError` for a name whose line comes later."""
    check_introduced(parents, noise, supports, domains)
    support = supports[noise]
    if prod(map(len, (support, *(domains[parent] for parent in parents)))) > MAX_ROWS:
        raise ModelError(f"the table of {short_repr(name)} has more than {MAX_ROWS} rows")
    rows = product(*(domains[parent] for parent in parents), sorted(support))
    table = {(row[:-1], row[-1]): outcome(rules, row) for row in rows}
    return table_node(name, noise, parents, support, table), tuple(sorted(set(table.values())))


def check_introduced(
    parents: Sequence[str],
    noise: str,
    supports: Mapping[str, Mapping[Symbol, Fraction]],
    domains: Mapping[str, tuple[Symbol, ...]],
) -> None:
    """Raise `ModelError` for a parent or noise without an earlier line."""
    unknown = [parent for parent in parents if parent not in domains]
    if unknown or noise not in supports:
        raise ModelError(f"{short_repr((unknown or [noise])[0])} is used before it is introduced")


def same_model(first: Model, second: Model) -> bool:
    """Return whether two models have the same nodes in the same order, with equal noise and equal tables."""
    if len(first) != len(second):
        return False
    return all(
        (a.name, a.noise, a.parents, a.support, a.weights) == (b.name, b.noise, b.parents, b.support, b.weights)
        and x.domain == y.domain
        and bool((x.table == y.table).all())
        for a, b, x, y in zip(first.nodes, second.nodes, first.system, second.system, strict=True)
    )


# --- Style `sentences`: a sentence for each noise variable and each equation ------------------------------------------


def prose(model: Model) -> str:
    """Return the sentences of a model, one in each line: noise, then equations in topological order."""
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
    """Parse a model that `prose` wrote; `ModelError` for any other text."""
    return read_model(text, ProseForm("The noise ", "The variable ", "sentence", _read_noise, _read_equation))


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


# --- Style `rules`: a uniform number for each noise variable, then if, else if, otherwise
_DRAW: Final = ": draw a uniform number from 0 to 1; "
_DIGITS: Final = 6


def uniform_prose(model: Model) -> str:
    """Return the rules of a model, one in each line: noise, then equations in topological order."""
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
    """Parse a model that `uniform_prose` wrote; `ModelError` for any other text."""
    return read_model(text, ProseForm("Noise ", "Variable ", "rule", _read_uniform_noise, _read_uniform_equation))


def _read_uniform_noise(reader: SentenceReader) -> tuple[str, dict[Symbol, Fraction]]:
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


def _read_uniform_equation(
    reader: SentenceReader, supports: Supports, domains: Domains
) -> tuple[Node, tuple[Symbol, ...]]:
    name = reader.name()
    reader.expect(" has the inputs ")
    inputs = [reader.name()]
    while reader.sees(" and "):
        inputs.append(reader.name())
    *parents, noise = inputs
    reader.expect(": ")
    check_introduced(parents, noise, supports, domains)
    rules = _read_uniform_rules(reader, inputs)
    return equation_node(name, parents, noise, rules, supports, domains)


def _read_uniform_rules(reader: SentenceReader, names: list[str]) -> Rules:
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


# --- The prompt of a question: model, rules, givens, task -------------------------------------------------------------
View: TypeAlias = Literal["code", "prose"]
ProseStyle: TypeAlias = Literal["sentences", "rules"]

_RULES: Final = """\
How the system works:
- Each noise variable (its name starts with U_) is drawn once for a world, on its own, and keeps that value.
- Each variable is then computed by its equation, from its parents and its noise.
- Setting a variable by do(...) replaces its equation by the given value; everything else stays as it is.
- Noise is never drawn again: the same world has the same noise before and after do(...).
- Noise that is not given may be any value that its sampler can produce."""

_SCENARIOS: Final[dict[Scenario, str]] = {
    "deterministic": "Exactly one answer is right.",
    "stochastic": "Several answers are right; give any one of them.",
    "impossible": "Any answer that agrees with what is given is right.",
}


def prompt(
    model: Model,
    question: Question,
    scenario: Scenario,
    *,
    source: str,
    view: View = "code",
    style: ProseStyle = "sentences",
) -> str:
    """Return the prompt of a question; source: the program without comments, which view `prose` does not show."""
    keys = list(question.required_keys(model))
    parts = [
        *facts(model, question, scenario, source=source, view=view, style=style),
        f'Required keys: {compact(keys)}. Values keep their JSON type: true, 1, 1.0 and "1" are different.\n'
        "You may reason first. The last thing in your reply is one JSON object with exactly these keys.",
    ]
    return "\n\n".join(parts) + "\n"


def facts(
    model: Model,
    question: Question,
    scenario: Scenario,
    *,
    source: str,
    view: View = "code",
    style: ProseStyle = "sentences",
) -> tuple[str, ...]:
    """Return the paragraphs of a question before the format of replies: model, rules, type, givens, task."""
    if view == "code":
        shown_model = f"```python\n{source.rstrip()}\n```"
    else:
        shown_model = (prose(model) if style == "sentences" else uniform_prose(model)).rstrip()
    givens = [
        ("Given noise", assignment_text(question.fixed)),
        ("Unknown noise", compact(list(question.unknown))),
    ]
    if question.form.has_do:
        givens.append(("Intervention do", assignment_text(question.do)))
    if question.form.has_evidence:
        givens.append(("Observed before any intervention", assignment_text(question.observed)))
    task = question.form.task
    if question.with_noise:
        task += " Give the unknown noise of that world too."
    return (
        "A system of variables is described below.",
        shown_model,
        _RULES,
        f"Question type: {question.type}. {_SCENARIOS[scenario]}",
        "\n".join(f"{name}: {text}" for name, text in givens),
        task,
    )
