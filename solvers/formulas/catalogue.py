"""Catalogues: all Boolean functions of k variables whose least formula has at most some size, in the order of size.

Built by exhaustive enumeration of whole orbits under permutation of the variables. Complete for up to 4 variables; for
5 and 6 complete up to `max_size`, beyond which solvers.formulas.decomposition takes over. For the standard operators
the result is shipped by orbit (solvers.formulas.orbits), so that no kernel has to be compiled first. Constants are no
atoms of formulas, so no function of 0 variables has a formula. *List cost*: see solvers.formulas._kernels_functions.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import count, pairwise
from math import factorial

import numpy as np

from calibrant.dsl.formulas.formula import OPERATORS, STANDARD_OPERATORS
from calibrant.dsl.formulas.table import full_mask, num_rows, projection
from calibrant.solvers.formulas import _kernels_functions as kernels
from calibrant.solvers.formulas._kernels_synthesis import UNUSED
from calibrant.solvers.formulas.expressible import num_expressible, operator_set
from calibrant.solvers.formulas.orbits import Layers, moving_rows, plain_changes, unpack_orbits

MAX_VARS = 6  # a function is one 64-bit word
MAX_SIZES = {5: 11, 6: 9}  # 1.1 and 0.4 million functions: 0.2 s and 0.05 s to build, a scan takes 0.1 ms
CAPACITIES = {5: 1_200_000, 6: 500_000}  # initial room for functions; doubles when it is full
SHIPPED = {num_vars: f"data/functions_{num_vars}.bin" for num_vars in (4, 5, 6)}  # for the standard operators
# ROOTS: their bits in `rooted`; the codes of these operators are 1, 2 and 3
LISTING = ("and", "or", "xor")  # associative operators: nested nodes are flattened
ROOTS = {name: 1 << OPERATORS[name].code - 1 for name in LISTING}


@dataclass(frozen=True, slots=True, eq=False)
class Catalogue:
    """All functions of `num_vars` variables with a formula of at most `max_size` nodes.

    operators: the operators that the formulas use, in table order
    words: [f] truth tables (bit r: value in row r, dsl.formulas.table) by size, then as integers; uint64 for any number
        of variables: narrower words would search no faster, and have every kernel compiled once more
    sizes: [f] least sizes, uint8
    rooted: [f] uint8; bit 0, 1, 2: a formula of least size has `and`, `or`, `xor` at its root
    ends: [max_size + 1] how many functions have at most that size
    """

    num_vars: int
    operators: tuple[str, ...]
    words: kernels.U64
    sizes: kernels.U8
    rooted: kernels.U8
    ends: kernels.I64

    @property
    def max_size(self) -> int:
        return len(self.ends) - 1

    @property
    def is_complete(self) -> bool:
        """Return whether every function that these operators can express is listed."""
        return len(self.words) == num_expressible(self.num_vars, self.operators)

    def layers(self, chosen: slice | kernels.I64 = slice(None)) -> Layers:
        """Return the functions at those positions."""
        return Layers(self.words[chosen], self.sizes[chosen], self.rooted[chosen])

    def costs(self, operator: str) -> kernels.U8:
        """Return the list costs of all functions under `operator`: their sizes, less 1 if it can be the root; [f]."""
        return _costs(self, operator)

    @property
    def parity_costs(self) -> kernels.U8:
        """List costs under `xor` and `iff`; UNUSED, which no search reaches, for a missing operator; shape [2, f]."""
        return _parity_costs(self)

    def position(self, bits: int) -> int | None:
        """Return the position of a function; None if it is not listed."""
        word = np.uint64(bits)
        for size in range(1, self.max_size + 1):
            # words are sorted within a size only: one binary search a layer, 15 layers for four variables
            layer = self.words[self.ends[size - 1] : self.ends[size]]
            place = int(np.searchsorted(layer, word))
            if place < len(layer) and layer[place] == word:
                return int(self.ends[size - 1]) + place
        return None


def catalogue(num_vars: int, operators: Iterable[str] = STANDARD_OPERATORS) -> Catalogue:
    """Return the catalogue of 0 to 6 variables; built or loaded once per process."""
    if not 0 <= num_vars <= MAX_VARS:
        raise ValueError(f"exact synthesis over {num_vars} variables; it supports 0 to {MAX_VARS}")
    return _catalogue(num_vars, operator_set(operators))


@cache
def _catalogue(num_vars: int, operators: tuple[str, ...]) -> Catalogue:
    # a selection of the functions of four variables: nothing more to build or to ship
    if num_vars < 4:
        return _fewer_variables(_catalogue(4, operators), num_vars)
    if operators == STANDARD_OPERATORS:
        return _load_shipped(num_vars)
    return build_catalogue(num_vars, operators, max_size=MAX_SIZES.get(num_vars))


@cache
def _costs(functions: Catalogue, operator: str) -> kernels.U8:
    return (functions.sizes - (functions.rooted & ROOTS.get(operator, 0) > 0)).astype(np.uint8)


@cache
def _parity_costs(functions: Catalogue) -> kernels.U8:
    rows = [_costs(functions, name) if name in functions.operators else None for name in ("xor", "iff")]
    return np.stack([np.full(len(functions.words), UNUSED, np.uint8) if row is None else row for row in rows])


# --- building -------------------------------------------------------------------------------------------------------


def build_catalogue(num_vars: int, operators: tuple[str, ...], *, max_size: int | None = None) -> Catalogue:
    """Enumerate all functions of 1 to 6 variables up to a size, or all there are."""
    total = num_expressible(num_vars, operators)
    sizes = count(2) if max_size is None else range(2, max_size + 1)
    pool = _empty_pool(num_vars, CAPACITIES.get(num_vars, 1 << num_rows(num_vars)))
    # the orbit of one variable is all of them: the functions of size 1
    kernels.add_variable(pool, np.uint64(projection(0, num_vars).bits))
    ends = [0, num_vars]
    for size in sizes:
        if pool.length[0] == total:
            break
        pool = _grow(pool, ends, size, num_vars, operators)
        ends.append(int(pool.length[0]))
    return _sort_pool(num_vars, operators, pool, np.array(ends))


def _grow(pool: kernels.Pool, ends: list[int], size: int, num_vars: int, operators: tuple[str, ...]) -> kernels.Pool:
    """Add all functions of that size, in a larger pool if necessary."""
    bounds, full = np.array(ends), np.uint64(full_mask(num_vars))

    def add_all(operator: str) -> bool:
        """Add the functions with this root; False if the pool became full."""
        if operator == "not":
            return kernels.add_negations(pool, bounds, size, full)
        pairs = kernels.add_pairs(pool, bounds, size, OPERATORS[operator].code, full)
        # no list cost: `iff` of three (all equal) is no `iff` of two, so longer ones are enumerated apart
        return pairs and (operator != "iff" or kernels.add_iffs(pool, bounds, size, full))

    for operator in operators:
        while not add_all(operator):  # functions that are already in the pool are found again
            pool = _enlarge_pool(pool, num_vars)
    return pool


def _empty_pool(num_vars: int, capacity: int) -> kernels.Pool:
    capacity += factorial(num_vars)  # an orbit is added only if a largest one, of num_vars! functions, fits
    return kernels.Pool(  # a hash set; its fields are explained there
        words=np.empty(capacity, np.uint64),
        sizes=np.empty(capacity, np.uint8),
        rooted=np.zeros(capacity, np.uint8),
        leads=np.empty(capacity, np.uint8),
        slots=np.full(1 << (2 * capacity).bit_length(), -1, np.int32),
        length=np.zeros(1, np.int64),
        swaps=np.array(list(plain_changes(num_vars)), np.int64),
        moving=np.array(moving_rows(num_vars), np.uint64),
    )


def _enlarge_pool(pool: kernels.Pool, num_vars: int) -> kernels.Pool:
    copy, length = _empty_pool(num_vars, 2 * len(pool.words)), int(pool.length[0])
    for name in ("words", "sizes", "rooted", "leads"):
        getattr(copy, name)[:length] = getattr(pool, name)[:length]
    copy.length[0] = length
    kernels.fill_slots(copy.words, copy.slots, length)
    return copy


def _sort_pool(num_vars: int, operators: tuple[str, ...], pool: kernels.Pool, ends: kernels.I64) -> Catalogue:
    words, rooted = np.empty(ends[-1], np.uint64), np.empty(ends[-1], np.uint8)
    for start, end in pairwise(ends.tolist()):
        order = np.argsort(pool.words[start:end])
        words[start:end] = pool.words[start:end][order]
        rooted[start:end] = pool.rooted[start:end][order]
    return Catalogue(num_vars, operators, words, pool.sizes[: ends[-1]].copy(), rooted, ends)


# --- what is shipped, and fewer variables ----------------------------------------------------------------------------


def _load_shipped(num_vars: int) -> Catalogue:
    contents = files("calibrant.solvers.formulas").joinpath(SHIPPED[num_vars]).read_bytes()
    return _from_sorted(num_vars, STANDARD_OPERATORS, unpack_orbits(contents, num_vars))


def _fewer_variables(functions: Catalogue, num_vars: int) -> Catalogue:
    """Return the functions of the first `num_vars` of 4 variables, as functions of these only.

    Sizes and roots stay: in any formula the other variables may be replaced by one of these.
    """
    if num_vars == 0:
        return _from_sorted(0, functions.operators, functions.layers(slice(0)))  # none: constants are no formulas
    bits = functions.words & np.uint64(full_mask(num_vars))
    inside = np.flatnonzero(bits * (full_mask(4) // full_mask(num_vars)) == functions.words)  # the same table, repeated
    return _from_sorted(num_vars, functions.operators, functions.layers(inside)._replace(words=bits[inside]))


def _from_sorted(num_vars: int, operators: tuple[str, ...], functions: Layers) -> Catalogue:
    """Create a catalogue of functions that are in order already."""
    ends = np.cumsum(np.bincount(functions.sizes)) if len(functions.sizes) else np.zeros(1, np.int64)
    return Catalogue(num_vars, operators, *functions, ends)
