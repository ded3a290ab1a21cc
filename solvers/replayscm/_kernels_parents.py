"""Kernel: which parent sets determine a column, and the least-size function of each.

Dimension letters: v = variables, w = words of 64 rows, c = candidates, f = functions, e = entries.
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
def partial_table(columns: U64, scored: U64, target: int, parents: I64, num_parents: int, parts: U64, out: U64) -> bool:
    """Care and value words of the target over the parents; False if two scored rows contradict each other.

    parts: [2**num_parents, w] scratch; out: [2] care and value
    """
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
    """Step to the next combination in lexicographic order; the first place that changed, -1 after the last one."""
    i = num_chosen - 1
    while i >= 0 and chosen[i] == num_candidates - num_chosen + i:
        i -= 1
    if i >= 0:
        chosen[i] += 1
        for later in range(i + 1, num_chosen):
            chosen[later] = chosen[later - 1] + 1
    return i


@kernel
def least_function(bits: U64, sizes: U8, start: int, end: int, care: np.uint64, value: np.uint64, bound: int) -> int:
    """Position of the first function below `bound` that agrees on `care`; -1 if there is none."""
    for f in range(start, end):
        if sizes[f] >= bound:
            return -1
        if (bits[f] ^ value) & care == 0:
            return f
    return -1


@kernel
def mixed_cells(
    columns: U64, scored: U64, target: int, parents: I64, num_parents: int, changed: int, cells: U64, mixed: U64
) -> int:
    """The cells that the parents cut the scored rows into in which the target has both values; how many there are.

    changed: position of the first parent that is new; the cells of those before it are as the last call left them
    cells: [2**(max_parents + 1), w] cell p of the first i parents is in place 2**i + p
    mixed: [2**max_parents, 2, w] out: where the target is 1 and where it is 0
    """
    num_words = columns.shape[1]
    for w in range(num_words):
        cells[1, w] = scored[w]
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
        if ones and zeros:
            count += 1
    return count


@kernel
def separates(columns: U64, candidate: int, mixed: U64, num_mixed: int) -> bool:
    """Return whether one more parent leaves the target a function: in every cell it tells the ones from the zeros."""
    for cell in range(num_mixed):
        seen_1 = np.uint64(0)  # whether the target was seen to be 1 where the candidate is 1, and so on
        seen_0 = np.uint64(0)
        both = np.uint64(0)
        also = np.uint64(0)
        for w in range(columns.shape[1]):
            column = columns[candidate, w]
            seen_1 |= mixed[cell, 0, w] & column
            seen_0 |= mixed[cell, 1, w] & column
            both |= mixed[cell, 0, w] & ~column
            also |= mixed[cell, 1, w] & ~column
        if (seen_1 and seen_0) or (both and also):
            return False
    return True


@kernel
def table_of_cells(columns: U64, target: int, last: int, cells: U64, num_parents: int, out: U64) -> None:
    """Care and value words over so many parents, whose cells `mixed_cells` left, and one more that determines it."""
    care = np.uint64(0)
    value = np.uint64(0)
    for p in range(1 << num_parents):
        row = np.uint64(1) << np.uint64(p)
        after = row << np.uint64(1 << num_parents)
        for w in range(columns.shape[1]):
            cell = cells[(1 << num_parents) + p, w]
            with_it = cell & columns[last, w]
            without = cell ^ with_it
            if with_it:
                care |= after
                if with_it & columns[target, w]:
                    value |= after
            if without:
                care |= row
                if without & columns[target, w]:
                    value |= row
    out[0] = care
    out[1] = value


@kernel
def worth_below(masks: I64, sizes: I64, count: int, tied: int, own: int, free: int, floor: int) -> int:
    """The size below which a function has to stay to be worth its parents, by the sets that are listed so far.

    tied: position of the first listed set of as many parents; at the same size the tie rule decides between those
    own: the parents, without the free ones
    floor: nothing smaller is possible; the answer may be too large if it is at most that
    """
    bound = NO_BOUND
    for e in range(count):
        if masks[e] & ~free & ~own == 0 and sizes[e] > 0:
            bound = min(bound, sizes[e] + (1 if e >= tied else 0))
            if bound <= floor:
                break
    return bound


@kernel
def determining_sets(
    columns: U64,  # [v, w] observed values
    scored: U64,  # [w] rows in which the target is not clamped
    target: int,
    candidates: I64,  # [c] variables that may be parents, ascending
    free: int,  # those of them that come before everybody, bit per variable
    max_parents: int,
    function_bits: U64,  # [f] tables that depend on all their variables, by number of variables, then size, then bits
    function_size: U8,  # [f]
    function_start: I64,  # [max_parents + 2] where the tables of j variables begin
    complete_to: I64,  # [max_parents + 1] every function of j variables up to this size is listed
    masks: I64,  # [e] out: parent set, bit per variable
    sizes: I64,  # [e] out: least size; negative: not known, at least its absolute value
    cares: U64,  # [e] out
    values: U64,  # [e] out
) -> int:
    """Parent sets that no other makes superfluous; sets in ascending number, then lexicographic.

    A set is listed if it determines the target and a function that depends on all of it is, or may be, smaller than
    every function of a set whose parents are free or among its own; at the same size, of fewer parents.
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
        tied = count
        smallest = j + 1 if j > 1 else 1
        for i in range(j):
            chosen[i] = i
        more = True
        changed = 0
        while more:  # all but the last parent; every later candidate is tried as the last
            mask = np.int64(0)
            for i in range(j - 1):
                parents[i] = candidates[chosen[i]]
                mask |= np.int64(1) << parents[i]
            num_mixed = mixed_cells(columns, scored, target, parents, j - 1, changed, cells, mixed)
            for last in range(chosen[j - 2] + 1 if j > 1 else 0, num_candidates):
                if not separates(columns, candidates[last], mixed, num_mixed):
                    continue
                parents[j - 1] = candidates[last]
                every = mask | np.int64(1) << candidates[last]
                bound = worth_below(masks, sizes, count, tied, every & ~free, free, smallest)
                if smallest >= bound:
                    continue
                partial_table(columns, scored, target, parents, j, parts, table)
                start, end = function_start[j], function_start[j + 1]
                f = least_function(function_bits, function_size, start, end, table[0], table[1], bound)
                if f >= 0 or complete_to[j] + 1 < bound:
                    masks[count] = every
                    sizes[count] = function_size[f] if f >= 0 else -(complete_to[j] + 1)
                    cares[count] = table[0]
                    values[count] = table[1]
                    count += 1
            changed = next_combination(chosen, j - 1, num_candidates - 1)
            more = changed >= 0
    return count


@kernel
def all_tables(
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
    """Every set of at most `max_parents` candidates over which the target is a function, with what is seen of it."""
    count = 0
    chosen = np.empty(max_parents, np.int64)
    parents = np.empty(max_parents, np.int64)
    table = np.empty(2, np.uint64)
    cells = np.empty((2 << max_parents, columns.shape[1]), np.uint64)
    mixed = np.empty((1 << max_parents, 2, columns.shape[1]), np.uint64)
    num_candidates = candidates.shape[0]
    if partial_table(columns, scored, target, parents, 0, parts, table):
        masks[0], cares[0], values[0] = 0, table[0], table[1]
        count = 1
    for j in range(1, min(max_parents, num_candidates) + 1):
        for i in range(j):
            chosen[i] = i
        changed = 0
        while changed >= 0:  # all but the last parent; most last ones are ruled out by the first cell
            mask = np.int64(0)
            for i in range(j - 1):
                parents[i] = candidates[chosen[i]]
                mask |= np.int64(1) << parents[i]
            num_mixed = mixed_cells(columns, scored, target, parents, j - 1, changed, cells, mixed)
            for last in range(chosen[j - 2] + 1 if j > 1 else 0, num_candidates):
                if separates(columns, candidates[last], mixed, num_mixed):
                    table_of_cells(columns, target, candidates[last], cells, j - 1, table)
                    masks[count] = mask | np.int64(1) << candidates[last]
                    cares[count] = table[0]
                    values[count] = table[1]
                    count += 1
            changed = next_combination(chosen, j - 1, num_candidates - 1)
    return count


@kernel
def size_histograms(
    num_parents: I64,  # [e] number of parents of each set
    cares: U64,  # [e]
    values: U64,  # [e]
    function_bits: U64,  # [f] as in determining_sets
    function_size: U8,  # [f]
    function_start: I64,  # [k + 2]
    function_end: I64,  # [k + 1] past the last function of j variables that depends on all of them
    max_size: int,
    histograms: I64,  # [e, max_size + 1] out: functions of exactly these parents that agree, by least size
) -> None:
    """Return how many functions that depend on all of a set's variables agree with what is seen, by size."""
    for e in range(num_parents.shape[0]):
        j = num_parents[e]
        for f in range(function_start[j], function_end[j]):
            if function_size[f] > max_size:
                break
            if (function_bits[f] ^ values[e]) & cares[e] == 0:
                histograms[e, function_size[f]] += 1
