"""Catalogues of small Boolean functions in the order of size, and what operators can express.

Built by exhaustive enumeration of whole orbits under permutation of the variables. Complete for up to 4 variables; for
5 and 6 complete up to `max_size`, beyond which solvers.formulas.synthesis takes over. For the standard operators
the result is shipped by orbit, so that no kernel has to be compiled first. Constants are no atoms of formulas, so no
function of 0 variables has a formula. *List cost* is defined in solvers.formulas._kernels_functions.

Size and possible roots are equal throughout an orbit. So a file with one function of each orbit, 11,000 instead of 1.1
million of five variables, holds a whole catalogue; reading it takes less time than compiling the enumeration.

Of Post's closed classes (E. L. Post, The two-valued iterative systems of mathematical logic, 1941) few occur:
operators that are all monotone, or all affine, stay in a small class; any other set expresses every function that
preserves the constants that all its operators preserve. An operator preserves 0 (or 1) if its value is 0 (or 1) when
all arguments are: `and` and `or` preserve both, `xor` preserves 0, `iff` preserves 1, `not` neither.

A least formula over a set of variables whose function ignores one of them is as small over a subset, so a search over
all subsets only needs the functions that depend on every variable. The constants are listed with one variable, because
without literals a formula for them has to mention a variable.

An argument 0 or 1 of `and`, `or` can be dropped or makes the node constant. Under `xor` a 0 can be dropped and a 1 is
a `not` around the rest, of the same size. Under `iff` a 1 makes the node the conjunction of the rest, and a 0 its nor,
no larger. So where those operators are allowed too, a formula with a literal inside is never smaller than one without,
and the only formulas worth adding are the literals themselves.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import count, pairwise
from math import factorial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from calibrant.dsl.formulas.formula import OPERATORS, STANDARD_OPERATORS
from calibrant.dsl.formulas.table import PartialTable, full_mask, num_rows, projection
from calibrant.dsl.formulas.text import Grammar
from calibrant.solvers.formulas import _kernels_functions as kernels
from calibrant.solvers.formulas._kernels_synthesis import UNUSED

# --- Orbits of functions under permutation of the variables: one representative stands for all ------------------------
U64 = npt.NDArray[np.uint64]
U8 = npt.NDArray[np.uint8]


class Layers(NamedTuple):
    """Functions by size, then by table bits.

    words: [f] uint64 truth tables; sizes: [f] uint8 least sizes; rooted: [f] uint8, see `Catalogue`
    """

    words: U64
    sizes: U8
    rooted: U8


def plain_changes(length: int) -> Iterator[int]:
    """Yield positions i whose exchanges with i + 1, one after another, run through all permutations of `length` items.

    Plain changes: D. E. Knuth, The Art of Computer Programming 4A, section 7.2.1.2, algorithm P.
    """
    if length < 2:
        return
    inner = list(plain_changes(length - 1))
    for round_index in range(len(inner) + 1):
        falling = round_index % 2 == 0  # the last item runs down, then up, and so on
        yield from range(length - 2, -1, -1) if falling else range(length - 1)
        if round_index < len(inner):
            yield inner[round_index] + falling


def moving_rows(num_vars: int) -> list[int]:
    """Return, per variable but the last, the rows in which it is 1 and the next one is 0, as bits of a table."""
    return [projection(i, num_vars).bits & ~projection(i + 1, num_vars).bits for i in range(num_vars - 1)]


def permute_variables(words: U64, num_vars: int) -> U64:
    """Return the functions under every permutation of the variables; shape [v!, f]."""
    moving = np.array(moving_rows(num_vars), np.uint64)
    permuted = np.empty((factorial(num_vars), len(words)), np.uint64)
    permuted[0] = words
    for row, variable in enumerate(plain_changes(num_vars)):
        shift, last = np.uint64(1 << variable), permuted[row]
        changed = (last ^ (last >> shift)) & moving[variable]
        np.bitwise_xor(last, changed | (changed << shift), out=permuted[row + 1])
    return permuted


def pack_orbits(functions: Layers, num_vars: int) -> bytes:
    """Pack one function of each orbit, that of least table bits: all bytes size + 16 * rooted, then all words."""
    leads = np.flatnonzero(permute_variables(functions.words, num_vars).min(axis=0) == functions.words)
    words = functions.words[leads]
    keys = functions.sizes[leads] | functions.rooted[leads] << np.uint8(4)
    return zlib.compress(keys.tobytes() + words.astype(_word_type(num_vars)).tobytes(), 9)


def _word_type(num_vars: int) -> str:
    return "<u4" if num_vars <= 5 else "<u8"


def unpack_orbits(contents: bytes, num_vars: int) -> Layers:
    """Return every function of every orbit, sorted by size, then bits."""
    inflated, word_type = zlib.decompress(contents), np.dtype(_word_type(num_vars))
    count = len(inflated) // (1 + word_type.itemsize)
    leads = np.frombuffer(inflated, word_type, count, offset=count).astype(np.uint64)
    words, keys = permute_variables(leads, num_vars), np.frombuffer(inflated, np.uint8, count)
    if num_vars <= 5:  # size, bits and roots in one number of 39 bits: sorted in a fifth of the time
        sizes, roots = (keys & 15).astype(np.uint64), (keys >> 4).astype(np.uint64)
        packed = words.ravel()  # changed in place: allocating memory takes longer than the arithmetic
        words <<= 3
        words |= sizes << 35 | roots
        packed.sort()
        packed = distinct(packed)
        rooted = packed.astype(np.uint8) & np.uint8(7)
        bits = packed >> np.uint64(3) & np.uint64(0xFFFFFFFF)
        packed >>= 35
        return Layers(bits, packed.astype(np.uint8), rooted)
    kinds = np.unique(keys)  # size and roots are equal throughout an orbit: sort each kind, then merge the runs
    parts = [distinct(np.sort(words[:, keys == kind], axis=None)) for kind in kinds]
    words, keys = np.concatenate(parts), np.repeat(kinds, list(map(len, parts)))
    order = np.lexsort((words, keys & 15))
    return Layers(words[order], keys[order] & np.uint8(15), keys[order] >> np.uint8(4))


def distinct(ascending: U64) -> U64:
    """Return a sorted array without repetitions.

    After np.sort 40 times as fast as np.unique, which hashes (numpy 2.4, 10^6 numbers of 20 bits: .016 and .62 s).
    """
    is_first = np.append(True, ascending[1:] != ascending[:-1])[: len(ascending)]
    return ascending[np.flatnonzero(is_first)]  # positions select faster than flags


# --- Expressibility: which Boolean functions a set of operators can express -------------------------------------------
MONOTONE_COUNTS = (0, 1, 4, 18, 166, 7579, 7828352)  # Dedekind numbers (OEIS A000372) without the two constants


def operator_set(operators: Iterable[str]) -> tuple[str, ...]:
    """Return the operators in table order, each once; `ValueError` if exact synthesis does not support one."""
    requested = set(operators)
    if unknown := requested - set(STANDARD_OPERATORS):
        raise ValueError(f"operators {sorted(unknown)} in exact synthesis; it supports {', '.join(STANDARD_OPERATORS)}")
    return tuple(name for name in STANDARD_OPERATORS if name in requested)


def preserves(operators: Iterable[str], value: bool) -> bool:
    """Return whether every formula of these operators is `value` in the row in which all variables are `value`."""
    chosen = [OPERATORS[name] for name in operators]
    return all(op.truth([value] * op.min_arity) == value for op in chosen)


def num_expressible(num_vars: int, operators: tuple[str, ...]) -> int:
    """Count the functions of `num_vars` variables, not necessarily all used, that have a formula of these operators."""
    if num_vars == 0:
        return 0  # no atom, hence no formula
    match operators:
        case ():
            return num_vars
        case ("not",):
            return 2 * num_vars
        case ("and",) | ("or",):
            return (1 << num_vars) - 1
        case ("xor",):
            return 1 << num_vars
        case ("not", "xor"):
            return 2 << num_vars
        case ("and", "or"):
            return MONOTONE_COUNTS[num_vars]
        case _:
            return 1 << num_rows(num_vars) - preserves(operators, False) - preserves(operators, True)


def expresses_everything(grammar: Grammar) -> bool:
    """Return whether every function has a formula in the grammar; a constant may be a literal or a formula."""
    names = grammar.operators
    standard = operator_set(name for name in names if name in STANDARD_OPERATORS)
    # monotone and affine classes have at most 18 and 16 functions of 3 variables, any other at least a quarter of 256
    rich = "if" in names or num_expressible(3, standard) >= 1 << num_rows(3) - 2
    return rich and (grammar.allow_constants or not (preserves(names, False) or preserves(names, True)))


def may_be_expressible(partial: PartialTable, operators: tuple[str, ...]) -> bool:
    """Return False if no formula agrees with the table.

    True is a proof as well, unless all operators are affine, or `and` or `or` is the only one: those classes are so
    small that a search through them decides.
    """
    ones, zeros = partial.value, partial.care & ~partial.value
    last = num_rows(partial.num_vars) - 1
    if preserves(operators, False) and ones & 1:
        return False
    if preserves(operators, True) and zeros >> last & 1:
        return False
    return operators != ("and", "or") or not _decreases(ones, zeros, partial.num_vars)


def _decreases(ones: int, zeros: int, num_vars: int) -> bool:
    """Return whether some row of `ones` lies below a row of `zeros`: then no monotone function has these values."""
    rows = range(num_rows(num_vars))
    below = [row for row in rows if ones >> row & 1]
    above = [row for row in rows if zeros >> row & 1]
    return any(low & ~high == 0 for low in below for high in above)


# --- Catalogues: all Boolean functions of k variables whose least formula has at most some size, in the order of size
MAX_VARS = 6  # a function is one 64-bit word
MAX_SIZES = {5: 11, 6: 9}  # by variables: 1.1 and 0.4 million functions, 0.2 s and 0.05 s to build, 0.1 ms to scan
CAPACITIES = {5: 1_200_000, 6: 500_000}  # initial room for functions; doubles when it is full
SHIPPED = {num_vars: f"data/functions_{num_vars}.bin" for num_vars in (4, 5, 6)}  # for the standard operators
LISTING = ("and", "or", "xor")  # associative operators: nested nodes are flattened
ROOTS = {name: 1 << OPERATORS[name].code - 1 for name in LISTING}  # their bits in `rooted`: 1, 2, 4


@dataclass(frozen=True, slots=True, eq=False)
class Catalogue:
    """All functions of `num_vars` variables with a formula of at most `max_size` nodes.

    operators: the operators that the formulas use, in table order
    words: [f] truth tables (bit r: value in row r, dsl.formulas.table) by size, then as integers; uint64 for any number
        of variables: narrower words would search no faster, and have every kernel compiled once more
    sizes: [f] least sizes, uint8
    rooted: [f] uint8; bit 0, 1, 2: a formula of least size has `and`, `or`, `xor` at its root
    ends: [max_size + 1] number of functions of at most each size, 0 to max_size
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
        """List costs under `xor` and `iff`; shape [2, f]. A missing operator has UNUSED, which no search reaches."""
        return _parity_costs(self)

    def position(self, bits: int) -> int | None:
        """Return the position of a function; None if it is not listed."""
        word = np.uint64(bits)
        for size in range(1, self.max_size + 1):
            # words are sorted within a size only: one binary search a layer, 15 layers for four variables
            layer = self.words[self.ends[size - 1] : self.ends[size]]
            index = int(np.searchsorted(layer, word))
            if index < len(layer) and layer[index] == word:
                return int(self.ends[size - 1]) + index
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


# --- Building ---------------------------------------------------------------------------------------------------------


def build_catalogue(num_vars: int, operators: tuple[str, ...], *, max_size: int | None = None) -> Catalogue:
    """Enumerate all functions of 1 to 6 variables up to `max_size` nodes; None: all that the operators can express."""
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
        while not add_all(operator):  # a full pool: start the operator again, functions in the pool stay
            pool = _enlarge_pool(pool, num_vars)
    return pool


def _empty_pool(num_vars: int, capacity: int) -> kernels.Pool:
    capacity += factorial(num_vars)  # an orbit is added only if a largest one, of num_vars! functions, fits
    return kernels.Pool(
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


# --- Shipped catalogues, and fewer variables --------------------------------------------------------------------------


def _load_shipped(num_vars: int) -> Catalogue:
    contents = files("calibrant.solvers.formulas").joinpath(SHIPPED[num_vars]).read_bytes()
    return _from_sorted(num_vars, STANDARD_OPERATORS, unpack_orbits(contents, num_vars))


def _fewer_variables(functions: Catalogue, num_vars: int) -> Catalogue:
    """Return the functions of the first `num_vars` of 4 variables, as functions of these only.

    Sizes and roots are the same: in a formula, any other variable may be replaced by one of these.
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


# --- Functions that depend on all of their variables, by size: the candidates for one parent set ----------------------
COMPLETE = 255  # in `complete_to`: every expressible function of that many variables is listed


@dataclass(frozen=True, slots=True, eq=False)
class EssentialFunctions:
    """Tables of 1 to k variables that depend on all of them; by number of variables, then size, then bits.

    bits: [f] uint64 tables; sizes: [f] least sizes
    starts: [k + 2] where the functions of j variables begin
    ends: [k + 1] past the last function of j variables that depends on all of them: leaves the constants out
    complete_to: [k + 1] every such function of j variables up to this size is listed
    """

    bits: npt.NDArray[np.uint64]
    sizes: npt.NDArray[np.uint8]
    starts: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    complete_to: npt.NDArray[np.int64]


@cache
def constant_sizes(functions: EssentialFunctions, grammar: Grammar) -> Mapping[int, int]:
    """Return the least formula size of each constant that has one: a literal, or a formula of some variable."""
    if grammar.allow_constants:
        return {0: 1, 1: 1}
    constants = slice(functions.ends[1], functions.starts[2])
    listed = zip(functions.bits[constants].tolist(), functions.sizes[constants].tolist(), strict=True)
    return {bits & 1: size for bits, size in listed}


def synthesis_operators(grammar: Grammar) -> tuple[str, ...]:
    """Return the allowed operators that formulas are built from: the standard ones, without `if`."""
    return tuple(name for name in grammar.operators if name in STANDARD_OPERATORS)


@cache
def essential_functions(max_vars: int, operators: tuple[str, ...]) -> EssentialFunctions:
    """Return the functions of 1 to `max_vars` variables that depend on all; built once per process."""
    bits, sizes, starts, ends, complete_to = [], [], [0, 0], [0], [COMPLETE]
    for num_vars in range(1, max_vars + 1):
        functions = catalogue(num_vars, operators)
        is_essential = _depends_on_all(functions.words, num_vars)
        ends.append(starts[-1] + int(is_essential.sum()))
        order = np.flatnonzero(is_essential)
        # the constants come after; without `not` they may be smaller than the negation
        if num_vars == 1:
            order = np.concatenate([order, np.flatnonzero(~is_essential)])
        bits.append(functions.words[order])
        sizes.append(functions.sizes[order])
        starts.append(starts[-1] + len(order))
        complete_to.append(COMPLETE if functions.is_complete else functions.max_size)
    indexes = (np.array(values, np.int64) for values in (starts, ends, complete_to))
    return EssentialFunctions(np.concatenate(bits), np.concatenate(sizes), *indexes)


def _depends_on_all(words: npt.NDArray[np.uint64], num_vars: int) -> npt.NDArray[np.bool_]:
    is_essential, differing = np.ones(len(words), np.bool_), np.empty_like(words)
    for index in range(num_vars):
        np.right_shift(words, 1 << index, out=differing)
        differing ^= words
        differing &= full_mask(num_vars) & ~projection(index, num_vars).bits  # rows in which the variable is 0
        is_essential &= differing != 0
    assert num_rows(num_vars) <= 64
    return is_essential


# --- Effect of the literals 0 and 1 on least formulas, where a grammar allows them ------------------------------------
# operator -> operators that express it without loss of size where an argument is a literal, see the module's head
_NEEDED_WITH_LITERALS = {"xor": {"not"}, "iff": {"not", "and", "or"}}


def require_literals_alone(grammar: Grammar) -> None:
    """Raise `ValueError` if a literal inside a formula could make it smaller, or possible at all: none is searched."""
    if not grammar.allow_constants:
        return
    for operator, needed in _NEEDED_WITH_LITERALS.items():
        missing = needed.difference(grammar.operators)
        if operator in grammar.operators and missing:
            raise ValueError(
                f"literals are allowed with {operator} but without {', '.join(sorted(missing))}: "
                "formulas with a literal inside are not searched"
            )
