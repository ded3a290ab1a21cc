"""Kernels: parent sets that determine a variable's column, and the smallest function over each.

Rows are bit-packed, 64 to a word, so that a test of one parent set takes a few word operations for each cell of its
table. Sets are enumerated in lexicographic order; the partition of the rows by all parents but the last carries over
from set to set. Letters of shapes: v = variables, w = words of 64 rows, c = candidates, f = functions, e = entries.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from calibrant.dsl._jit import kernel

U64 = npt.NDArray[np.uint64]
U8 = npt.NDArray[np.uint8]
I64 = npt.NDArray[np.int64]

NO_BOUND = 1 << 30


@kernel
def fill_partial_table(
    columns: U64, scored: U64, target: int, parents: I64, num_parents: int, parts: U64, out: U64
) -> bool:
    """Compute care and value words of the target over the parents; False if two scored rows contradict each other.

    parts: [2**num_parents, w] scratch; out: [2] care and value
    """
    # each parent splits every part in two, in place: part p holds the rows with pattern p of the parents so far
    num_words = columns.shape[1]
    for w in range(num_words):
        parts[0, w] = scored[w]
    for i in range(num_parents):
        for p in range(1 << i):
            for w in range(num_words):
                column = columns[parents[i], w]
                parts[p | (1 << i), w] = parts[p, w] & column
                parts[p, w] &= ~column
    care = np.uint64(0)
    value = np.uint64(0)
    for p in range(1 << num_parents):
        ones = np.uint64(0)
        zeros = np.uint64(0)
        for w in range(num_words):
            ones |= parts[p, w] & columns[target, w]
            zeros |= parts[p, w] & ~columns[target, w]
        if ones and zeros:
            return False
        row = np.uint64(1) << np.uint64(p)
        if ones or zeros:
            care |= row
        if ones:
            value |= row
    out[0] = care
    out[1] = value
    return True


@kernel
def next_combination(chosen: I64, num_chosen: int, num_candidates: int) -> int:
    """Step to the next combination in lexicographic order; return the first position that changed, -1 at the end."""
    i = num_chosen - 1
    while i >= 0 and chosen[i] == num_candidates - num_chosen + i:
        i -= 1
    if i >= 0:
        chosen[i] += 1
        for later in range(i + 1, num_chosen):
            chosen[later] = chosen[later - 1] + 1
    return i


@kernel
def find_least_function(
    bits: U64, sizes: U8, start: int, end: int, care: np.uint64, value: np.uint64, bound: int
) -> int:
    """Return the position of the first function smaller than `bound` that agrees on `care`; -1 if there is none."""
    for f in range(start, end):
        if sizes[f] >= bound:  # functions ascend by size
            return -1
        if (bits[f] ^ value) & care == 0:
            return f
    return -1


@kernel
def split_mixed_cells(
    columns: U64, scored: U64, target: int, parents: I64, num_parents: int, changed: int, cells: U64, mixed: U64
) -> int:
    """Partition the scored rows by the parents; return the number of cells in which the target has both values.

    changed: position of the first parent that is new; cells of the parents before it are kept from the last call
    cells: [2**(max_parents + 1), w] cell p of the first i parents is at index 2**i + p
    mixed: [2**max_parents, 2, w] out: where the target is 1 and where it is 0
    """
    num_words = columns.shape[1]
    for w in range(num_words):
        cells[1, w] = scored[w]
    # cells of parents before `changed` are those of the last call: the order is lexicographic, so that most steps
    # exchange the last parent alone and split 2**(num_parents - 1) cells instead of 2**num_parents - 1
    for i in range(changed, num_parents):
        for p in range(1 << i):
            for w in range(num_words):
                column = columns[parents[i], w]
                cell = cells[(1 << i) + p, w]
                cells[(2 << i) + (1 << i) + p, w] = cell & column
                cells[(2 << i) + p, w] = cell & ~column
    count = 0
    for p in range(1 << num_parents):
        ones = np.uint64(0)
        zeros = np.uint64(0)
        for w in range(num_words):
            cell = cells[(1 << num_parents) + p, w]
            mixed[count, 0, w] = cell & columns[target, w]
            mixed[count, 1, w] = cell & ~columns[target, w]
            ones |= mixed[count, 0, w]
            zeros |= mixed[count, 1, w]
        # a pure cell is overwritten by the next one: whatever parent is added, it stays pure
        if ones and zeros:
            count += 1
    return count


@kernel
def is_separating(columns: U64, candidate: int, mixed: U64, num_mixed: int) -> bool:
    """Return whether one more parent determines the target: it separates ones from zeros in every mixed cell."""
    for cell in range(num_mixed):
        ones_if_1 = np.uint64(0)  # rows of the cell where the target is 1 and the candidate is 1, and so on
        zeros_if_1 = np.uint64(0)
        ones_if_0 = np.uint64(0)
        zeros_if_0 = np.uint64(0)
        for w in range(columns.shape[1]):
            column = columns[candidate, w]
            ones_if_1 |= mixed[cell, 0, w] & column
            zeros_if_1 |= mixed[cell, 1, w] & column
            ones_if_0 |= mixed[cell, 0, w] & ~column
            zeros_if_0 |= mixed[cell, 1, w] & ~column
        if (ones_if_1 and zeros_if_1) or (ones_if_0 and zeros_if_0):
            return False
    return True


@kernel
def fill_table_of_cells(columns: U64, target: int, last: int, cells: U64, num_parents: int, out: U64) -> None:
    """Compute care and value words over the partitioned parents and one more, `last`, which determines the target."""
    care = np.uint64(0)
    value = np.uint64(0)
    for p in range(1 << num_parents):
        row = np.uint64(1) << np.uint64(p)
        row_with_last = row << np.uint64(1 << num_parents)
        for w in range(columns.shape[1]):
            cell = cells[(1 << num_parents) + p, w]
            with_last = cell & columns[last, w]
            without_last = cell ^ with_last
            if with_last:
                care |= row_with_last
                if with_last & columns[target, w]:
                    value |= row_with_last
            if without_last:
                care |= row
                if without_last & columns[target, w]:
                    value |= row
    out[0] = care
    out[1] = value


@kernel
def useful_size_bound(masks: I64, sizes: I64, count: int, first_tied: int, parents: int, free: int, floor: int) -> int:
    """Return the size below which a function over these parents is not dominated by a listed set.

    first_tied: position of the first listed set with as many parents; such a set dominates only larger functions
    parents: the parents, without the free ones
    floor: smallest possible size; a result at or below it may be too large
    """
    bound = NO_BOUND
    for e in range(count):
        # a set dominates if all its parents are free or among these, so that it closes no cycle, and its size is exact
        if masks[e] & ~free & ~parents == 0 and sizes[e] > 0:
            bound = min(bound, sizes[e] + (1 if e >= first_tied else 0))
            if bound <= floor:
                break
    return bound


@kernel
def list_determining_sets(
    columns: U64,  # [v, w] observed values
    scored: U64,  # [w] rows in which the target is not intervened on
    target: int,
    candidates: I64,  # [c] variables that may be parents, ascending
    free: int,  # candidates that precede all other variables, bit per variable
    max_parents: int,
    function_bits: U64,  # [f] tables that depend on all their variables, by number of variables, then size, then bits
    function_size: U8,  # [f]
    function_start: I64,  # [max_parents + 2] where the tables of j variables begin
    complete_to: I64,  # [max_parents + 1] every function of j variables up to this size is listed
    masks: I64,  # [e] out: parent set, bit per variable
    sizes: I64,  # [e] out: least size; negative if unknown: at least the absolute value
    cares: U64,  # [e] out
    values: U64,  # [e] out
) -> int:
    """List the undominated parent sets that determine the target, by number of parents, then lexicographically.

    A set is dominated if another set, with parents that are free or among its own, has a function that is no larger (if
    both have as many parents: smaller). O(c**max_parents) sets are tested, most of them by one mixed cell.
    """
    count = 0
    chosen = np.empty(max_parents, np.int64)
    parents = np.empty(max_parents, np.int64)
    table = np.empty(2, np.uint64)
    parts = np.empty((1 << max_parents, columns.shape[1]), np.uint64)
    cells = np.empty((2 << max_parents, columns.shape[1]), np.uint64)
    mixed = np.empty((1 << max_parents, 2, columns.shape[1]), np.uint64)
    num_candidates = candidates.shape[0]
    for j in range(1, min(max_parents, num_candidates) + 1):
        first_tied = count
        smallest = j + 1 if j > 1 else 1  # j leaves and an operator
        for i in range(j):
            chosen[i] = i
        has_more = True
        changed = 0
        while has_more:  # over the parents but the last; every later candidate is tried as the last
            mask = np.int64(0)
            for i in range(j - 1):
                parents[i] = candidates[chosen[i]]
                mask |= np.int64(1) << parents[i]
            num_mixed = split_mixed_cells(columns, scored, target, parents, j - 1, changed, cells, mixed)
            for last in range(chosen[j - 2] + 1 if j > 1 else 0, num_candidates):
                if not is_separating(columns, candidates[last], mixed, num_mixed):
                    continue
                parents[j - 1] = candidates[last]
                full_mask = mask | np.int64(1) << candidates[last]
                bound = useful_size_bound(masks, sizes, count, first_tied, full_mask & ~free, free, smallest)
                # dominated whatever its function is: its table is not needed
                if smallest >= bound:
                    continue
                fill_partial_table(columns, scored, target, parents, j, parts, table)
                start, end = function_start[j], function_start[j + 1]
                f = find_least_function(function_bits, function_size, start, end, table[0], table[1], bound)
                # without a listed function below the bound, an unlisted one may still be: then its size stays open
                if f >= 0 or complete_to[j] + 1 < bound:
                    masks[count] = full_mask
                    sizes[count] = function_size[f] if f >= 0 else -(complete_to[j] + 1)
                    cares[count] = table[0]
                    values[count] = table[1]
                    count += 1
            changed = next_combination(chosen, j - 1, num_candidates - 1)
            has_more = changed >= 0
    return count


@kernel
def list_tables(
    columns: U64,  # [v, w]
    scored: U64,  # [w]
    target: int,
    candidates: I64,  # [c] ascending
    max_parents: int,
    parts: U64,  # [2**max_parents, w] scratch
    masks: I64,  # [e] out: parent sets that determine the target, the empty set included
    cares: U64,  # [e] out
    values: U64,  # [e] out
) -> int:
    """List every set of at most `max_parents` candidates that determines the target, with its partial table."""
    count = 0
    chosen = np.empty(max_parents, np.int64)
    parents = np.empty(max_parents, np.int64)
    table = np.empty(2, np.uint64)
    cells = np.empty((2 << max_parents, columns.shape[1]), np.uint64)
    mixed = np.empty((1 << max_parents, 2, columns.shape[1]), np.uint64)
    num_candidates = candidates.shape[0]
    # without parents only a constant column is determined
    if fill_partial_table(columns, scored, target, parents, 0, parts, table):
        masks[0], cares[0], values[0] = 0, table[0], table[1]
        count = 1
    for j in range(1, min(max_parents, num_candidates) + 1):
        for i in range(j):
            chosen[i] = i
        changed = 0
        while changed >= 0:  # over the parents but the last; the first mixed cell excludes most candidates for it
            mask = np.int64(0)
            for i in range(j - 1):
                parents[i] = candidates[chosen[i]]
                mask |= np.int64(1) << parents[i]
            num_mixed = split_mixed_cells(columns, scored, target, parents, j - 1, changed, cells, mixed)
            for last in range(chosen[j - 2] + 1 if j > 1 else 0, num_candidates):
                if is_separating(columns, candidates[last], mixed, num_mixed):
                    # the rows are partitioned by the other parents already: only the last one splits them
                    fill_table_of_cells(columns, target, candidates[last], cells, j - 1, table)
                    masks[count] = mask | np.int64(1) << candidates[last]
                    cares[count] = table[0]
                    values[count] = table[1]
                    count += 1
            changed = next_combination(chosen, j - 1, num_candidates - 1)
    return count
