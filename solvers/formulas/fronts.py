"""Errors against size: for every number of errors the least size of a formula of one column by the others.

Rows are counts per pattern. Each set of at most `max_parents` columns is compared with every function of up to four
variables: the errors of a function are the sum of two look-ups in tables of 256, one for each half of its truth table.
Of five and six variables the functions that the catalogue lists are compared (11 and 9 nodes), and those alone that
depend on all. A row with gaps counts by the patterns that its completions have: it is surely wrong if none of them has
the target's value, possibly wrong if some has not.

A formula on the front is a least formula of its function: with fewer nodes and the same errors it would be off it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from math import comb
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from calibrant.dsl.formulas.table import full_mask, projection
from calibrant.solvers.formulas.least_formulas import (
    NUM_VARS,
    Measure,
    Size,
    formula_book,
    least_sizes,
    size_of_code,
    tree_text,
)

I16 = npt.NDArray[np.int16]
I64 = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]
BoolArray = npt.NDArray[np.bool_]

GAP = -1
MAX_SETS = 200_000  # sets of columns that are compared
MAX_WIDE = 6  # columns of a function beyond which nothing is listed
Counting: TypeAlias = Literal["sure", "possible"]
"""Errors of rows with gaps: those that no completion puts right, or those that some completion puts wrong."""


@dataclass(frozen=True, eq=False)
class Patterns:
    """Rows of a table by pattern, those in which the target is known and was not set.

    codes: [patterns, columns] 0, 1, or -1 for a gap; zeros, ones: [patterns] rows with target 0, 1
    """

    codes: I16
    zeros: I64
    ones: I64

    @property
    def num_columns(self) -> int:
        return int(self.codes.shape[1])

    def merge(self, chosen: Sequence[int]) -> tuple[I64, I64, I64]:
        """Return the cubes of some columns that occur, and their rows with target 0 and 1.

        A cube is a number with a digit 0, 1 or 2 (a gap) to the base 3 for each column, the first the least.
        """
        powers = 3 ** np.arange(len(chosen), dtype=np.int64)
        digits = np.where(self.codes[:, list(chosen)] == GAP, 2, self.codes[:, list(chosen)])
        keys = digits @ powers
        total = 3 ** len(chosen)
        zeros = np.bincount(keys, self.zeros, minlength=total).astype(np.int64)
        ones = np.bincount(keys, self.ones, minlength=total).astype(np.int64)
        occurring = np.flatnonzero(zeros + ones)
        return occurring, zeros[occurring], ones[occurring]


@dataclass(frozen=True)
class FrontFunction:
    """A function on the front. columns: that it depends on; bits: its truth table over these, the first the lowest bit.

    num_formulas: least formulas; listed: their texts in prefix form, in code point order, as many as were asked for
    """

    columns: tuple[int, ...]
    bits: int
    num_formulas: int
    listed: tuple[str, ...]

    def value(self, codes: npt.NDArray[np.int16]) -> npt.NDArray[np.int16]:
        """Return the function's values on rows without gaps; [rows]."""
        rows = np.zeros(len(codes), np.int64)
        for place, column in enumerate(self.columns):
            rows |= codes[:, column].astype(np.int64) << place
        table = np.array([self.bits >> r & 1 for r in range(1 << len(self.columns))], np.int16)
        return table[rows]


@dataclass(frozen=True)
class FrontPoint:
    """A point of the front: no formula of the class is as good in errors or size and better in the other."""

    errors: int
    size: Size
    functions: tuple[FrontFunction, ...]

    @property
    def num_formulas(self) -> int:
        return sum(function.num_formulas for function in self.functions)

    def listed(self, limit: int) -> list[str]:
        """Return the texts of its formulas in code point order."""
        return sorted(text for function in self.functions for text in function.listed)[:limit]


@dataclass(frozen=True, eq=False)
class FunctionList:
    """Functions over as many columns as a set has, in the order of size, then as integers.

    words: [f] over 2**num_columns rows; codes: [f] size codes; starts: [sizes] first function of each size
    """

    num_columns: int
    words: U64
    codes: I64
    starts: I64

    def count_errors(self, cubes: I64, zeros: I64, ones: I64, counting: Counting) -> I64:
        """Return the errors of each function; [f]."""
        num_rows = 1 << self.num_columns
        if_one, if_zero = np.zeros(num_rows, np.int64), np.zeros(num_rows, np.int64)
        errors = np.zeros(len(self.words), np.int64)
        for cube, low, high in zip(cubes.tolist(), zeros.tolist(), ones.tolist(), strict=True):
            rows = cube_rows(cube, self.num_columns)
            if rows & (rows - 1) == 0:
                row = rows.bit_length() - 1
                if_one[row] += low
                if_zero[row] += high
                continue
            inside = self.words & np.uint64(rows)
            all_ones, all_zeros = inside == np.uint64(rows), inside == 0
            if counting == "sure":
                errors += low * all_ones + high * all_zeros
            else:
                errors += low * ~all_zeros + high * ~all_ones
        for shift in range(0, num_rows, 8):
            part = slice(shift, min(shift + 8, num_rows))
            table = _byte_errors(if_one[part], if_zero[part])
            errors += table[(self.words >> np.uint64(shift) & np.uint64(255)).astype(np.int64)]
        return errors

    def least_errors(self, errors: I64) -> I64:
        """Return the least errors of each size; [sizes]."""
        return np.minimum.reduceat(errors, self.starts)


def _byte_errors(if_one: I64, if_zero: I64) -> I64:
    """Return the errors of the 2**rows functions of up to eight rows."""
    table = np.zeros(1, np.int64)
    for errors_of_one, errors_of_zero in zip(if_one, if_zero, strict=True):
        table = np.concatenate([table + errors_of_zero, table + errors_of_one])
    return table


@cache
def cube_rows(cube: int, num_columns: int) -> int:
    """Return the rows of a cube as bits of a truth table."""
    bits = full_mask(num_columns)
    for column in range(num_columns):
        cube, digit = divmod(cube, 3)
        values = projection(column, num_columns).bits
        bits &= (~values, values, -1)[digit]
    return bits & full_mask(num_columns)


@cache
def supports(num_vars: int) -> npt.NDArray[np.uint8]:
    """Return the variables on which each function of up to four depends, as a mask; [2**2**num_vars]."""
    words = np.arange(1 << (1 << num_vars), dtype=np.uint64)
    return _supports(words, num_vars)


def _supports(words: U64, num_vars: int) -> npt.NDArray[np.uint8]:
    masks = np.zeros(len(words), np.uint8)
    for variable in range(num_vars):
        low = np.uint64(full_mask(num_vars) & ~projection(variable, num_vars).bits)
        differs = ((words >> np.uint64(1 << variable)) ^ words) & low
        masks |= (differs != 0).astype(np.uint8) << np.uint8(variable)
    return masks


@cache
def functions_of(measure: Measure, num_columns: int) -> FunctionList:
    """Return the functions of a set of columns: all of up to four; of more those that depend on all and are listed."""
    if num_columns <= NUM_VARS:
        sizes = least_sizes(measure)
        inside = supports(NUM_VARS)[sizes.words.astype(np.int64)] >> num_columns == 0
        words, codes = sizes.words[inside] & np.uint64(full_mask(num_columns)), sizes.sizes[inside]
    else:
        sizes = least_sizes(measure, num_columns)
        inside = _supports(sizes.words, num_columns) == (1 << num_columns) - 1
        words, codes = sizes.words[inside], sizes.sizes[inside]
    order = np.lexsort((words, codes))
    words, codes = words[order], codes[order]
    return FunctionList(num_columns, words, codes, np.flatnonzero(np.append(True, codes[1:] != codes[:-1])))


def column_sets(num_columns: int, max_parents: int) -> Iterator[tuple[int, ...]]:
    """Yield the sets of columns to compare: of four at most, then of five and six where those are asked for."""
    yield from combinations(range(num_columns), min(num_columns, max_parents, NUM_VARS))
    for number in range(NUM_VARS + 1, min(num_columns, max_parents, MAX_WIDE) + 1):
        yield from combinations(range(num_columns), number)


def num_sets(num_columns: int, max_parents: int) -> int:
    """Return how many sets of columns are compared."""
    wide = range(NUM_VARS + 1, min(num_columns, max_parents, MAX_WIDE) + 1)
    return comb(num_columns, min(num_columns, max_parents, NUM_VARS)) + sum(comb(num_columns, k) for k in wide)


@dataclass(frozen=True)
class Front:
    """Points by rising size. max_size: sizes up to which every function of the class was compared, None for all."""

    points: tuple[FrontPoint, ...]
    max_size: int | None


def front(
    patterns: Patterns,
    measure: Measure,
    max_parents: int,
    names: Sequence[str],
    *,
    max_errors: int | None = None,
    counting: Counting = "sure",
    ties: int = 20,
) -> Front:
    """Return the front of errors and size over all formulas that depend on at most so many columns.

    names: of columns as they stand in texts; max_errors: points of more errors are left out
    """
    best: dict[int, int] = {}
    for chosen in column_sets(patterns.num_columns, max_parents):
        functions = functions_of(measure, len(chosen))
        errors = functions.least_errors(functions.count_errors(*patterns.merge(chosen), counting))
        for code, least in zip(functions.codes[functions.starts].tolist(), errors.tolist(), strict=True):
            if least < best.get(code, least + 1):
                best[code] = least
    wanted_errors = {code: least for code, least in pareto(best).items() if max_errors is None or least <= max_errors}
    matches: dict[int, dict[tuple[tuple[int, ...], int], FrontFunction]] = {code: {} for code in wanted_errors}
    for chosen in column_sets(patterns.num_columns, max_parents):
        functions = functions_of(measure, len(chosen))
        errors = functions.count_errors(*patterns.merge(chosen), counting)
        for code, least in wanted_errors.items():
            start = int(np.searchsorted(functions.codes, code, side="left"))
            end = int(np.searchsorted(functions.codes, code, side="right"))
            for place in start + np.flatnonzero(errors[start:end] == least):
                columns, bits = essential(int(functions.words[place]), chosen)
                if (columns, bits) not in matches[code]:
                    matches[code][columns, bits] = make_function(measure, columns, bits, names, ties)
    points = [
        FrontPoint(least, size_of_code(measure, code), tuple(matches[code][key] for key in sorted(matches[code])))
        for code, least in wanted_errors.items()
    ]
    widest = min(patterns.num_columns, max_parents)
    limits = [least_sizes(measure, k) for k in range(NUM_VARS + 1, widest + 1) if measure in ("all", "and-or-not")]
    incomplete = [int(sizes.sizes.max()) for sizes in limits if not sizes.is_complete]
    return Front(tuple(points), min(incomplete, default=None))


def pareto(best: dict[int, int]) -> dict[int, int]:
    """Return the size codes at which the errors fall, in rising order, with their errors."""
    chosen: dict[int, int] = {}
    least = None
    for code in sorted(best):
        if least is None or best[code] < least:
            chosen[code] = least = best[code]
    return chosen


def essential(word: int, columns: Sequence[int]) -> tuple[tuple[int, ...], int]:
    """Return the columns that a function depends on, and its truth table over these."""
    number = len(columns)
    mask = int(_supports(np.array([word], np.uint64), number)[0])
    places = [place for place in range(number) if mask >> place & 1]
    bits = 0
    for row in range(1 << len(places)):
        full_row = sum((row >> k & 1) << place for k, place in enumerate(places))
        bits |= (word >> full_row & 1) << row
    return tuple(columns[place] for place in places), bits


def make_function(
    measure: Measure, columns: tuple[int, ...], bits: int, names: Sequence[str], ties: int
) -> FrontFunction:
    """Return a function with its least formulas."""
    number = len(columns)
    num_vars = max(NUM_VARS, number)
    word = bits
    for width in range(number, num_vars):  # variables that it does not depend on
        word |= word << (1 << width)
    book = formula_book(measure, num_vars)
    own_names = [names[column] for column in columns]
    texts = sorted(tree_text(tree, own_names) for tree in book.trees(word))
    return FrontFunction(columns, bits, book.count(word), tuple(texts[:ties]))
