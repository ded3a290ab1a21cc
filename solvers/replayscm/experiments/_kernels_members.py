"""Kernels: mismatches of SCMs with hidden variables on observed rows, and keys of their readings of many worlds.

Letters of shapes: d = SCMs, m = mechanisms, r = rows, c = worlds, n = observed variables, w = words of 64 rows.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from calibrant.dsl._jit import kernel
from calibrant.solvers.replayscm.noise._kernels_masses import pattern_of

U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]


@kernel
def count_mismatches(
    order: I64,  # [d, m] as in replay_tables of dsl.replayscm._kernels_evaluator
    masks: I64,  # [d, m]
    tables: U64,  # [d, m]
    noisy: U64,  # [1] variables that noise flips; the others of `order` are hidden and computed
    readings: U64,  # [r] observed values
    targets: U64,  # [r]
    spans: I64,  # [c + 1] first row of each world, and the end
    wrong: I64,  # [d, c] out
) -> None:
    """Count the cells of each world that differ from each SCM's mechanism applied to the observed values."""
    bit_one = np.uint64(1)
    zero = np.uint64(0)
    for d in range(order.shape[0]):
        for c in range(wrong.shape[1]):
            num_wrong = 0
            for r in range(spans[c], spans[c + 1]):
                word = readings[r]
                for i in range(order.shape[1]):
                    bit = bit_one << np.uint64(order[d, i])
                    if targets[r] & bit != zero:
                        continue
                    pattern = pattern_of(word, masks[d, i])
                    is_one = tables[d, i] >> np.uint64(pattern) & bit_one != zero
                    if noisy[0] & bit != zero:
                        if is_one != (word & bit != zero):
                            num_wrong += 1
                    elif is_one:
                        word |= bit
            wrong[d, c] = num_wrong


@kernel
def reading_keys(
    order: I64,  # [d, m] as in count_mismatches
    masks: I64,  # [d, m]
    tables: U64,  # [d, m]
    values: U64,  # [n, w] bit columns of all rows: targets and roots, 0 elsewhere
    clamped: U64,  # [n, w]
    endogenous: I64,  # variables whose values make the key
    num_rows: int,  # rows of a world: 64 // num_rows worlds share a word, or a world has several words
    keys: U64,  # [c, d] out
) -> None:
    """Compute a key of the reading of each SCM in each world, 64 rows at a time; without noise."""
    num_vars, num_words = values.shape
    per_word = max(1, 64 // num_rows)
    blocks = (num_rows + 63) // 64
    is_exact = num_rows * endogenous.shape[0] <= 64
    columns = np.empty((max(num_vars, 64), num_words), np.uint64)
    leaves = np.empty((32, num_words), np.uint64)
    for d in range(order.shape[0]):
        # cell by cell: numba would take 2.5 s to compile the error that assigning an array may raise
        for v in range(num_vars):
            for w in range(num_words):
                columns[v, w] = values[v, w]
        for i in range(order.shape[1]):
            _mechanism_column(masks[d, i], tables[d, i], columns, leaves)
            v = order[d, i]
            # hidden variables have no given column and are never intervened on
            if v < num_vars:
                for w in range(num_words):
                    columns[v, w] = leaves[0, w] & ~clamped[v, w] | values[v, w]
            else:
                for w in range(num_words):
                    columns[v, w] = leaves[0, w]
        for c in range(keys.shape[0]):
            key = np.uint64(0)
            for block in range(blocks):
                word = c // per_word * blocks + block
                shift = np.uint64(c % per_word * num_rows)
                rows = min(64, num_rows - 64 * block)
                mask = np.uint64(0xFFFFFFFFFFFFFFFF) >> np.uint64(64 - rows)
                for i in range(endogenous.shape[0]):
                    field = columns[endogenous[i], word] >> shift & mask
                    if is_exact:
                        # fields of all variables side by side: the reading itself
                        key |= field << np.uint64(i * num_rows)
                    else:
                        # a bijection of words at every step; the factor is 2**64 over the golden ratio
                        key = (key ^ field) * np.uint64(0x9E3779B97F4A7C15)
                        key ^= key >> np.uint64(29)
            keys[c, d] = key


@kernel
def _mechanism_column(
    mask: int,  # parent set
    table: int,
    columns: U64,  # [n, w]
    leaves: U64,  # [32, w] scratch; row 0 is the result
) -> None:
    """Evaluate a truth table on columns: each parent in turn halves the table (Shannon expansion)."""
    num_words = leaves.shape[1]
    zero = np.uint64(0)
    bit_one = np.uint64(1)
    bits = np.uint64(table)
    if mask == 0:
        leaves[0] = zero - (bits & bit_one)
        return
    num_parents = 0
    remaining = mask
    while remaining:
        remaining &= remaining - 1
        num_parents += 1
    half = 1 << num_parents
    remaining = mask
    level = 0
    while remaining:
        u = 0
        while not remaining >> u & 1:
            u += 1
        remaining ^= 1 << u
        half >>= 1
        for q in range(half):
            if level == 0:
                # the lowest parent chooses between neighbours of the table
                low = zero - (bits >> np.uint64(2 * q) & bit_one)
                high = zero - (bits >> np.uint64(2 * q + 1) & bit_one)
                for w in range(num_words):
                    leaves[q, w] = low ^ (low ^ high) & columns[u, w]
            else:
                for w in range(num_words):
                    low = leaves[2 * q, w]
                    leaves[q, w] = low ^ (low ^ leaves[2 * q + 1, w]) & columns[u, w]
        level += 1


@kernel
def count_alike(
    keys: U64,  # [c, d] ascending along d
    alike: I64,  # [c] out
) -> None:
    """Count the pairs of equal keys in each row."""
    for c in range(keys.shape[0]):
        num_pairs = 0
        run = 0
        for d in range(1, keys.shape[1]):
            # the i-th key of a run of equal keys, from 0, pairs with i keys before it
            run = run + 1 if keys[c, d] == keys[c, d - 1] else 0
            num_pairs += run
        alike[c] = num_pairs
