"""Least formulas of truth tables with free rows, and the tables of qualitative comparative analysis.

Up to four columns every measure is complete (`solvers.formulas.fronts`). Sums of products and products of sums are
covered exactly up to `minimal_sums.MAX_VARS` columns. Least numbers of nodes over five and six columns are proven as
far as the catalogue and its decompositions go; for more columns `wide_tables` has bounds.
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
FREE = "?"  # code of a row whose value is free


@dataclass(frozen=True)
class LeastForms:
    """Least formulas that agree with a table, by one measure.

    size: size of the best formulas, None if there are none; at_least: proven lower bound, equal to the size if proven
    num_formulas, num_functions: numbers of formulas of that size and of their functions, None if not counted
    formulas: (prefix text, tree over the columns), in code point order of the texts
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

    patterns: rows without gaps and contradictions; ties: most formulas listed

    `ValueError` for sums of products of more than `minimal_sums.MAX_VARS` columns.
    """
    forms = _least_forms(patterns, measure, names, ties)
    if forms.size is not None:
        certify_formulas(forms.formulas, patterns, measure, "sure", 0, forms.size)
    return forms


def _least_forms(patterns: Patterns, measure: Measure, names: Sequence[str], ties: int) -> LeastForms:
    """Return the least forms, or bounds, by the first method that covers this number of columns and this measure."""
    if patterns.num_columns <= NUM_VARS:
        point = front(patterns, measure, NUM_VARS, names, max_errors=0, ties=ties).points[-1]
        formulas = tuple(point.formulas(ties))
        return LeastForms(measure, point.size, point.size, point.num_formulas, len(point.functions), formulas)
    if measure in ("sop", "pos"):
        return _least_sums(patterns, measure, names, ties)
    column_names = _column_names(patterns)
    if patterns.num_columns > MAX_CATALOGUE_COLUMNS:
        needed = find_needed_columns(patterns)
        if measure == "all":
            wide = find_wide_formula(patterns, needed, column_names, patterns.num_columns)
            return _forms_of(measure, wide.formula, wide.at_least, names)
        return _bound_by_sums(patterns, measure, needed.at_least + 1, names)
    points = front(patterns, measure, MAX_CATALOGUE_COLUMNS, names, max_errors=0, ties=ties)
    if points.points and (points.max_size is None or _num_nodes(points.points[0].size) <= points.max_size):
        point = points.points[-1]
        formulas = tuple(point.formulas(ties))
        return LeastForms(measure, point.size, point.size, point.num_formulas, len(point.functions), formulas)
    ones, zeros = rows_by_value(patterns)
    table = PartialTable(patterns.num_columns, ones | zeros, ones)
    outcome = least_formula(table, column_names, operators=OPERATORS[measure], budget=Budget(MAX_STATES))
    if isinstance(outcome, Found):
        return _forms_of(measure, outcome.value, outcome.value.size, names)
    at_least = outcome.lower_bound if isinstance(outcome, OutOfBudget) else None
    return _bound_by_sums(patterns, measure, at_least or 1, names)


def _bound_by_sums(patterns: Patterns, measure: Measure, at_least: int, names: Sequence[str]) -> LeastForms:
    """Return the smallest formula that `build_formulas` has for the measure, with a proven lower bound."""
    formulas = build_formulas(patterns, range(patterns.num_columns), _column_names(patterns))
    expressible = [f for f in formulas if set(f.operator_counts) <= set(OPERATORS[measure])]
    best = min(expressible, key=lambda f: (f.size, str(f)), default=None)
    return _forms_of(measure, best, at_least, names)


def _num_nodes(size: Size) -> int:
    return size if isinstance(size, int) else size[0]


def _column_names(patterns: Patterns) -> list[str]:
    """Return names that a formula may have whatever the table's names are; `_tree` reads the numbers again."""
    return [f"c{k}" for k in range(patterns.num_columns)]


def rows_by_value(patterns: Patterns) -> tuple[int, int]:
    """Return two masks, of the rows with a 1 and of those with a 0: bit r is row r, bit i of r is column i."""
    rows = patterns.codes.astype(np.int64) @ (1 << np.arange(patterns.num_columns, dtype=np.int64))
    ones, zeros = (np.unique(rows[counts > 0]).tolist() for counts in (patterns.ones, patterns.zeros))
    return sum(1 << row for row in ones), sum(1 << row for row in zeros)


def _forms_of(measure: Measure, formula: Formula | None, at_least: int, names: Sequence[str]) -> LeastForms:
    """Return the forms that consist of one formula over `_column_names`, ties not counted."""
    if formula is None:
        return LeastForms(measure, None, at_least, None, None, ())
    tree = _tree(formula)
    return LeastForms(measure, formula.size, at_least, None, None, ((tree_text(tree, names), tree),))


def _tree(formula: Formula) -> Tree:
    """Return a formula over `_column_names` as a tree."""

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
    num_formulas = len(trees) if sums.is_complete else None
    num_functions = len({word for _, word in trees}) if sums.is_complete else None
    at_least = sums.size if sums.is_proven else (sums.at_least, sums.at_least)
    return LeastForms(measure, sums.size, at_least, num_formulas, num_functions, tuple(formulas[:ties]))


# --- Qualitative comparative analysis ---------------------------------------------------------------------------------


def code_patterns(patterns: Patterns, consistency: Fraction, cases: int) -> str:
    """Return the code of every row of the truth table: 1, 0, or `?` for a remainder, a row of fewer than `cases` cases.

    A row is 1 if its share of ones is at least `consistency`. Character r is row r, bit i of r is column i.
    """
    rows = patterns.codes.astype(np.int64) @ (1 << np.arange(patterns.num_columns, dtype=np.int64))
    num_rows = 1 << patterns.num_columns
    zeros = np.bincount(rows, patterns.zeros, minlength=num_rows).astype(np.int64).tolist()
    ones = np.bincount(rows, patterns.ones, minlength=num_rows).astype(np.int64).tolist()
    return "".join(
        FREE if num_zeros + num_ones < cases else str(int(num_ones >= consistency * (num_zeros + num_ones)))
        for num_zeros, num_ones in zip(zeros, ones, strict=True)
    )


def patterns_of_codes(codes: str, *, is_free_zero: bool = False) -> Patterns:
    """Return a truth table as patterns; free rows are left out, or have value 0 if `is_free_zero`."""
    num_columns = len(codes).bit_length() - 1
    text = codes.replace(FREE, "0") if is_free_zero else codes
    rows = np.array([row for row, code in enumerate(text) if code != FREE], np.int64)
    values = np.array([int(text[row]) for row in rows], np.int64)
    bits = (rows[:, None] >> np.arange(num_columns) & 1).astype(np.int16)
    return Patterns(bits, 1 - values, values)
