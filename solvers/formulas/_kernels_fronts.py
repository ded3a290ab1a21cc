"""Kernels: errors of all functions over many sets of columns, for fronts of errors against size.

Dimension letters: r = patterns of rows, c = columns, S = sets of k columns each, f = functions in the order of size,
z = their different sizes. A cube of k columns is an integer in base 3: digit i is 0, 1 or 2 (a gap) in column i.
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

    digits: [r, c] 0, 1 or 2; zeros, ones: [r] numbers of rows with target 0, 1; sets: [S, k]
    cube_rows: [3**k] rows of the truth table in a cube, as bits
    is_sure: a row with gaps is an error if every completion is wrong; if False, if some completion is wrong
    """

    digits: I8
    zeros: I64
    ones: I64
    sets: I64
    cube_rows: U64
    is_sure: bool


class Functions(NamedTuple):
    """Functions over k columns.

    words: [f] truth tables; supports: [f] masks of columns; starts: [z + 1] first function of each size
    num_bytes: bytes of a truth table, rounded up
    """

    words: U64
    supports: npt.NDArray[np.uint8]
    starts: I64
    num_bytes: int


class Scratch(NamedTuple):
    """Rows of one set by cube, and errors by bytes of the truth table.

    A cube whose rows lie in one byte of a truth table is counted in `tables`, any other ("wide") in the three arrays.

    zeros, ones: [3**k] numbers of rows of wide cubes; all 0 between calls
    cubes: [3**k] the wide cubes that occur come first
    tables: [8, 256] errors of a function by the value of each of its bytes
    """

    zeros: I64
    ones: I64
    cubes: I64
    tables: I64


@kernel
def _merge(rows: SetRows, chosen: I64, scratch: Scratch) -> tuple[int, int]:
    """Fill `scratch`; return the number of wide cubes, and the least errors of any function on rows without gaps."""
    k = len(chosen)
    num_rows = 1 << k
    if_one, if_zero = np.zeros(max(num_rows, 8), np.int64), np.zeros(max(num_rows, 8), np.int64)
    num_cubes = 0
    for r in range(rows.digits.shape[0]):
        key, row, has_gap = 0, 0, False
        for i in range(k - 1, -1, -1):
            digit = rows.digits[r, chosen[i]]
            key = 3 * key + digit
            row = 2 * row + (digit & 1)
            has_gap |= digit == 2
        if not has_gap:
            if_one[row] += rows.zeros[r]
            if_zero[row] += rows.ones[r]
            continue
        if scratch.zeros[key] == 0 and scratch.ones[key] == 0:
            scratch.cubes[num_cubes] = key
            num_cubes += 1
        scratch.zeros[key] += rows.zeros[r]
        scratch.ones[key] += rows.ones[r]
    least = 0
    for row in range(num_rows):
        least += min(if_one[row], if_zero[row])
    for byte in range((num_rows + 7) // 8):
        table = scratch.tables[byte]
        table[0] = 0
        for bit in range(8):
            errors_of_one, errors_of_zero = if_one[8 * byte + bit], if_zero[8 * byte + bit]
            for value in range(1 << bit):
                table[value | 1 << bit] = table[value] + errors_of_one
                table[value] += errors_of_zero
    num_wide = 0
    for i in range(num_cubes):
        key = scratch.cubes[i]
        byte = 0
        while rows.cube_rows[key] >> np.uint64(8 * byte) & np.uint64(255) == 0:
            byte += 1
        row_mask = np.int64(rows.cube_rows[key] >> np.uint64(8 * byte))
        if row_mask > 255 or row_mask < 0:
            scratch.cubes[num_wide] = key
            num_wide += 1
            continue
        zeros, ones = scratch.zeros[key], scratch.ones[key]
        scratch.zeros[key] = scratch.ones[key] = 0
        for value in range(256):
            scratch.tables[byte, value] += _cube_errors(int(value & row_mask), int(row_mask), zeros, ones, rows.is_sure)
    return num_wide, least


@inline_kernel
def _cube_errors(inside: int, row_mask: int, zeros: int, ones: int, is_sure: bool) -> int:
    """Return the errors on the rows of a cube. row_mask: its rows; inside: those where the function is 1."""
    if is_sure:
        return zeros if inside == row_mask else ones if inside == 0 else 0
    return (zeros if inside != 0 else 0) + (ones if inside != row_mask else 0)


@inline_kernel
def _table_errors(functions: Functions, f: int, scratch: Scratch) -> int:
    """Return the errors of a function without those on wide cubes."""
    word = functions.words[f]
    errors = scratch.tables[0, word & np.uint64(255)]
    for byte in range(1, functions.num_bytes):
        errors += scratch.tables[byte, (word >> np.uint64(8 * byte)) & np.uint64(255)]
    return int(errors)


@inline_kernel
def _wide_errors(rows: SetRows, functions: Functions, f: int, num_cubes: int, scratch: Scratch) -> int:
    """Return the errors of a function on wide cubes."""
    word = functions.words[f]
    errors = 0
    for i in range(num_cubes):
        key = scratch.cubes[i]
        row_mask = rows.cube_rows[key]
        errors += _cube_errors(word & row_mask, row_mask, scratch.zeros[key], scratch.ones[key], rows.is_sure)
    return errors


@inline_kernel
def _clear(num_cubes: int, scratch: Scratch) -> None:
    for i in range(num_cubes):
        scratch.zeros[scratch.cubes[i]] = 0
        scratch.ones[scratch.cubes[i]] = 0


@kernel
def least_of_sets(rows: SetRows, scratch: Scratch, bounds: I64) -> None:
    """Fill in each set's fewest errors of any function on rows without gaps: the minorities; bounds: [S] out."""
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
    size_positions: I64,  # [z] where each size of these functions is in `best`
    best: I64,  # [all sizes] out: least errors so far
    ends: I64,  # [S] out: how many sizes were compared
) -> None:
    """Lower the least errors of each size by those of the functions of all sets.

    Of a set only sizes below the first whose least errors are already below the set's bound are compared.
    """
    for s in order:
        end = _num_compared(best, bounds[s], size_positions)
        if end == 0:
            ends[s] = 0
            continue
        num_cubes, _ = _merge(rows, rows.sets[s], scratch)
        bound = 0  # higher than bounds[s]: it counts the cubes in tables too
        for byte in range(functions.num_bytes):
            least = scratch.tables[byte, 0]
            for value in range(1, 1 << min(8, 1 << rows.sets.shape[1])):
                least = min(least, scratch.tables[byte, value])
            bound += int(least)
        ends[s] = end = _num_compared(best, bound, size_positions)
        for z in range(end):
            least = best[size_positions[z]]
            for f in range(functions.starts[z], functions.starts[z + 1]):
                errors = _table_errors(functions, f, scratch)
                if errors < least:
                    least = min(least, errors + _wide_errors(rows, functions, f, num_cubes, scratch))
            best[size_positions[z]] = least
        _clear(num_cubes, scratch)


@inline_kernel
def _num_compared(best: I64, bound: int, size_positions: I64) -> int:
    """Return how many sizes are below the first whose least errors are already below a bound."""
    better = len(best)
    for size in range(len(best) - 1, -1, -1):
        if best[size] < bound:
            better = size
    end = 0
    while end < len(size_positions) and size_positions[end] < better:
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
    """List the functions whose errors equal the goal of their size; return how many, even beyond the room in `matches`.

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
    """Return whether an ascending set has, beside the columns of a support (positions in it), the lowest others."""
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
