"""A frequency formula over root properties, as a text: parsed as Python arithmetic, computed by us, never evaluated."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import add, mul, sub, truediv
from typing import Any

from calibrant.dsl.causalab.mechanism import Mechanism, Values
from calibrant.dsl.causalab.score import roots
from calibrant.dsl.graph_metrics import EdgeScores, edge_scores

TOLERANCE = 5.0  # inclusive here, unlike the reactor's
MAX_CHARACTERS = 2_000
MAX_DEPTH = 200

_OPERATORS: Mapping[type[ast.operator], Callable[[float, float], Any]] = {
    ast.Add: add,
    ast.Sub: sub,
    ast.Mult: mul,
    ast.Div: truediv,
    ast.Pow: pow,
}


@dataclass(frozen=True, slots=True)
class FormulaScore:
    """Score of a formula.

    roots: named roots against the parentless ancestors of the frequency
    parsed: whether the text is Python; `symbols` are its names, sorted; `missing` are those without a value
    frequency: what it gives, infinity and NaN too as Python computes them; None if it cannot be computed. `error` then
        says why, unless names are missing
    hit: whether it is at most 5 away from the target
    """

    roots: EdgeScores
    parsed: bool
    uses_only_named_roots: bool
    symbols: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    frequency: float | None = None
    difference: float | None = None
    hit: bool | None = None
    error: str = ""


class _FormulaError(Exception):
    """The text cannot be computed."""


def formula_score(truth: Mechanism, named: object, text: object, readings: Values, target: float) -> FormulaScore:
    """Score of roots and of a formula over them.

    named: the list of roots as decoded; text: the formula, of which what follows the first `=` counts
    readings: the reactor crystal's values; target: its frequency
    """
    named_roots = frozenset(str(name).strip() for name in named if name) if isinstance(named, list) else frozenset()
    scores = edge_scores(roots(truth.edges), named_roots)
    formula = text if isinstance(text, str) else ""
    try:
        tree = _tree(formula.partition("=")[2] if "=" in formula else formula)
    except _FormulaError as error:
        return FormulaScore(scores, False, False, error=str(error))
    symbols = tuple(sorted({node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}))
    missing = tuple(name for name in symbols if name not in readings)
    only_named = named_roots.issuperset(symbols)
    if missing:
        return FormulaScore(scores, True, only_named, symbols, missing)
    try:
        prediction = _evaluate(tree, readings, 0)
    except _FormulaError as error:
        return FormulaScore(scores, True, only_named, symbols, error=str(error))
    difference = abs(prediction - target)
    return FormulaScore(scores, True, only_named, symbols, (), prediction, difference, difference <= TOLERANCE)


def _tree(text: str) -> ast.expr:
    if len(text) > MAX_CHARACTERS:
        raise _FormulaError(f"a formula of {len(text)} characters; at most {MAX_CHARACTERS} are read")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise _FormulaError(f"not an expression: {error}") from None


def _evaluate(node: ast.expr, readings: Values, depth: int) -> float:
    if depth > MAX_DEPTH:
        raise _FormulaError("nested too deeply")
    match node:
        case ast.Constant(value=int() | float() as value):  # truth values too: the released code adds True as 1.0
            number: Any = _float(value)
        case ast.Name(id=name):
            number = float(readings[name])
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            number = -_evaluate(operand, readings, depth + 1)
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            number = _evaluate(operand, readings, depth + 1)
        case ast.BinOp(left=left, op=operator, right=right) if type(operator) in _OPERATORS:
            first, second = _evaluate(left, readings, depth + 1), _evaluate(right, readings, depth + 1)
            try:
                number = _OPERATORS[type(operator)](first, second)
            except ArithmeticError as error:
                raise _FormulaError(f"cannot be computed: {error}") from None
        case _:
            raise _FormulaError(f"{type(node).__name__} is no part of a formula; + - * / ** are")
    if isinstance(number, complex):
        raise _FormulaError("not a real number")
    return float(number)


def _float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        raise _FormulaError("an integer beyond the range of floats") from None
