"""Errors against size: for every number of errors the least size of a formula of one column by the others.

Rows are counts per pattern. Each set of at most `max_parents` columns is compared with every function of up to four
variables: the errors of a function are the sum of two look-ups in tables of 256, one for each half of its truth table.
For five (six) variables: the catalogue's functions of at most 11 (9) nodes that depend on all variables. A row with
gaps is surely wrong if the function has the target's value on no completion, possibly wrong if it fails on some.

Sums of products of more than four columns are searched by MaxSAT (`_sum_front`), up to ten columns in the table.

A formula on the front is a least formula of its function: a smaller formula with as many errors would dominate it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, reduce
from itertools import combinations
from math import comb
from operator import itemgetter, or_
from typing import Literal, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from calibrant.dsl.formulas.reference import evaluate
from calibrant.dsl.formulas.table import full_mask, projection
from calibrant.dsl.formulas.text import Grammar, parse
from calibrant.solvers.formulas._kernels_fronts import Functions, Scratch, SetRows, least_of_sets, match_sets, scan_sets
from calibrant.solvers.formulas.least_formulas import (
    NUM_VARS,
    Measure,
    Size,
    Tree,
    formula_book,
    is_dual,
    least_sizes,
    relabel_tree,
    size_of_code,
    sum_tree,
    tree_text,
)
from calibrant.solvers.formulas.minimal_sums import SumPoint, cube_word, front_of_sums

I16 = npt.NDArray[np.int16]
I64 = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]
BoolArray = npt.NDArray[np.bool_]

GAP = -1
_SIDES: tuple[Literal["left", "right"], ...] = ("left", "right")
MAX_SETS = 200_000  # sets of columns that are compared
MAX_CATALOGUE_COLUMNS = 6  # the catalogue has no functions of more columns
Rows: TypeAlias = tuple[I64, I64, I64]
"""Cubes of a set of columns that occur, and for each the number of rows with target 0 and 1; see `Patterns.merge`."""
Counting: TypeAlias = Literal["sure", "possible"]
"""Rows with gaps that count as errors: wrong under every completion ("sure"), or under some ("possible")."""


@dataclass(frozen=True, eq=False)
class Patterns:
    """Patterns of the rows in which the target is known and was not intervened on.

    codes: [patterns, columns] 0, 1, or -1 for a gap; zeros, ones: [patterns] number of rows with target 0, 1
    """

    codes: I16
    zeros: I64
    ones: I64

    @property
    def num_columns(self) -> int:
        return int(self.codes.shape[1])

    def merge(self, chosen: Sequence[int]) -> Rows:
        """Return the cubes of some columns that occur, and for each the number of rows with target 0 and 1.

        A cube is an integer in base 3: digit i is the value of column i of the set, 0, 1 or 2 (a gap).
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
    """Function on the front.

    columns: columns it depends on; bits: its truth table over these, the first column is the lowest bit of a row
    num_formulas: number of least formulas
    formulas: the first of them in code point order: text in prefix form, tree over the columns of the table
    """

    columns: tuple[int, ...]
    bits: int
    num_formulas: int
    formulas: tuple[tuple[str, Tree], ...]

    def value(self, codes: npt.NDArray[np.int16]) -> npt.NDArray[np.int16]:
        """Return the function's values on rows without gaps; [rows]."""
        rows = np.zeros(len(codes), np.int64)
        for index, column in enumerate(self.columns):
            rows |= codes[:, column].astype(np.int64) << index
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

    def formulas(self, limit: int) -> list[tuple[str, Tree]]:
        """Return its formulas, texts and trees, in code point order of the texts."""
        return sorted((pair for function in self.functions for pair in function.formulas), key=itemgetter(0))[:limit]


@dataclass(frozen=True, eq=False)
class FunctionList:
    """Functions over as many columns as a set has, in the order of size, then as integers.

    words: [f] truth tables of 2**num_columns rows; codes: [f] size codes, integers that order the sizes
    starts: [sizes] first function of each size
    """

    num_columns: int
    words: U64
    codes: I64
    starts: I64

    @cached_property
    def size_codes(self) -> list[int]:
        """The different size codes, in rising order."""
        return [int(code) for code in self.codes[self.starts]]

    def span(self, code: int) -> slice:
        """Return the functions of that size."""
        start, end = (int(np.searchsorted(self.codes, code, side=side)) for side in _SIDES)
        return slice(start, end)

    @cached_property
    def _bytes(self) -> list[I64]:
        """Truth tables by bytes: one array [f] for every eight rows."""
        shifts = range(0, 1 << self.num_columns, 8)
        return [(self.words >> np.uint64(shift) & np.uint64(255)).astype(np.int64) for shift in shifts]

    def count_errors(self, rows: Rows) -> I64:
        """Return the errors of each function on rows without gaps; [f]."""
        if_one, if_zero = np.zeros((2, 1 << self.num_columns), np.int64)
        for cube, num_zeros, num_ones in zip(*(counts.tolist() for counts in rows), strict=True):
            row_mask = cube_rows(cube, self.num_columns)
            assert row_mask & (row_mask - 1) == 0
            if_one[row_mask.bit_length() - 1] += num_zeros
            if_zero[row_mask.bit_length() - 1] += num_ones
        errors = np.zeros(len(self.words), np.int64)
        for index, values in enumerate(self._bytes):
            eight = slice(8 * index, 8 * index + 8)
            errors += _byte_errors(if_one[eight], if_zero[eight])[values]
        return errors

    @cached_property
    def arrays(self) -> Functions:
        """The functions as kernels take them."""
        starts = np.append(self.starts, len(self.words))
        return Functions(self.words, _support_masks(self.words, self.num_columns), starts, len(self._bytes))


def _byte_errors(if_one: I64, if_zero: I64) -> I64:
    """Return the errors of each of the 2**rows functions of up to eight rows."""
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
def all_supports(num_vars: int) -> npt.NDArray[np.uint8]:
    """Return the variables on which each function of up to four variables depends, as a mask; [2**2**num_vars]."""
    words = np.arange(1 << (1 << num_vars), dtype=np.uint64)
    return _support_masks(words, num_vars)


def _support_masks(words: U64, num_vars: int) -> npt.NDArray[np.uint8]:
    masks = np.zeros(len(words), np.uint8)
    for variable in range(num_vars):
        low = np.uint64(full_mask(num_vars) & ~projection(variable, num_vars).bits)
        differs = ((words >> np.uint64(1 << variable)) ^ words) & low
        masks |= (differs != 0).astype(np.uint8) << np.uint8(variable)
    return masks


@cache
def functions_of(measure: Measure, num_columns: int) -> FunctionList:
    """Return the functions of a set of columns: all up to four columns; above, the catalogue's that depend on all."""
    if num_columns <= NUM_VARS:
        sizes = least_sizes(measure)
        inside = all_supports(NUM_VARS)[sizes.words.astype(np.int64)] >> num_columns == 0
        words, codes = sizes.words[inside] & np.uint64(full_mask(num_columns)), sizes.sizes[inside]
    else:
        sizes = least_sizes(measure, num_columns)
        inside = _support_masks(sizes.words, num_columns) == (1 << num_columns) - 1
        words, codes = sizes.words[inside], sizes.sizes[inside]
    order = np.lexsort((words, codes))
    words, codes = words[order], codes[order]
    return FunctionList(num_columns, words, codes, np.flatnonzero(np.append(True, codes[1:] != codes[:-1])))


def column_sets(num_columns: int, max_parents: int) -> Iterator[tuple[int, ...]]:
    """Yield the sets of columns to compare: first of four (or fewer in all), then of five and six if allowed."""
    yield from combinations(range(num_columns), min(num_columns, max_parents, NUM_VARS))
    for size in range(NUM_VARS + 1, min(num_columns, max_parents, MAX_CATALOGUE_COLUMNS) + 1):
        yield from combinations(range(num_columns), size)


def num_sets(num_columns: int, max_parents: int) -> int:
    """Return how many sets of columns are compared."""
    wide = range(NUM_VARS + 1, min(num_columns, max_parents, MAX_CATALOGUE_COLUMNS) + 1)
    return comb(num_columns, min(num_columns, max_parents, NUM_VARS)) + sum(comb(num_columns, k) for k in wide)


@dataclass(frozen=True)
class Front:
    """Points by rising size.

    max_size: sizes up to which every function of the class was compared, None for all
    open_points: formulas with fewer errors whose size is not proven least, where a budget ended
    at_least: proven bound of the size of formulas with fewer errors than the points have, None if nothing is open
    """

    points: tuple[FrontPoint, ...]
    max_size: int | None
    open_points: tuple[FrontPoint, ...] = ()
    at_least: Size | None = None


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
    """Return the front of errors and size over all formulas that depend on at most `max_parents` columns.

    names: column names in the texts; max_errors: points of more errors are left out
    ties: most formulas listed for a function

    Sums of products of more than four columns need rows without gaps and at most `minimal_sums.MAX_VARS` columns;
    `ValueError` else.
    """
    if is_sum_search(measure, min(patterns.num_columns, max_parents)):
        return _sum_front(patterns, measure, max_parents, names, max_errors, ties)
    scan = _Scan(patterns, measure, max_parents, counting)
    goals = {code: least for code, least in pareto(scan.best).items() if max_errors is None or least <= max_errors}
    matches: dict[int, dict[tuple[tuple[int, ...], int], FrontFunction]] = {code: {} for code in goals}
    for code, chosen, word in scan.matches(goals):
        columns, bits = drop_inessential(word, chosen)
        matches[code][columns, bits] = make_function(measure, columns, bits, names, ties)
    points = [
        FrontPoint(least, size_of_code(measure, code), tuple(matches[code][key] for key in sorted(matches[code])))
        for code, least in goals.items()
    ]
    widest = min(patterns.num_columns, max_parents)
    # sums are complete here: those of more than four columns are searched by MaxSAT
    limits = [least_sizes(measure, k) for k in range(NUM_VARS + 1, widest + 1) if measure in ("all", "and-or-not")]
    incomplete = [int(sizes.sizes.max()) for sizes in limits if not sizes.is_complete]
    for point in points:
        certify_formulas(point.formulas(ties), patterns, measure, counting, point.errors, point.size)
    return Front(tuple(points), min(incomplete, default=None))


# --- Formulas that are shown, measured by the reference: no look-up of the search, and no catalogue -------------------
def certify_formulas(
    formulas: Sequence[tuple[str, Tree]],
    patterns: Patterns,
    measure: Measure,
    counting: Counting,
    errors: int,
    size: Size,
) -> None:
    """Measure each formula by the reference; raise `AssertionError` if its errors or its size differ."""
    for text, tree in formulas:
        measured = _count_errors(tree, patterns, counting), _measure_size(tree, measure)
        if measured != (errors, size):
            raise AssertionError(f"{text} failed its certificate: errors and size are {measured}, not {errors}, {size}")


def _count_errors(tree: Tree, patterns: Patterns, counting: Counting) -> int:
    """Return the errors of a formula on the patterns; a row of unknown cells stands for all of its completions."""
    names = [f"v{k}" for k in range(patterns.num_columns)]
    # None for a constant, the text "0" or "1"
    formula = parse(tree_text(tree, names), Grammar(allow_constants=True)) if isinstance(tree, tuple | int) else None
    columns = [] if formula is None else [k for k, name in enumerate(names) if name in formula.mentioned]
    values = [
        int(tree == "1") if formula is None else
        evaluate(formula, {names[column]: row >> index & 1 for index, column in enumerate(columns)})
        for row in range(1 << len(columns))
    ]  # fmt: skip
    errors = 0
    for cube, zeros, ones in zip(*map(np.ndarray.tolist, patterns.merge(columns)), strict=True):
        rows = [0]
        for index in range(len(columns)):
            digit = cube // 3**index % 3
            rows = [row | bit << index for row in rows for bit in ((0, 1) if digit == 2 else (digit,))]
        reached = {values[row] for row in rows}
        wrong = [value not in reached if counting == "sure" else reached != {value} for value in (0, 1)]
        errors += zeros * wrong[0] + ones * wrong[1]
    return int(errors)


def _measure_size(tree: Tree, measure: Measure) -> Size:
    """Return the size of a formula from its definition (docs/tables.md)."""
    if measure in ("all", "and-or-not"):
        return 1 + sum(cast(int, _measure_size(part, measure)) for part in tree[1:]) if isinstance(tree, tuple) else 1
    outer, inner, empty_sum = ("and", "or", "1") if is_dual(measure) else ("or", "and", "0")
    if isinstance(tree, str):
        return (0, 0) if tree == empty_sum else (1, 0)
    terms = tree[1:] if isinstance(tree, tuple) and tree[0] == outer else (tree,)
    return len(terms), sum(len(term) - 1 if isinstance(term, tuple) and term[0] == inner else 1 for term in terms)


def is_sum_search(measure: Measure, num_columns: int) -> bool:
    """Return whether formulas of so many columns are searched by MaxSAT, not compared function by function."""
    return measure in ("sop", "pos") and num_columns > NUM_VARS


def _sum_front(
    patterns: Patterns, measure: Measure, max_parents: int, names: Sequence[str], max_errors: int | None, ties: int
) -> Front:
    """Return the front of sums of products (sop), or of products of sums (pos, as sums of the complement)."""
    if (patterns.codes == GAP).any():
        raise ValueError("sums of products of more than four columns are searched on rows without gaps")
    dual, num_columns = is_dual(measure), patterns.num_columns
    row_numbers = patterns.codes.astype(np.int64) @ (1 << np.arange(num_columns, dtype=np.int64))
    zeros, ones = (
        np.bincount(row_numbers, counts, minlength=1 << num_columns) for counts in (patterns.zeros, patterns.ones)
    )
    if dual:
        zeros, ones = ones, zeros
    rows = [(int(row), int(zeros[row]), int(ones[row])) for row in np.unique(row_numbers)]
    sums = front_of_sums(num_columns, rows, max_parents, max_errors=max_errors)

    def points(listed: Sequence[SumPoint]) -> tuple[FrontPoint, ...]:
        front_points = tuple(FrontPoint(p.errors, p.size, _sum_functions(p, dual, names, ties)) for p in listed)
        for point in front_points:
            certify_formulas(point.formulas(ties), patterns, measure, "sure", point.errors, point.size)
        return front_points

    return Front(points(sums.points), None, points(sums.open_points), sums.at_least)


def _sum_functions(point: SumPoint, dual: bool, names: Sequence[str], ties: int) -> tuple[FrontFunction, ...]:
    """Return the functions of a point's sums; the products of a least sum are prime: it mentions what it depends on."""
    formulas: dict[tuple[tuple[int, ...], int], list[tuple[str, Tree]]] = {}
    for cubes in point.sums:
        columns = tuple(sorted({v for cube in cubes for v, digit in enumerate(cube) if digit != 2}))
        bits = reduce(or_, (cube_word([cube[v] for v in columns]) for cube in cubes), 0)
        bits ^= full_mask(len(columns)) if dual else 0
        tree = sum_tree(cubes, dual=dual)
        formulas.setdefault((columns, bits), []).append((tree_text(tree, names), tree))
    return tuple(
        FrontFunction(*key, len(formulas[key]), tuple(sorted(formulas[key], key=itemgetter(0))[:ties]))
        for key in sorted(formulas)
    )


_NOT_COMPARED = np.iinfo(np.int64).max


class _Scan:
    """Least errors of every size, over all sets of columns.

    best: size code -> least errors

    The errors of a set are at least its minority counts. Sets are scanned by this bound, ascending, and of each set
    only the sizes below the first whose least errors are already below the bound: no larger size can be on the front.
    """

    def __init__(self, patterns: Patterns, measure: Measure, max_parents: int, counting: Counting) -> None:
        sets: dict[int, list[tuple[int, ...]]] = {}
        for chosen in column_sets(patterns.num_columns, max_parents):
            sets.setdefault(len(chosen), []).append(chosen)
        self._groups = [_SetGroup(patterns, functions_of(measure, k), group, counting) for k, group in sets.items()]
        codes = sorted({code for group in self._groups for code in group.functions.size_codes})
        best = np.full(len(codes), _NOT_COMPARED)
        for group in self._groups:
            group.scan(np.searchsorted(codes, group.functions.size_codes), best)
        self.best = {code: least for code, least in zip(codes, best.tolist(), strict=True) if least < _NOT_COMPARED}

    def matches(self, goals: dict[int, int]) -> Iterator[tuple[int, tuple[int, ...], int]]:
        """Yield (size code, columns, function) wherever the errors equal goals[size code]."""
        for group in self._groups:
            yield from group.matches(goals)


def _prepare_sets(patterns: Patterns, sets: Sequence[tuple[int, ...]], counting: Counting) -> tuple[SetRows, Scratch]:
    """Return the kernels' arrays for the rows and for sets that all have the same number of columns."""
    k = len(sets[0])
    digits = np.ascontiguousarray(np.where(patterns.codes == GAP, 2, patterns.codes), np.int8)
    cubes = np.array([cube_rows(cube, k) for cube in range(3**k)], np.uint64)
    columns = np.array(sets, np.int64).reshape(len(sets), k)
    rows = SetRows(digits, patterns.zeros, patterns.ones, columns, cubes, counting == "sure")
    zeros, ones, occurring = np.zeros((3, 3**k), np.int64)
    return rows, Scratch(zeros, ones, occurring, np.zeros((8, 256), np.int64))  # a table per byte of a word


def minority_counts(patterns: Patterns, sets: Sequence[tuple[int, ...]]) -> I64:
    """Return for each set the fewest errors of any function on the rows without gaps in it; [sets].

    All sets have the same number of columns. Above 0, no function over the set fits, whatever fills the gaps.
    """
    bounds = np.zeros(len(sets), np.int64)
    least_of_sets(*_prepare_sets(patterns, sets, "sure"), bounds)
    return bounds


class _SetGroup:
    """Sets of the same number of columns, and the functions that are compared over each.

    _ends: how many sizes the scan compared, per set
    """

    def __init__(
        self, patterns: Patterns, functions: FunctionList, sets: list[tuple[int, ...]], counting: Counting
    ) -> None:
        self.functions = functions
        self.sets = sets
        self._rows, self._scratch = _prepare_sets(patterns, sets, counting)
        self._bounds, self._ends = minority_counts(patterns, sets), np.zeros(len(sets), np.int64)

    def scan(self, size_positions: I64, best: I64) -> None:
        """Lower the least errors of each size. size_positions: where the group's sizes are in `best`."""
        order = np.argsort(self._bounds, kind="stable")
        functions, bounds = self.functions.arrays, self._bounds
        positions = size_positions.astype(np.int64)
        scan_sets(self._rows, functions, self._scratch, order, bounds, positions, best, self._ends)

    def matches(self, goals: dict[int, int]) -> Iterator[tuple[int, tuple[int, ...], int]]:
        """Yield (size code, columns, function) wherever the errors equal goals[size code]."""
        goal_errors = np.array([goals.get(code, -1) for code in self.functions.size_codes], np.int64)
        functions, capacity = self.functions.arrays, 1 << 12
        while True:
            pairs = np.zeros((capacity, 2), np.int64)
            count = match_sets(self._rows, functions, self._scratch, self._bounds, self._ends, goal_errors, pairs)
            if count <= capacity:
                break
            capacity = count
        for s, f in pairs[:count].tolist():
            yield int(self.functions.codes[f]), self.sets[s], int(self.functions.words[f])


def pareto(best: dict[int, int]) -> dict[int, int]:
    """Return the size codes at which the errors fall, in rising order, with their errors."""
    chosen: dict[int, int] = {}
    least = None
    for code in sorted(best):
        if least is None or best[code] < least:
            chosen[code] = least = best[code]
    return chosen


def drop_inessential(word: int, columns: Sequence[int]) -> tuple[tuple[int, ...], int]:
    """Return the columns that a function depends on, and its truth table over these."""
    support = int(_support_masks(np.array([word], np.uint64), len(columns))[0])
    essential = [index for index in range(len(columns)) if support >> index & 1]
    bits = 0
    for row in range(1 << len(essential)):
        full_row = sum((row >> k & 1) << index for k, index in enumerate(essential))
        bits |= (word >> full_row & 1) << row
    return tuple(columns[index] for index in essential), bits


def make_function(
    measure: Measure, columns: tuple[int, ...], bits: int, names: Sequence[str], ties: int
) -> FrontFunction:
    """Return a function with its least formulas, `ties` of them at most."""
    num_vars = max(NUM_VARS, len(columns))
    word = bits
    for width in range(len(columns), num_vars):  # variables that it does not depend on
        word |= word << (1 << width)
    book = formula_book(measure, num_vars)
    trees = [relabel_tree(tree, columns) for tree in book.trees(word)]
    formulas = sorted(((tree_text(tree, names), tree) for tree in trees), key=itemgetter(0))
    return FrontFunction(columns, bits, book.count(word), tuple(formulas[:ties]))
