"""Kernels: conditioning counted mechanisms on further worlds.

A row of a world is a word of values and a word of intervention targets, a bit per variable. What the rows show of the
truth table over a parent set are two words: bit r of `care` is set if row r was seen, bit r of `value` is its outcome.
A parent set that does not determine its variable is encoded as care 0 and value 1, which no evidence leads to.
Letters of shapes: e = parent sets, variable by variable; r = rows, b = worlds, f = functions, k = most parents of a
set, n = variables.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from calibrant.dsl._jit import inline_kernel, kernel

U64 = npt.NDArray[np.uint64]
U8 = npt.NDArray[np.uint8]
I64 = npt.NDArray[np.int64]

ONE = np.uint64(1)
ZERO = np.uint64(0)
# a prefix is the highest rows of a table; 16 rows are the whole table of 4 variables; the index takes 0.5 MB for each
# number of variables
PREFIX_ROWS = 16


@inline_kernel
def _num_ones(word: np.uint64) -> int:
    count = 0
    while word:
        word &= word - ONE
        count += 1
    return count


@inline_kernel
def _pattern(word: np.uint64, mask: int) -> np.uint64:
    """Return the row of a truth table over the variables of a mask that corresponds to a row of a world."""
    pattern = ZERO
    position = ZERO
    while mask:
        low = mask & -mask
        if word & np.uint64(low):
            pattern |= ONE << position
        position += ONE
        mask ^= low
    return pattern


@kernel
def find_subsets(masks: I64, order: I64, below: I64) -> None:
    """Find for each set the positions of its subsets without one member; -1 for a subset that is not listed.

    order: positions of the masks of one variable, ascending by mask
    below: [e, k] out: position of set e without its i-th smallest member
    """
    for e in range(masks.shape[0]):
        mask = masks[e]
        member = 0
        while mask:
            bit = mask & -mask
            subset = masks[e] ^ bit
            low = 0
            high = masks.shape[0]
            while low < high:
                middle = (low + high) // 2
                if masks[order[middle]] < subset:
                    low = middle + 1
                else:
                    high = middle
            is_listed = low < masks.shape[0] and masks[order[low]] == subset
            below[e, member] = order[low] if is_listed else -1
            member += 1
            mask ^= bit


@kernel
def count_essential(masks: I64, cares: U64, values: U64, below: I64, start: int, end: int, counts: U64) -> None:
    """Count, modulo 2**64, the functions that agree with the rows seen and depend on all variables of a set.

    By Moebius inversion over subsets.

    start, end: the sets of one variable; positions in `below` count from `start`
    counts: [e] out
    """
    union = 0
    for e in range(start, end):
        union |= masks[e]
        counts[e] = ZERO
        if values[e] & ~cares[e] == ZERO:
            num_open = (1 << _num_ones(np.uint64(masks[e]))) - _num_ones(cares[e])
            # 2**64 (6 parents, no row seen) is 0 modulo 2**64; the final count fits in a word: at most
            # 18,446,744,047,940,725,978 functions depend on 6 variables (OEIS A000371)
            if num_open < 64:
                counts[e] = ONE << np.uint64(num_open)
    # one variable at a time, as in the fast Moebius transform: k subtractions a set instead of 2**k
    while union:
        bit = union & -union
        for e in range(start, end):
            if masks[e] & bit:
                smaller = below[e, _num_ones(np.uint64(masks[e] & (bit - 1)))]
                if smaller >= 0:
                    counts[e] -= counts[start + smaller]
        union ^= bit


@kernel
def add_rows(
    masks: I64,  # [e]
    starts: I64,  # [n + 1] where the sets of each variable begin
    cares: U64,  # [e] what was seen before
    values: U64,  # [e]
    below: I64,  # [e, k] as find_subsets leaves it, for each variable
    words: U64,  # [r]
    targets: U64,  # [r]
    first: int,
    last: int,
    new_cares: U64,  # [e] out
    new_values: U64,  # [e] out
) -> None:
    """Add the rows `first` to `last` - 1 to the partial table of each parent set.

    Requires subsets before their supersets, as they decide whether a set determines the variable.
    """
    for v in range(starts.shape[0] - 1):
        bit = ONE << np.uint64(v)
        for e in range(starts[v], starts[v + 1]):
            care = cares[e]
            value = values[e]
            if value & ~care == ZERO:
                num_parents = _num_ones(np.uint64(masks[e]))
                all_rows = ~ZERO >> np.uint64(64 - (1 << num_parents))
                is_determined = False
                # if a subset determines the variable, so does the set; with a full table no row can change it
                for i in range(num_parents):
                    smaller = starts[v] + below[e, i]
                    if below[e, i] >= 0 and new_values[smaller] & ~new_cares[smaller] == ZERO:
                        is_determined = True
                        break
                for r in range(first, last):
                    if is_determined and care == all_rows:
                        break
                    if targets[r] & bit:
                        continue
                    row = ONE << _pattern(words[r], masks[e])
                    is_one = words[r] & bit != ZERO
                    if care & row and (value & row != ZERO) != is_one:
                        care = ZERO
                        value = ONE
                        break
                    care |= row
                    if is_one:
                        value |= row
            new_cares[e] = care
            new_values[e] = value


@kernel
def count_agreeing(
    num_vars: int,
    care: np.uint64,
    value: np.uint64,
    bits: U64,  # [f] functions that depend on all variables, by number of variables, then bits
    sizes: U8,  # [f]
    prefixes: I64,  # [k + 1, 2**PREFIX_ROWS + 1] where the functions of j variables with this prefix begin
    selected_size: int,  # -1: select none
    selected_rank: int,  # among the agreeing functions of this size, by ascending bits
    histogram: I64,  # [size + 1] out: functions that agree, by least size; larger ones are left out
) -> np.uint64:
    """Count the agreeing functions by size; return the table of the selected one, 0 if there is none."""
    histogram[:] = 0
    num_rows = 1 << num_vars
    shift = np.uint64(max(0, num_rows - PREFIX_ROWS))
    top = (ONE << np.uint64(min(num_rows, PREFIX_ROWS))) - ONE
    free = ~(care >> shift) & top
    chosen = ZERO
    selected = ZERO
    # visit only the prefixes that complete the rows seen
    while True:
        prefix = np.int64(value >> shift | chosen)
        for f in range(prefixes[num_vars, prefix], prefixes[num_vars, prefix + 1]):
            if (bits[f] ^ value) & care == ZERO and sizes[f] < histogram.shape[0]:
                if sizes[f] == selected_size and histogram[selected_size] == selected_rank:
                    selected = bits[f]
                histogram[sizes[f]] += 1
        # next subset of the free rows, ascending, as functions of a prefix are: this numbers functions by bits
        chosen = (chosen - free) & free
        if not chosen:
            return selected


@kernel
def fill_histograms(
    masks: I64,
    cares: U64,
    values: U64,
    bits: U64,
    sizes: U8,
    prefixes: I64,
    histograms: I64,  # [e, size + 1] out
) -> None:
    """Count the agreeing functions of every set but the empty one, by size."""
    for e in range(masks.shape[0]):
        if masks[e]:
            num_vars = _num_ones(np.uint64(masks[e]))
            count_agreeing(num_vars, cares[e], values[e], bits, sizes, prefixes, -1, 0, histograms[e])


@kernel
def weigh_after_worlds(
    masks: I64,  # [e] this and what follows as in add_rows
    starts: I64,
    cares: U64,
    values: U64,
    below: I64,  # [e, k]
    words: U64,
    targets: U64,
    spans: I64,  # [b + 1] where the rows of each world begin
    bits: U64,  # [f] as in count_agreeing
    sizes: U8,
    prefixes: I64,
    by_size: I64,  # [size + 1] weight of a function of each size; empty: no size limit, every function weighs 1
    constants: I64,  # [2] size of each constant's formula; negative if it has none
    weights: U64,  # [b, e] out
) -> None:
    """Compute the weight of each parent set after each world in turn."""
    num_sets = masks.shape[0]
    new_cares = np.empty(num_sets, np.uint64)
    new_values = np.empty(num_sets, np.uint64)
    histogram = np.empty(by_size.shape[0], np.int64)
    for b in range(spans.shape[0] - 1):
        add_rows(masks, starts, cares, values, below, words, targets, spans[b], spans[b + 1], new_cares, new_values)
        # without a size limit the counts follow by inversion, k subtractions a set, and no function is visited
        if by_size.shape[0] == 0:
            for v in range(starts.shape[0] - 1):
                count_essential(masks, new_cares, new_values, below, starts[v], starts[v + 1], weights[b])
            continue
        for e in range(num_sets):
            weight = 0
            if new_values[e] & ~new_cares[e] == ZERO:
                if masks[e]:
                    num_vars = _num_ones(np.uint64(masks[e]))
                    count_agreeing(num_vars, new_cares[e], new_values[e], bits, sizes, prefixes, -1, 0, histogram)
                    for size in range(histogram.shape[0]):
                        weight += histogram[size] * by_size[size]
                else:
                    for bit in range(2):
                        # a table without variables has one row: care is 0 or 1
                        agrees = new_cares[e] == ZERO or new_values[e] == np.uint64(bit)
                        if agrees and 0 <= constants[bit] < by_size.shape[0]:
                            weight += by_size[constants[bit]]
            weights[b, e] = np.uint64(weight)
