"""Least formulas of truth tables with free rows, and the tables of qualitative comparative analysis.

Up to four columns every measure is complete (`solvers.formulas.fronts`). Sums of products and products of sums are
covered exactly up to `minimal_sums.MAX_VARS` columns. Nodes are complete with five and six columns as far as the
catalogue and its decompositions go; beyond, `wide_tables` has bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from operator import itemgetter

import numpy as np

from calibrant.dsl.formulas.formula import Apply, Formula, fold
from calibrant.dsl.formulas.table import PartialTable
from calibrant.solvers.formulas.fronts import MAX_CATALOGUE_COLUMNS, Patterns, certify_formulas, front
from calibrant.solvers.formulas.least_formulas import NUM_VARS, OPERATORS, Measure, Size, Tree, is_dual, tree_text
from calibrant.solvers.formulas.minimal_sums import least_sums
from calibrant.solvers.formulas.synthesis import least_formula
from calibrant.solvers.formulas.wide_tables import build_formulas, find_needed_columns, find_wide_formula
from calibrant.solvers.outcome import Budget, Found, OutOfBudget

MAX_STATES = 2_000_000_000  # functions that decompositions compare: 2 s
FREE = "?"


@dataclass(frozen=True)
class LeastForms:
    """Least formulas that agree with a table, by one measure.

    size: of the best formulas, None without one; at_least: proven bound of the size, equal to it if proven
    num_formulas, num_functions: how many have that size, None if not counted
    formulas: in code point order of their prefix texts, each with its tree over the columns
    """

    measure: Measure
    size: Size | None
    at_least: Size
    num_formulas: int | None
    num_functions: int | None
    formulas: tuple[tuple[str, Tree], ...]

    @property
    def is_proven(self) -> bool:
        return self.size == self.at_least


def least_forms(patterns: Patterns, measure: Measure, names: Sequence[str], ties: int) -> LeastForms:
    """Return the least formulas that agree with all rows, over any of the columns; the reference certifies each.

    patterns: without gaps and contradictions; `ValueError` for sums of more columns than are covered
    """
    forms = _least_forms(patterns, measure, names, ties)
    if forms.size is not None:
        certify_formulas(forms.formulas, patterns, measure, "sure", 0, forms.size)
    return forms


def _least_forms(patterns: Patterns, measure: Measure, names: Sequence[str], ties: int) -> LeastForms:
    if patterns.num_columns <= NUM_VARS:
        point = front(patterns, measure, NUM_VARS, names, max_errors=0, ties=ties).points[-1]
        formulas = tuple(point.formulas(ties))
        return LeastForms(measure, point.size, point.size, point.num_formulas, len(point.functions), formulas)
    if measure in ("sop", "pos"):
        return _least_sums(patterns, measure, names, ties)
    inside = _columns(patterns)
    if patterns.num_columns > MAX_CATALOGUE_COLUMNS:
        needed = find_needed_columns(patterns)
        if measure == "all":
            wide = find_wide_formula(patterns, needed, inside, patterns.num_columns)
            return _of_formula(measure, wide.formula, wide.at_least, names)
        return _bounded(patterns, measure, needed.at_least + 1, names)
    points = front(patterns, measure, MAX_CATALOGUE_COLUMNS, names, max_errors=0, ties=ties)
    if points.points and (points.max_size is None or _nodes(points.points[0].size) <= points.max_size):
        point = points.points[-1]
        formulas = tuple(point.formulas(ties))
        return LeastForms(measure, point.size, point.size, point.num_formulas, len(point.functions), formulas)
    ones, zeros = rows_by_value(patterns)
    table = PartialTable(patterns.num_columns, ones | zeros, ones)
    outcome = least_formula(table, inside, operators=OPERATORS[measure], budget=Budget(MAX_STATES))
    if isinstance(outcome, Found):
        return _of_formula(measure, outcome.value, outcome.value.size, names)
    at_least = outcome.lower_bound if isinstance(outcome, OutOfBudget) else None
    return _bounded(patterns, measure, at_least or 1, names)


def _bounded(patterns: Patterns, measure: Measure, at_least: int, names: Sequence[str]) -> LeastForms:
    """Return the smaller of a least sum of products and a least product of sums, with a proven bound."""
    formulas = build_formulas(patterns, range(patterns.num_columns), _columns(patterns))
    expressible = [f for f in formulas if set(f.operator_counts) <= set(OPERATORS[measure])]
    best = min(expressible, key=lambda f: (f.size, str(f)), default=None)
    return _of_formula(measure, best, at_least, names)


def _nodes(size: Size) -> int:
    return size if isinstance(size, int) else size[0]


def _columns(patterns: Patterns) -> list[str]:
    return [f"c{k}" for k in range(patterns.num_columns)]


def rows_by_value(patterns: Patterns) -> tuple[int, int]:
    """Return the rows that are 1 and those that are 0, bit r is row r; bit i of r is column i."""
    rows = patterns.codes.astype(np.int64) @ (1 << np.arange(patterns.num_columns, dtype=np.int64))
    ones, zeros = (np.unique(rows[counts > 0]).tolist() for counts in (patterns.ones, patterns.zeros))
    return sum(1 << row for row in ones), sum(1 << row for row in zeros)


def _of_formula(measure: Measure, formula: Formula | None, at_least: int, names: Sequence[str]) -> LeastForms:
    """Return one formula over `_columns`, its ties not counted."""
    if formula is None:
        return LeastForms(measure, None, at_least, None, None, ())
    tree = _tree(formula)
    return LeastForms(measure, formula.size, at_least, None, None, ((tree_text(tree, names), tree),))


def _tree(formula: Formula) -> Tree:
    """Return a formula over `_columns` as a tree."""

    def atom(node: str | bool) -> Tree:
        return int(node[1:]) if isinstance(node, str) else str(int(node))

    def join(node: Apply, parts: Sequence[Tree]) -> Tree:
        return (node.operator, *parts)

    return fold(formula, atom, join)


def _least_sums(patterns: Patterns, measure: Measure, names: Sequence[str], ties: int) -> LeastForms:
    ones, zeros = rows_by_value(patterns)
    dual = is_dual(measure)
    sums = least_sums(patterns.num_columns, zeros if dual else ones, ones if dual else zeros)
    trees = sums.trees(is_dual=dual)
    formulas = sorted(((tree_text(tree, names), tree) for tree, _ in trees), key=itemgetter(0))
    number = len(trees) if sums.is_complete else None
    functions = len({word for _, word in trees}) if sums.is_complete else None
    at_least = sums.size if sums.is_proven else (sums.at_least, sums.at_least)
    return LeastForms(measure, sums.size, at_least, number, functions, tuple(formulas[:ties]))


# --- Qualitative comparative analysis ---------------------------------------------------------------------------------


def code_patterns(patterns: Patterns, consistency: Fraction, cases: int) -> str:
    """Return the code of every row of the truth table: 1, 0, or `?` for a remainder of fewer rows than `cases`.

    A row is 1 if its share of ones is at least `consistency`; character r is row r, bit i of r is column i
    """
    rows = patterns.codes.astype(np.int64) @ (1 << np.arange(patterns.num_columns, dtype=np.int64))
    num_rows = 1 << patterns.num_columns
    zeros = np.bincount(rows, patterns.zeros, minlength=num_rows).astype(np.int64).tolist()
    ones = np.bincount(rows, patterns.ones, minlength=num_rows).astype(np.int64).tolist()
    return "".join(
        FREE if low + high < cases else str(int(high >= consistency * (low + high)))
        for low, high in zip(zeros, ones, strict=True)
    )


def patterns_of_codes(codes: str, *, is_free_zero: bool = False) -> Patterns:
    """Return a truth table as patterns; free rows are left out, or 0."""
    number = len(codes).bit_length() - 1
    text = codes.replace(FREE, "0") if is_free_zero else codes
    rows = np.array([row for row, code in enumerate(text) if code != FREE], np.int64)
    values = np.array([int(text[row]) for row in rows], np.int64)
    bits = (rows[:, None] >> np.arange(number) & 1).astype(np.int16)
    return Patterns(bits, 1 - values, values)
