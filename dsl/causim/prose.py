"""Models in sentences, one for each noise variable and one for each equation, and the way back.

Names and values stand as JSON, so that every text has one reading:

    The noise "U_A" is "x" with probability 1/4 or "y" with probability 3/4.
    The variable "B" follows from "A" and its noise "U_B": it is 1 if "A" is 3 or 4 and "U_B" is "y", and 2 otherwise.
"""

from __future__ import annotations

import json
import re
from fractions import Fraction
from itertools import product
from math import prod

from calibrant.dsl.causim.model import MAX_ROWS, Model, Node, table_node
from calibrant.dsl.causim.rules import Case, Rules, outcome, rules_of
from calibrant.dsl.causim.values import ModelError, Symbol, symbols
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
        f"it is {value} if {' or if '.join(_case(names, case) for case in cases)}" for value, cases in rules.branches
    ]
    last = f"and {rules.otherwise} otherwise" if parts else f"it is always {rules.otherwise}"
    return (
        f"The variable {json.dumps(node.name)} follows from {sources}its noise {json.dumps(node.noise)}: "
        f"{', '.join([*parts, last])}."
    )


def _case(names: list[str], case: Case) -> str:
    tests = [
        f"{json.dumps(name)} is {' or '.join(allowed)}"
        for name, allowed in zip(names, case, strict=True)
        if allowed is not None
    ]
    return " and ".join(tests)


# --- reading ---------------------------------------------------------------------------------------------------------


class _Reader:
    """One sentence; every method reads on from where the last one stopped."""

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
        match = re.compile(r"[0-9]{1,40}(/[1-9][0-9]{0,40})?").match(self.line, self.at)
        if match is None:
            raise ModelError(f"{short_repr(self.line[self.at :])} where a probability was expected")
        self.at = match.end()
        return Fraction(match.group())


def read_prose(text: str) -> Model:
    """Read the model that `prose` wrote; `ModelError` for any other text."""
    supports: dict[str, dict[Symbol, Fraction]] = {}
    domains: dict[str, tuple[Symbol, ...]] = {}
    nodes = []
    for line in filter(None, text.split("\n")):
        reader = _Reader(line)
        if reader.sees("The noise "):
            name, support = _read_noise(reader)
            supports[name] = support
        else:
            reader.expect("The variable ")
            node, domains_of_node = _read_equation(reader, supports, domains)
            nodes.append(node)
            domains[node.name] = domains_of_node
        if reader.at != len(line):
            raise ModelError(f"{short_repr(line[reader.at :])} after a sentence")
    return Model(nodes)


def _read_noise(reader: _Reader) -> tuple[str, dict[Symbol, Fraction]]:
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


def _read_equation(
    reader: _Reader, supports: dict[str, dict[Symbol, Fraction]], domains: dict[str, tuple[Symbol, ...]]
) -> tuple[Node, tuple[Symbol, ...]]:
    name = reader.name()
    reader.expect(" follows from ")
    parents = []
    while not reader.sees("its noise "):
        parents.append(reader.name())
        reader.expect(" and ")
    noise = reader.name()
    reader.expect(": ")
    unknown = [parent for parent in parents if parent not in domains]
    if unknown or noise not in supports:
        raise ModelError(f"{short_repr((unknown or [noise])[0])} is used before it is introduced")
    rules = _read_rules(reader, [*parents, noise])
    support = supports[noise]
    if prod(map(len, (support, *(domains[parent] for parent in parents)))) > MAX_ROWS:
        raise ModelError(f"the table of {short_repr(name)} has more than {MAX_ROWS} rows")
    rows = product(*(domains[parent] for parent in parents), sorted(support))
    table = {(row[:-1], row[-1]): outcome(rules, row) for row in rows}
    return table_node(name, noise, parents, support, table), tuple(sorted(set(table.values())))


def _read_rules(reader: _Reader, names: list[str]) -> Rules:
    if reader.sees("it is always "):
        rules = Rules((), reader.value())
    else:
        branches = []
        while not reader.sees("and "):
            reader.expect("it is ")
            value = reader.value()
            reader.expect(" if ")
            cases = [_read_case(reader, names)]
            while reader.sees(" or if "):
                cases.append(_read_case(reader, names))
            branches.append((value, tuple(cases)))
            reader.expect(", ")
        rules = Rules(tuple(branches), reader.value())
        reader.expect(" otherwise")
    reader.expect(".")
    return rules


def _read_case(reader: _Reader, names: list[str]) -> Case:
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
