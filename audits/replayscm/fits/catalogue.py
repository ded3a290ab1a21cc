"""Least sizes of all functions of four columns, and numbers of least formulas, counted plainly for checking claims.

Shares nothing with the catalogues of the solvers. A least formula is an operator over least formulas of different
functions. So lists of functions are counted by total size and by the value of the operator: conjunctions as products
of superset sums, disjunctions of subset sums, parities of Walsh-Hadamard sums (modulo 2**64; the counts at the least
size are far smaller), `iff` by conjunction and disjunction together. No member of a least list is superfluous, so a
list has at most 16 members, one for each row.

Row r of a function is bit r, and bit i of r is the value of column i.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from math import factorial
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

U64: TypeAlias = npt.NDArray[np.uint64]
I64: TypeAlias = npt.NDArray[np.int64]
Measure: TypeAlias = Literal["all", "and-or-not", "sop", "pos"]
Sums: TypeAlias = Callable[[U64], U64]

NUM_COLUMNS = 4
NUM_ROWS = 16
NUM_FUNCTIONS = 1 << NUM_ROWS
FULL = NUM_FUNCTIONS - 1
MAX_MEMBERS = NUM_ROWS
MAX_NODES = 40  # the largest least size is 33, of not, and, or
LITERALS = 64  # a size of products and literals is packed as products * LITERALS + literals
CHUNK_SIZE = 2_000_000  # lists that are extended at a time


@dataclass(frozen=True)
class Catalogue:
    """Least size of each function, and number of its least formulas.

    sizes: nodes, or products * LITERALS + literals; counts: number of formulas of that size
    """

    sizes: I64
    counts: I64


@cache
def catalogue(measure: Measure) -> Catalogue:
    """Return the catalogue of a measure; five seconds for all operators, which is the slowest."""
    if measure == "sop":
        return _sums_of_products()
    if measure == "pos":
        sums = _sums_of_products()
        negated = FULL - np.arange(NUM_FUNCTIONS)
        return Catalogue(sums.sizes[negated], sums.counts[negated])
    return _nodes(has_parity=measure == "all")


def column_bits(column: int) -> int:
    """Return the rows in which a column is 1."""
    return sum(1 << row for row in range(NUM_ROWS) if row >> column & 1)


# --- Sums of products -------------------------------------------------------------------------------------------------


def _sums_of_products() -> Catalogue:
    """Add one product at a time; the orders of the products of a least sum are counted, then divided out."""
    words, literals = zip(*_products(), strict=True)
    sizes = np.full(NUM_FUNCTIONS, -1, np.int64)
    counts = np.zeros(NUM_FUNCTIONS, np.int64)
    sizes[0], counts[0] = 0, 1
    newest = np.array([0])
    num_terms = 0
    while len(newest):
        num_terms += 1
        totals = np.full(NUM_FUNCTIONS, LITERALS, np.int64)
        for word, length in zip(words, literals, strict=True):
            np.minimum.at(totals, newest | word, sizes[newest] % LITERALS + length)
        ordered = np.zeros(NUM_FUNCTIONS, np.int64)
        for word, length in zip(words, literals, strict=True):
            reached = newest | word
            is_least = sizes[newest] % LITERALS + length == totals[reached]
            np.add.at(ordered, reached[is_least], counts[newest[is_least]])
        newest = np.flatnonzero((sizes < 0) & (totals < LITERALS))
        sizes[newest] = num_terms * LITERALS + totals[newest]
        counts[newest] = ordered[newest]
    num_products = sizes // LITERALS
    orders = np.array([factorial(k) for k in range(int(num_products.max()) + 1)], np.int64)
    return Catalogue(sizes, counts // orders[num_products])


def _products() -> Iterator[tuple[int, int]]:
    """Yield the rows of each product of literals, and its number of literals."""
    for code in range(3**NUM_COLUMNS):
        word, length = FULL, 0
        for column in range(NUM_COLUMNS):
            code, digit = divmod(code, 3)
            bits = column_bits(column)
            word &= (FULL, bits, FULL ^ bits)[digit]
            length += digit > 0
        yield word, length


# --- Formulas by nodes ------------------------------------------------------------------------------------------------


def _nodes(*, has_parity: bool) -> Catalogue:
    sizes = np.zeros(NUM_FUNCTIONS, np.int64)
    counts = np.zeros(NUM_FUNCTIONS, np.int64)
    for word in (0, FULL, *map(column_bits, range(NUM_COLUMNS))):
        sizes[word] = counts[word] = 1
    lists = [_Lists(_superset_sums, _superset_terms), _Lists(_subset_sums, _subset_terms)]
    parities = _Lists(_parity_sums, _parity_terms)
    if has_parity:
        lists.append(parities)
    equalities = _Equalities()
    negated = FULL - np.arange(NUM_FUNCTIONS)
    for size in range(2, MAX_NODES):
        if sizes.all():
            break
        layer = np.where(sizes == size - 1, counts, 0)
        layer[[0, FULL]] = 0  # constants stand alone
        total = size - 1
        new_counts = np.where(sizes[negated] == total, layer[negated], 0)
        for operator_lists in lists:
            operator_lists.add(layer)
            for num_members in range(2, min(total, MAX_MEMBERS) + 1):
                new_counts += operator_lists.count(num_members, total)
        if has_parity:
            if total >= 2:
                new_counts += parities.count(2, total)[negated]
            new_counts += equalities.extend(layer, total, sizes == 0)
        new = (sizes == 0) & (new_counts > 0)
        sizes[new] = size
        counts[new] = new_counts[new]
    return Catalogue(sizes, counts)


class _Lists:
    """Lists of functions under an operator whose counts of values are products after a transform.

    to_sums, to_terms: the transform and its inverse
    """

    def __init__(self, to_sums: Sums, to_terms: Sums) -> None:
        self._to_sums, self._to_terms = to_sums, to_terms
        self._sums: list[U64] = []  # [k] transformed counts of least formulas of size k + 1
        self._products: dict[
            tuple[int, int], U64
        ] = {}  # (number of members, total size) -> transformed counts of lists

    def add(self, layer: I64) -> None:
        """Add the counts of formulas of the next size, by function."""
        self._sums.append(self._to_sums(layer.astype(np.uint64)))
        self._products[1, len(self._sums)] = self._sums[-1]

    def count(self, num_members: int, total: int) -> I64:
        """Count, by value, the sets of `num_members` functions of this total size; exact at a value's least total."""
        product = np.zeros(NUM_FUNCTIONS, np.uint64)
        for size in range(1, total - num_members + 2):
            shorter = self._products.get((num_members - 1, total - size))
            if shorter is not None:
                product += shorter * self._sums[size - 1]
        self._products[num_members, total] = product
        ordered = self._to_terms(product)
        return (ordered // np.uint64(factorial(num_members))).astype(np.int64)


def _transform(values: U64, change: Callable[[U64, U64], object]) -> U64:
    """Apply `change` in place for each row, to the values of the functions that are 0 and that are 1 in it."""
    values = values.copy()
    for row in range(NUM_ROWS):
        parts = values.reshape(-1, 2, 1 << row)
        change(parts[:, 0], parts[:, 1])
    return values


def _superset_sums(values: U64) -> U64:
    return _transform(values, lambda low, high: np.add(low, high, out=low))


def _superset_terms(values: U64) -> U64:
    return _transform(values, lambda low, high: np.subtract(low, high, out=low))


def _subset_sums(values: U64) -> U64:
    return _transform(values, lambda low, high: np.add(high, low, out=high))


def _subset_terms(values: U64) -> U64:
    return _transform(values, lambda low, high: np.subtract(high, low, out=high))


def _parity_sums(values: U64) -> U64:
    def change(low: U64, high: U64) -> None:
        difference = low - high
        low += high
        high[:] = difference

    return _transform(values, change)


def _parity_terms(values: U64) -> U64:
    return _parity_sums(values) >> np.uint64(NUM_ROWS)


class _Equalities:
    """Lists of three and more functions under `iff`, which is 1 where all are 1 or all are 0.

    The state of a list is its conjunction and disjunction, encoded to the base 3: the digit of a row is their sum. A
    state is extended at its least total size only, as others lead to no least formula.
    """

    def __init__(self) -> None:
        rows = np.arange(NUM_FUNCTIONS)
        self._digits = sum((rows >> k & 1) * 3**k for k in range(NUM_ROWS)).astype(np.int64)
        self._is_reached = np.zeros(3**NUM_ROWS, np.bool_)
        self._layers: list[tuple[I64, I64]] = []  # functions of size k + 1 that are no constants, and their counts
        self._states: dict[tuple[int, int], tuple[I64, I64, I64]] = {}  # conjunctions, disjunctions, orders of lists

    def extend(self, layer: I64, total: int, is_open: npt.NDArray[np.bool_]) -> I64:
        """Count, by value, the sets of three and more functions of this total size, for values that are open."""
        functions = np.flatnonzero(layer)
        self._layers.append((functions, layer[functions]))
        self._states[1, total] = functions, functions, layer[functions]
        counts = np.zeros(NUM_FUNCTIONS, np.int64)
        reached: list[I64] = []
        for num_members in range(2, min(total, MAX_MEMBERS) + 1):
            states: list[tuple[I64, I64, I64]] = []
            ordered = np.zeros(NUM_FUNCTIONS, np.int64)
            for conjunctions, disjunctions, orders in self._longer(num_members, total):
                values = conjunctions | FULL - disjunctions
                if num_members > 2:
                    has_open_value = is_open[values]
                    np.add.at(ordered, values[has_open_value], orders[has_open_value])
                new = ~self._is_reached[self._digits[conjunctions] + self._digits[disjunctions]]
                states.append(_merge(conjunctions[new], disjunctions[new], orders[new]))
            if states:
                states_of_total = _merge(*(np.concatenate(parts) for parts in zip(*states, strict=True)))
                self._states[num_members, total] = states_of_total
                reached.append(self._digits[states_of_total[0]] + self._digits[states_of_total[1]])
            counts += ordered // factorial(num_members)
        for keys in reached:
            self._is_reached[keys] = True
        return counts

    def _longer(self, num_members: int, total: int) -> Iterator[tuple[I64, I64, I64]]:
        """Yield, in chunks, the states of lists of `num_members` of this total size: a shorter list and a member."""
        for size in range(1, total):
            shorter = self._states.get((num_members - 1, total - size))
            functions, counts = self._layers[size - 1]
            if shorter is None or not len(functions):
                continue
            step = max(1, CHUNK_SIZE // len(functions))
            for start in range(0, len(shorter[0]), step):
                conjunctions, disjunctions, orders = (part[start : start + step, None] for part in shorter)
                longer = conjunctions & functions, disjunctions | functions, orders * counts
                yield longer[0].ravel(), longer[1].ravel(), longer[2].ravel()


def _merge(conjunctions: I64, disjunctions: I64, orders: I64) -> tuple[I64, I64, I64]:
    """Return each pair of conjunction and disjunction once, with the sum of its orders."""
    keys, inverse = np.unique(conjunctions << NUM_ROWS | disjunctions, return_inverse=True)
    totals = np.zeros(len(keys), np.int64)
    np.add.at(totals, inverse, orders)
    return keys >> NUM_ROWS, keys & FULL, totals
