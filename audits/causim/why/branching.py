"""The line of a mechanism at which two calls part, from the path that each takes through its branches.

The mechanism is read a second time with statements that note the path (line and branch taken) in a list; it is run by
the same interpreter with the same limits. What it then returns is the value together with its path.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from calibrant.audits.causim.why.parts import Branch, CodeLine
from calibrant.dsl.causim.language.driver import parse, read_definitions
from calibrant.dsl.causim.language.randomness import Unsupported
from calibrant.dsl.causim.language.statements import Function, function
from calibrant.dsl.causim.model import ModelError, Node, Symbol, shown_value, symbol, value_of

PATH = "path_of_calibrant"  # name of the list in the instrumented mechanism
MAX_CALLS = 200  # noise values whose paths are noted


class _Step(NamedTuple):
    """A step of a path: line in the function, counted from 0; taken: which branch; -1 for a return."""

    line: int
    taken: int


class _Traced(NamedTuple):
    text: Symbol
    path: tuple[_Step, ...]


def find_branch(source: str, node: Node, parents: Mapping[str, Symbol], values: Sequence[Symbol]) -> Branch | None:
    """Return where calls with these values of the node's noise part; None where the program has no such line.

    parents: values of the node's parents, the same in all calls
    """
    try:
        parsed = parse(source)
        call = next(step for step in parsed.steps if parsed.returned.get(step.mechanism) == node.name)
        _, definition = read_definitions(source)[call.mechanism]
        traced = function(_instrumented(definition), random=False)
        names = {step.mechanism: parsed.returned.get(step.mechanism, "") for step in parsed.steps}
        paths = {
            value: _trace(traced, [parents[names[s]] if s in names else value for s in call.sources])
            for value in values[:MAX_CALLS]
        }
    except (Unsupported, ModelError, StopIteration, KeyError, RecursionError):
        return None
    first = next(iter(paths.values()))
    second = next((entry for entry in paths.values() if entry.text != first.text), None)
    if second is None:
        return None
    line = _parting_line(first.path, second.path)
    lines = ast.unparse(definition).split("\n")
    if line is None:
        return None
    ends: dict[int, list[str]] = {}
    for value, entry in paths.items():
        ends.setdefault(entry.path[-1].line if entry.path else 0, []).append(shown_value(value))
    code = tuple(CodeLine(text, tuple(ends.get(number, ())), number == line) for number, text in enumerate(lines))
    return Branch(node.name, node.noise, lines[line].strip().rstrip(":"), code)


def _trace(traced: Function, arguments: Sequence[Symbol]) -> _Traced:
    value, path = traced.call([value_of(argument) for argument in arguments])
    return _Traced(symbol(value), tuple(_Step(line, taken) for line, taken in path))


def _parting_line(first: Sequence[_Step], second: Sequence[_Step]) -> int | None:
    """Return the line of the first step that differs; of equal paths the last, whose expression differs."""
    for step, twin in zip(first, second, strict=False):
        if step != twin:
            return min(step.line, twin.line)
    longer = max(first, second, key=len)
    shorter = min(len(first), len(second))
    if len(longer) > shorter:
        return longer[shorter].line
    return longer[-1].line if longer else None


def _instrumented(definition: ast.FunctionDef) -> ast.FunctionDef:
    """Return the function with its path noted; lines are those of its unparsed text, counted from 0."""
    numbered = ast.parse(ast.unparse(definition)).body[0]
    assert isinstance(numbered, ast.FunctionDef)
    traced = copy.deepcopy(numbered)
    start = ast.parse(f"{PATH} = []").body
    traced.body = [*start, *_noted(traced.body), *ast.parse(f"return [None, {PATH}]").body]
    return ast.fix_missing_locations(traced)


def _noted(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    statements: list[ast.stmt] = []
    for statement in body:
        line = statement.lineno - 1
        if isinstance(statement, ast.If):
            statement.body = [_note(line, 1), *_noted(statement.body)]
            statement.orelse = [_note(line, 0), *_noted(statement.orelse)]
        elif isinstance(statement, ast.For | ast.While):
            statement.body = [_note(line, 1), *_noted(statement.body)]
        elif isinstance(statement, ast.Return):
            value: Any = statement.value or ast.Constant(None)
            path = ast.parse(f"{PATH} + [[{line}, -1]]", mode="eval").body
            statement.value = ast.List([value, path], ast.Load())
        statements.append(statement)
    return statements


def _note(line: int, taken: int) -> ast.stmt:
    return ast.parse(f"{PATH} = {PATH} + [[{line}, {taken}]]").body[0]
