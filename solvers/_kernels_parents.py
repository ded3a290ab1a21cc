"""Kernel: which parent sets determine a column, and the least-size function of each.

Dimension letters: v = variables, w = words of 64 rows, c = candidates, f = functions, e = entries.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dsl._jit import kernel

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
def determining_sets(
    columns: U64,  # [v, w] observed values
    scored: U64,  # [w] rows in which the target is not clamped
    target: int,
    candidates: I64,  # [c] variables that may be parents, ascending
    max_parents: int,
    function_bits: U64,  # [f] tables that depend on all their variables, by number of variables, then size, then bits
    function_size: U8,  # [f]
    function_start: I64,  # [max_parents + 2] where the tables of j variables begin
    complete_to: I64,  # [max_parents + 1] every function of j variables up to this size is listed
    parts: U64,  # [2**max_parents, w] scratch
    masks: I64,  # [e] out: parent set, bit per variable
    sizes: I64,  # [e] out: least size; negative: not known, at least its absolute value
    bits: U64,  # [e] out: table of the least-size function, or 0
    cares: U64,  # [e] out
    values: U64,  # [e] out
) -> int:
    """Parent sets that no subset of theirs makes superfluous; sets in ascending number, then lexicographic.

    A set is listed if it determines the target and a function that depends on all of it is, or may be, smaller than
    every function of a proper subset.
    """
    count = 0
    chosen = np.empty(max_parents, np.int64)
    parents = np.empty(max_parents, np.int64)
    table = np.empty(2, np.uint64)
    num_candidates = candidates.shape[0]
    for j in range(1, max_parents + 1):
        if j > num_candidates:
            break
        for i in range(j):
            chosen[i] = i
        while True:
            mask = np.int64(0)
            for i in range(j):
                parents[i] = candidates[chosen[i]]
                mask |= np.int64(1) << parents[i]
            bound = NO_BOUND
            for e in range(count):
                if masks[e] & ~mask == 0 and 0 < sizes[e] < bound:
                    bound = sizes[e]
            smallest = j + 1 if j > 1 else 1
            if smallest < bound and partial_table(columns, scored, target, parents, j, parts, table):
                care = table[0]
                value = table[1]
                found = False
                for f in range(function_start[j], function_start[j + 1]):
                    if function_size[f] >= bound:
                        break
                    if (function_bits[f] ^ value) & care == 0:
                        masks[count] = mask
                        sizes[count] = function_size[f]
                        bits[count] = function_bits[f]
                        cares[count] = care
                        values[count] = value
                        count += 1
                        found = True
                        break
                if not found and complete_to[j] + 1 < bound:
                    masks[count] = mask
                    sizes[count] = -(complete_to[j] + 1)
                    bits[count] = 0
                    cares[count] = care
                    values[count] = value
                    count += 1
            i = j - 1  # next combination in lexicographic order
            while i >= 0 and chosen[i] == num_candidates - j + i:
                i -= 1
            if i < 0:
                break
            chosen[i] += 1
            for later in range(i + 1, j):
                chosen[later] = chosen[later - 1] + 1
    return count
