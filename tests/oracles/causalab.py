"""Scores of the published code beside the benchmark's own: of its visualiser, and of root formulas."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import add, mul, sub, truediv
from typing import Any

from calibrant.dsl.causalab.configs import Transition
from calibrant.dsl.causalab.item import Traced
from calibrant.dsl.causalab.mechanism import FREQUENCY, Mechanism, Values
from calibrant.dsl.causalab.score import DISPLAY_TOLERANCE, _float, roots
from calibrant.dsl.graph_metrics import EdgeScores, edge_scores, f1

_VISUALISED_FREQUENCY = frozenset(
    {"freq", "frequency", "resonancefreq", "resonance_freq", "resonancefrequency", "resonance_frequency"}
)


@dataclass(frozen=True, slots=True)
class VisualiserScore:
    """The second set of metrics in the released code. None where that code fails on the hypothesis."""

    edge: EdgeScores | None
    weight: EdgeScores | None


def visualiser_score(truth: Mechanism, raw: Mapping[str, Any]) -> VisualiserScore:
    """Scores of a decoded hypothesis as the released visualiser computes them.

    Edges are objects with two texts; a missing key counts as an empty name, which is one more wrong edge. An empty
    prediction scores 0. Weights are the coefficients c_p of parents p with a linear weight, right within 0.01;
    precision is over those that were given. Quadratic mechanisms have none.
    """
    edges, coefficients = raw.get("edges") or [], raw.get("coefficients") or {}
    return VisualiserScore(_visualised_edges(truth, edges), _visualised_weights(truth, coefficients))


def _visualised_edges(truth: Mechanism, raw: object) -> EdgeScores | None:
    if not isinstance(raw, list):
        return None
    predicted = set()
    for entry in raw:
        ends = (entry.get("from", ""), entry.get("to", "")) if isinstance(entry, Mapping) else ()
        if not ends or not all(isinstance(name, str) for name in ends):
            return None
        predicted.add(tuple(map(_visualised_name, ends)))
    hits = len(predicted & truth.edges)
    return _ratios(hits, len(predicted), len(truth.edges))


def _visualised_name(name: str) -> str:
    """Return the name without blanks around it.

    One of six spellings in any case is the frequency, otherwise case matters.
    """
    text = name.strip()
    return FREQUENCY if text.lower() in _VISUALISED_FREQUENCY else text


def _visualised_weights(truth: Mechanism, coefficients: object) -> EdgeScores | None:
    if truth.weights(FREQUENCY, 2):
        return _ratios(0, 0, 0)
    true = truth.weights(FREQUENCY)
    stated_weights = coefficients if isinstance(coefficients, Mapping) else {}
    by_parent = {p: stated_weights[f"c_{p}"] for p in true if stated_weights.get(f"c_{p}") is not None}
    if any(not isinstance(weight, int | float) for weight in by_parent.values()):
        return None
    hits = sum(abs(_float(weight) - true[p]) <= DISPLAY_TOLERANCE for p, weight in by_parent.items())
    return _ratios(hits, len(by_parent), len(true))


def _ratios(hits: int, predicted: int, true: int) -> EdgeScores:
    precision, recall = hits / predicted if predicted else 0.0, hits / true if true else 0.0
    return EdgeScores(precision, recall, f1(precision, recall))


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
            number: Any = _float_formula(value)
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


def _float_formula(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        raise _FormulaError("an integer beyond the range of floats") from None


def transitions_of(trace: Sequence[Traced], *, listed_order: bool) -> list[Transition]:
    """Return the settings of a static trace.

    listed_order: each from the entry before it, as the released helper replays them; otherwise the first setting starts
        from entry 0, as the values show
    """
    transitions = []
    previous: Traced | None = None
    for i, entry in enumerate(trace):
        start = trace[i - 1] if listed_order or previous is not None else trace[0]
        if entry.property is not None and entry.value is not None and i:
            transitions.append(Transition(start.values, entry.values, entry.property, entry.value))
            previous = entry
    return transitions
