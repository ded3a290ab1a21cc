"""Parts that both styles of prose share: names and values as JSON, cases, models that are the same."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import prod
from typing import TypeAlias

from calibrant.dsl.causim.model import MAX_ROWS, Model, Node, table_node
from calibrant.dsl.causim.rules import Case, Rules, outcome
from calibrant.dsl.causim.values import ModelError, Symbol, symbols
from calibrant.dsl.errors import short_repr

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
        match = re.compile(r"[0-9]{1,40}(/[1-9][0-9]{0,40}|\.[0-9]{1,40})?").match(self.line, self.at)
        if match is None:
            raise ModelError(f"{short_repr(self.line[self.at :])} where a probability was expected")
        self.at = match.end()
        return Fraction(match.group())


@dataclass(frozen=True)
class ProseStyle:
    """Wording of the lines of one style of prose.

    noise, variable: words that a line about either begins with; line: what it calls a line
    read_noise: reads the rest of a line about a noise variable; read_equation: the rest of one about a node
    """

    noise: str
    variable: str
    line: str
    read_noise: Callable[[SentenceReader], tuple[str, dict[Symbol, Fraction]]]
    read_equation: Callable[[SentenceReader, Supports, Domains], tuple[Node, tuple[Symbol, ...]]]


def read_model(text: str, style: ProseStyle) -> Model:
    """Read the model of a text, a line a noise variable or node; `ModelError` where the style has no such line."""
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
    """Read what `case_text` wrote."""
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
    """Return the node of an equation with its domain; `ModelError` for a name before its own sentence."""
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
    """`ModelError` for a name that no earlier sentence is about."""
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
