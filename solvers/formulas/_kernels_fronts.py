"""Kernels: errors of all functions over many sets of columns, for fronts of errors against size.

Dimension letters: r = patterns of rows, c = columns, S = sets of columns of one number k, f = functions in the order of
size, z = their different sizes. A cube of k columns is a number with a digit 0, 1 or 2 (a gap) to the base 3 for each.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from calibrant.dsl._jit import inline_kernel, kernel

I8 = npt.NDArray[np.int8]
I64 = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]


class SetRows(NamedTuple):
    """Rows by pattern, and the sets of columns that are compared.

    digits: [r, c] 0, 1 or 2; zeros, ones: [r] rows with target 0, 1; sets: [S, k]
    cube_rows: [3**k] rows of the truth table in a cube, as bits
    is_sure: rows with gaps are wrong if no completion is right, else if some completion is wrong
    """

    digits: I8
    zeros: I64
    ones: I64
    sets: I64
    cube_rows: U64
    is_sure: bool


class Functions(NamedTuple):
    """Functions. words: [f] truth tables; supports: [f] masks of columns; starts: [z + 1] first function of each size.

    num_bytes: eighths of a truth table, rounded up
    """

    words: U64
    supports: npt.NDArray[np.uint8]
    starts: I64
    num_bytes: int


class Scratch(NamedTuple):
    """Rows of one set by cube, and errors by bytes of the truth table.

    zeros, ones: [3**k], zeros between calls; cubes: [3**k] those that occur, but those within a byte of the table
    tables: [8, 256] errors of a function by each of its bytes
    """

    zeros: I64
    ones: I64
    cubes: I64
    tables: I64


@kernel
def _merge(rows: SetRows, chosen: I64, scratch: Scratch) -> tuple[int, int]:
    """Count rows by cube; return how many cubes of several bytes occur, and the least errors over complete patterns.

    The tables of errors are filled in, `scratch.zeros` and `ones` hold cubes of several bytes alone.
    """
    k = len(chosen)
    num_rows = 1 << k
    if_one, if_zero = np.zeros(max(num_rows, 8), np.int64), np.zeros(max(num_rows, 8), np.int64)
    num_cubes = 0
    for r in range(rows.digits.shape[0]):
        key, place, has_gap = 0, 0, False
        for i in range(k - 1, -1, -1):
            digit = rows.digits[r, chosen[i]]
            key = 3 * key + digit
            place = 2 * place + (digit & 1)
            has_gap |= digit == 2
        if not has_gap:
            if_one[place] += rows.zeros[r]
            if_zero[place] += rows.ones[r]
            continue
        if scratch.zeros[key] == 0 and scratch.ones[key] == 0:
            scratch.cubes[num_cubes] = key
            num_cubes += 1
        scratch.zeros[key] += rows.zeros[r]
        scratch.ones[key] += rows.ones[r]
    least = 0
    for place in range(num_rows):
        least += min(if_one[place], if_zero[place])
    for part in range((num_rows + 7) // 8):
        table = scratch.tables[part]
        table[0] = 0
        for bit in range(8):
            high, low = if_one[8 * part + bit], if_zero[8 * part + bit]
            for value in range(1 << bit):
                table[value | 1 << bit] = table[value] + high
                table[value] += low
    num_wide = 0  # cubes of more than one byte
    for i in range(num_cubes):
        key = scratch.cubes[i]
        part = 0
        while rows.cube_rows[key] >> np.uint64(8 * part) & np.uint64(255) == 0:
            part += 1
        places = np.int64(rows.cube_rows[key] >> np.uint64(8 * part))
        if places > 255 or places < 0:
            scratch.cubes[num_wide] = key
            num_wide += 1
            continue
        zeros, ones = scratch.zeros[key], scratch.ones[key]
        scratch.zeros[key] = scratch.ones[key] = 0
        for value in range(256):
            scratch.tables[part, value] += _cube_errors(int(value & places), int(places), zeros, ones, rows.is_sure)
    return num_wide, least


@inline_kernel
def _cube_errors(inside: int, places: int, zeros: int, ones: int, is_sure: bool) -> int:
    """Return the errors on the rows of a cube. inside: bits of the function in it; places: all its bits."""
    if is_sure:
        return zeros if inside == places else ones if inside == 0 else 0
    return (zeros if inside != 0 else 0) + (ones if inside != places else 0)


@inline_kernel
def _table_errors(functions: Functions, f: int, scratch: Scratch) -> int:
    """Return the errors of a function by the tables alone."""
    word = functions.words[f]
    errors = scratch.tables[0, word & np.uint64(255)]
    for part in range(1, functions.num_bytes):
        errors += scratch.tables[part, (word >> np.uint64(8 * part)) & np.uint64(255)]
    return int(errors)


@inline_kernel
def _wide_errors(rows: SetRows, functions: Functions, f: int, num_cubes: int, scratch: Scratch) -> int:
    """Return the errors of a function on the cubes that are in no table."""
    word = functions.words[f]
    errors = 0
    for i in range(num_cubes):
        key = scratch.cubes[i]
        places = rows.cube_rows[key]
        errors += _cube_errors(word & places, places, scratch.zeros[key], scratch.ones[key], rows.is_sure)
    return errors


@inline_kernel
def _clear(num_cubes: int, scratch: Scratch) -> None:
    for i in range(num_cubes):
        scratch.zeros[scratch.cubes[i]] = 0
        scratch.ones[scratch.cubes[i]] = 0


@kernel
def least_of_sets(rows: SetRows, scratch: Scratch, bounds: I64) -> None:
    """Fill in the fewest errors that any function of each set has: its complete patterns, by majority; [S]."""
    for s in range(rows.sets.shape[0]):
        num_cubes, bounds[s] = _merge(rows, rows.sets[s], scratch)
        _clear(num_cubes, scratch)


@kernel
def scan_sets(
    rows: SetRows,
    functions: Functions,
    scratch: Scratch,
    order: I64,  # [S] sets by rising bound
    bounds: I64,  # [S]
    size_of: I64,  # [z] position of a size among all
    best: I64,  # [all sizes] out: least errors so far
    ends: I64,  # [S] out: how many sizes were compared
) -> None:
    """Lower the least errors of each size by those of the functions of all sets.

    Of a set only sizes below the first that has fewer errors already than its bound are compared.
    """
    for s in order:
        end = _num_compared(best, bounds[s], size_of)
        if end == 0:
            ends[s] = 0
            continue
        num_cubes, _ = _merge(rows, rows.sets[s], scratch)
        bound = 0  # with the rows with gaps that are in tables
        for part in range(functions.num_bytes):
            least = scratch.tables[part, 0]
            for value in range(1, 1 << min(8, 1 << rows.sets.shape[1])):
                least = min(least, scratch.tables[part, value])
            bound += int(least)
        ends[s] = end = _num_compared(best, bound, size_of)
        for z in range(end):
            least = best[size_of[z]]
            for f in range(functions.starts[z], functions.starts[z + 1]):
                errors = _table_errors(functions, f, scratch)
                if errors < least:
                    least = min(least, errors + _wide_errors(rows, functions, f, num_cubes, scratch))
            best[size_of[z]] = least
        _clear(num_cubes, scratch)


@inline_kernel
def _num_compared(best: I64, bound: int, size_of: I64) -> int:
    """Return how many sizes are below the first that has fewer errors already than a bound."""
    better = len(best)
    for size in range(len(best) - 1, -1, -1):
        if best[size] < bound:
            better = size
    end = 0
    while end < len(size_of) and size_of[end] < better:
        end += 1
    return end


@kernel
def match_sets(
    rows: SetRows,
    functions: Functions,
    scratch: Scratch,
    bounds: I64,  # [S]
    ends: I64,  # [S] how many sizes were compared
    goals: I64,  # [z] errors, -1 for none
    matches: I64,  # [matches, 2] out: set and function
) -> int:
    """List the functions that have the errors of their size's goal; return their number, which may exceed the room.

    A function that depends on fewer columns than a set has is listed with the first set that has them.
    """
    count = 0
    for s in range(rows.sets.shape[0]):
        is_needed = False
        for z in range(ends[s]):
            is_needed |= goals[z] >= bounds[s]
        if not is_needed:
            continue
        chosen = rows.sets[s]
        num_cubes, _ = _merge(rows, chosen, scratch)
        for z in range(ends[s]):
            if goals[z] < bounds[s]:
                continue
            for f in range(functions.starts[z], functions.starts[z + 1]):
                errors = _table_errors(functions, f, scratch)
                if errors > goals[z]:
                    continue
                if errors + _wide_errors(rows, functions, f, num_cubes, scratch) != goals[z]:
                    continue
                if not _is_first(chosen, functions.supports[f]):
                    continue
                if count < matches.shape[0]:
                    matches[count, 0] = s
                    matches[count, 1] = f
                count += 1
        _clear(num_cubes, scratch)
    return count


@inline_kernel
def _is_first(chosen: I64, support: int) -> bool:
    """Return whether a set, ascending, is the columns of a support and the first others."""
    column = 0
    for i in range(len(chosen)):
        if support >> i & 1:
            continue
        is_skipped = True
        while is_skipped:
            is_skipped = False
            for j in range(len(chosen)):
                if support >> j & 1 and chosen[j] == column:
                    is_skipped = True
            column += is_skipped
        if chosen[i] != column:
            return False
        column += 1
    return True
