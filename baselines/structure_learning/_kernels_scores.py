"""Kernels: local scores of discrete structure learning from packed binary columns.

Dimension letters: v = variables, w = words of 64 rows, n = row counts from 0 to the number of rows, t = rows of a table
of terms, s = cache slots. Sets of variables are masks, bit per variable index.

Every score is a sum over the parent configurations that occur, plus a term for the number of parents. A configuration
has a term for its number of rows, and one for each of the two counts of the child in it. Terms depend on small integers
only, so they are tabulated, and the time of a score is that of counting.

numba counts references to the arrays of a `Scoring` at each call that passes one, which takes longer than many scores.
So kernels that are called once per score are compiled inline into their callers.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from calibrant.dsl._jit import inline_kernel, kernel

U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]
F64 = npt.NDArray[np.float64]

EMPTY = -1  # the key of a cache slot that holds nothing


class Scoring(NamedTuple):
    """Data of local scores, and their cache.

    columns: [v, w] values; counted_rows: [v, w] rows that count if the variable is the child
    row_terms, cell_terms: [t, n] term of a configuration, and of a value of the child in it
    by_occupied: whether t is the number of configurations that occur; if not, it is the number of parents
    set_terms: [v + 1] term of a parent set, by its size
    keys, values: [v, s] direct-mapped cache of scores by parent set
    parts: [2, rows + 1, w] scratch
    """

    columns: U64
    counted_rows: U64
    row_terms: F64
    cell_terms: F64
    by_occupied: bool
    set_terms: F64
    keys: I64
    values: F64
    parts: U64


@kernel
def popcount(word: np.uint64) -> int:
    """Count the ones by the parallel bit count of Warren, Hacker's Delight, section 5-1."""
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return int(np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56)))


@kernel
def set_size(mask: int) -> int:
    return popcount(np.uint64(mask))


@kernel
def lowest(mask: int) -> int:
    """Return the index of the lowest member of a non-empty set."""
    return popcount(np.uint64((mask & -mask) - 1))


@kernel
def copy(source: npt.NDArray[Any], target: npt.NDArray[Any]) -> None:
    """Copy element by element: for an assignment to a slice numba takes seconds to compile its error message."""
    for i in range(source.shape[0]):
        target[i] = source[i]


@inline_kernel
def split(parts: U64, num_parts: int, column: U64, out: U64) -> int:
    """Split every part by a column, without empty parts; return the number of parts in `out`.

    parts, out: [part, w] masks of rows; `out` needs one row more than the number of parts returned
    """
    count = 0
    for p in range(num_parts):
        for value in range(2):
            union = np.uint64(0)
            flip = np.uint64(0) if value else ~np.uint64(0)
            for w in range(column.shape[0]):
                word = parts[p, w] & (column[w] ^ flip)
                out[count, w] = word
                union |= word
            if union:
                count += 1
    return count


@inline_kernel
def sum_of_terms(scoring: Scoring, child: int, num_parents: int, parts: U64, num_parts: int) -> float:
    """Return the score of a child over a partition of (a superset of) its counted rows; empty parts add nothing."""
    column = scoring.columns[child]
    counted_rows = scoring.counted_rows[child]
    num_words = column.shape[0]
    row = num_parents
    if scoring.by_occupied:
        row = 0
        for p in range(num_parts):
            union = np.uint64(0)
            for w in range(num_words):
                union |= parts[p, w] & counted_rows[w]
            if union:
                row += 1
    total = float(scoring.set_terms[num_parents])
    for p in range(num_parts):
        rows = 0
        ones = 0
        for w in range(num_words):
            word = parts[p, w] & counted_rows[w]
            rows += popcount(word)
            ones += popcount(word & column[w])
        if rows:
            total += scoring.row_terms[row, rows]
            total += scoring.cell_terms[row, ones] + scoring.cell_terms[row, rows - ones]
    return total


@kernel
def local_score(scoring: Scoring, child: int, parents: int) -> float:
    """Return the score of one child given a set of parents, computed from the rows."""
    now = 0
    parts = scoring.parts
    union = np.uint64(0)
    for w in range(scoring.columns.shape[1]):
        parts[0, 0, w] = scoring.counted_rows[child, w]
        union |= scoring.counted_rows[child, w]
    num_parts = 1 if union else 0
    unsplit = parents
    while unsplit:
        num_parts = split(parts[now], num_parts, scoring.columns[lowest(unsplit)], parts[1 - now])
        now = 1 - now
        unsplit &= unsplit - 1
    return sum_of_terms(scoring, child, set_size(parents), parts[now], num_parts)


@inline_kernel
def remembered_score(scoring: Scoring, child: int, parents: int) -> float:
    """Return `local_score`, from the cache if it is there."""
    slots = scoring.keys.shape[1]
    folded = parents ^ (parents >> 12) * 0x9E5 ^ (parents >> 24) * 0x7F3 ^ (parents >> 36) * 0x3B5 ^ (parents >> 48)
    slot = folded & (slots - 1)  # up to 12 variables this is the set itself
    if scoring.keys[child, slot] != parents:
        scoring.values[child, slot] = local_score(scoring, child, parents)
        scoring.keys[child, slot] = parents
    return float(scoring.values[child, slot])


@kernel
def scores_of(scoring: Scoring, children: I64, parents: I64, out: F64) -> None:
    """Fill in many local scores; children, parents and out have one length."""
    for i in range(children.shape[0]):
        out[i] = remembered_score(scoring, children[i], parents[i])


@kernel
def dirichlet_terms(cell_prior: F64, row_prior: F64, row_terms: F64, cell_terms: F64) -> None:
    """Fill in the terms of a marginal likelihood with a Dirichlet prior.

    Heckerman, Geiger and Chickering 1995, equation 13: cell_prior[t] is alpha_jk, row_prior[t] is alpha_j
    """
    for t in range(cell_prior.shape[0]):
        row_start = math.lgamma(row_prior[t])
        cell_start = math.lgamma(cell_prior[t])
        for n in range(row_terms.shape[1]):
            row_terms[t, n] = row_start - math.lgamma(row_prior[t] + n)
            cell_terms[t, n] = math.lgamma(cell_prior[t] + n) - cell_start


@kernel
def pack_rows(rows: U64, columns: U64) -> None:
    """Fill in columns [v, w] from rows [r], in which bit v is the value of variable v."""
    for v in range(columns.shape[0]):
        for w in range(columns.shape[1]):
            columns[v, w] = 0
    for r in range(rows.shape[0]):
        bit = np.uint64(1) << np.uint64(r & 63)
        word = rows[r]
        for v in range(columns.shape[0]):
            if word >> np.uint64(v) & np.uint64(1):
                columns[v, r >> 6] |= bit


@kernel
def score_table(
    scoring: Scoring, allowed: I64, required: I64, max_parents: int, first: int, prefix: int, table: F64
) -> None:
    """Fill in the local scores of the parent sets that constraints admit, table [v, 2**v]; other entries stay.

    allowed, required: [v] masks
    first, prefix: restriction to the parent sets whose members before variable `first` are those of `prefix`

    Parent sets are enumerated depth first, so that all children share one refinement of the rows per set.
    """
    num_vars, num_words = scoring.columns.shape
    num_rows = scoring.row_terms.shape[1] - 1
    deepest = min(max_parents, num_vars - 1)
    for v in range(num_vars):
        if set_size(required[v]) > deepest:
            deepest = set_size(required[v])
    if set_size(prefix) > deepest:
        return
    parts = np.empty((deepest + 1, min(num_rows, 1 << deepest) + 1, num_words), np.uint64)
    num_parts = np.zeros(deepest + 1, np.int64)
    upcoming = np.zeros(deepest + 1, np.int64)  # the next variable to add at each depth
    for w in range(num_words):
        num_bits = min(64, num_rows - 64 * w)
        parts[0, 0, w] = ~np.uint64(0) if num_bits == 64 else (np.uint64(1) << np.uint64(num_bits)) - np.uint64(1)
    num_parts[0] = 1 if num_rows else 0
    depth = 0
    for v in range(first):
        if prefix >> v & 1:
            num_parts[depth + 1] = split(parts[depth], num_parts[depth], scoring.columns[v], parts[depth + 1])
            depth += 1
    lowest = depth
    upcoming[depth] = first
    chosen = prefix
    is_new = True
    while depth >= lowest:
        if is_new:
            _score_children(scoring, allowed, required, max_parents, chosen, parts[depth], num_parts[depth], table)
        v = upcoming[depth]
        is_new = v < num_vars and depth < deepest
        if is_new:
            upcoming[depth] = v + 1
            num_parts[depth + 1] = split(parts[depth], num_parts[depth], scoring.columns[v], parts[depth + 1])
            chosen ^= 1 << v
            depth += 1
            upcoming[depth] = v + 1
        else:
            depth -= 1
            if depth >= lowest:
                chosen ^= 1 << (upcoming[depth] - 1)


@inline_kernel
def _score_children(
    scoring: Scoring, allowed: I64, required: I64, max_parents: int, chosen: int, parts: U64, num_parts: int, table: F64
) -> None:
    """Fill in the column of the table for one parent set."""
    size = set_size(chosen)
    for child in range(table.shape[0]):
        fits = chosen & ~allowed[child] == 0 and required[child] & ~chosen == 0 and not chosen >> child & 1
        if fits and (size <= max_parents or chosen == required[child]):
            table[child, chosen] = sum_of_terms(scoring, child, size, parts, num_parts)
