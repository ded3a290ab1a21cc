"""Shared vectors of published networks, and random small networks in every text format."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from calibrant.solvers.networks.network import BooleanNetwork, parse_network
from tests.support.shared import matching, shared_file, shared_records

Vector = dict[str, Any]
FILE = "vectors_networks_dev.jsonl"


@cache
def read_vectors() -> tuple[Vector, ...]:
    return tuple(shared_records(FILE, part="frontier"))


def vectors_of(kind: str) -> Iterator[Vector]:
    return matching(read_vectors(), kind=kind)


def content_of(vector: Mapping[str, Any]) -> bytes:
    """Return the bytes of the file of a vector."""
    text = vector.get("text")
    return text.encode() if text is not None else shared_file(vector["file"], part="frontier").read_bytes()


def network_of(vector: Mapping[str, Any]) -> BooleanNetwork:
    names = (vector.get("options") or {}).get("names", "id")
    return parse_network(content_of(vector), "file", vector["format"], names)


# --- Random networks, by a generator that shares nothing with the readers ---------------------------------------------
SPELLINGS = {
    "bnet": ("targets, factors\n", ", ", "!", "&", "|"),
    "booleannet": ("#BOOLEAN RULES\n", " *= ", "not ", "and", "or"),
    "rules": ("", " = ", "NOT ", "AND", "OR"),
    "aeon": ("", ": ", "!", "&", "|"),
}


class RandomFormula:
    """A formula as a nested tuple: a name, (`not`, part), or (`and` or `or`, part, part)."""

    def __init__(self, generator: random.Random, names: list[str], depth: int = 4) -> None:
        self.tree = self._draw(generator, names, depth)

    def _draw(self, generator: random.Random, names: list[str], depth: int) -> Any:
        if depth == 0 or generator.random() < 0.2:
            return generator.choice(names)
        operator = generator.choice(("not", "and", "or"))
        parts = [self._draw(generator, names, depth - 1) for _ in range(1 if operator == "not" else 2)]
        return (operator, *parts)

    def value(self, row: Mapping[str, int]) -> int:
        return _value(self.tree, row)

    def text(self, format_name: str, *, twisted: random.Random | None = None) -> str:
        """Return the formula in a format.

        twisted: swaps operands, doubles negations and applies De Morgan's laws at random
        """
        return _text(self.tree, SPELLINGS[format_name][2:], twisted)


def _value(tree: Any, row: Mapping[str, int]) -> int:
    if isinstance(tree, str):
        return row[tree]
    operator, *parts = tree
    values = [_value(part, row) for part in parts]
    return 1 - values[0] if operator == "not" else min(values) if operator == "and" else max(values)


def _text(tree: Any, spelling: tuple[str, ...], twisted: random.Random | None) -> str:
    negation, conjunction, disjunction = spelling
    if twisted is not None and twisted.random() < 0.2:
        return f"{negation}({negation}({_text(tree, spelling, twisted)}))"
    if isinstance(tree, str):
        return tree
    operator, *parts = tree
    if operator == "not":
        return f"{negation}({_text(parts[0], spelling, twisted)})"
    if twisted is not None and twisted.random() < 0.5:
        parts.reverse()
    texts = [_text(part, spelling, twisted) for part in parts]
    if twisted is not None and twisted.random() < 0.3:
        other = disjunction if operator == "and" else conjunction
        return f"{negation}({negation}({texts[0]}) {other} {negation}({texts[1]}))"
    return f"({texts[0]} {conjunction if operator == 'and' else disjunction} {texts[1]})"


def random_formulas(generator: random.Random, num_nodes: int) -> dict[str, RandomFormula]:
    """Return formulas of some of the nodes n0, n1, ...; at least one has none."""
    names = [f"n{i}" for i in range(num_nodes)]
    targets = generator.sample(names, generator.randint(1, max(1, num_nodes - 1)))
    return {name: RandomFormula(generator, names, generator.randint(1, 4)) for name in targets}


def text_of(formulas: Mapping[str, RandomFormula], format_name: str, twisted: random.Random | None = None) -> str:
    """Return formulas as a file; twisted: shuffles lines and rewrites formulas."""
    head, equals, *_ = SPELLINGS[format_name]
    start = "$" if format_name == "aeon" else ""
    lines = [f"{start}{name}{equals}{formula.text(format_name, twisted=twisted)}" for name, formula in formulas.items()]
    if format_name == "aeon":
        sources = {name: sorted(_names(formula.tree)) for name, formula in formulas.items()}
        lines += [f"{source} -?? {name}" for name, names in sources.items() for source in names]
    if twisted is not None:
        twisted.shuffle(lines)
    return head + "\n".join(lines) + "\n"


def _names(tree: Any) -> set[str]:
    return {tree} if isinstance(tree, str) else set().union(*(_names(part) for part in tree[1:]))


def named_in(formula: RandomFormula) -> set[str]:
    return _names(formula.tree)
