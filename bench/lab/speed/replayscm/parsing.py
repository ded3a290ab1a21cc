"""Parsing of gold mechanisms: texts to formulas, with all checks and the legality of the variables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TypeAlias

from calibrant.bench.lab.speed.comparison import Comparison, Options, Rival, Row, by_setting, measure
from calibrant.bench.lab.speed.replayscm import candidates
from calibrant.bench.lab.speed.replayscm.candidates import gold_of
from calibrant.dsl.formulas.text import parse, render
from calibrant.dsl.replayscm.item import Problem

TOPIC = "parse"
Tree: TypeAlias = "str | list[Tree]"

_TOKEN = re.compile(r"[()]|[^\s()]+")


def rows(options: Options) -> Iterator[Row]:
    for setting, problems in by_setting(options.problems).items():
        yield from measure(_comparison(setting, problems), options.discipline)


def _comparison(setting: str, problems: list[Problem]) -> Comparison:
    work = [
        (render(mechanism), problem.task.grammar, frozenset(problem.task.variables) - {variable})
        for problem in problems
        for variable, mechanism in gold_of(problem).mechanisms.items()
    ]
    texts = [text for text, _, _ in work]
    rivals = [
        Rival("parse", lambda: [parse(*arguments) for arguments in work], len(work)),
        Rival("parse, any variable", lambda: [parse(text, grammar) for text, grammar, _ in work], len(work)),
        Rival("recursive descent, unchecked", lambda: [parse_nested(text) for text in texts], len(work)),
    ]
    counts = {"mechanisms": len(work), "mean characters": sum(map(len, texts)) / len(work)}
    return Comparison(TOPIC, setting, "mechanism", rivals, candidates.EXPRESSIONS, counts)


def parse_nested(text: str) -> Tree:
    """Rival: the textbook reader of s-expressions, by regular expression and recursion; it checks nothing."""
    tree, _ = _read_tokens(_TOKEN.findall(text), 0)
    return tree


def _read_tokens(tokens: list[str], index: int) -> tuple[Tree, int]:
    if tokens[index] != "(":
        return tokens[index], index + 1
    items: list[Tree] = []
    index += 1
    while tokens[index] != ")":
        item, index = _read_tokens(tokens, index)
        items.append(item)
    return items, index + 1
