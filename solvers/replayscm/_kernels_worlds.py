"""Kernels: what further worlds leave of the mechanisms that were counted, and what drawn members do in worlds.

A row of a world is a word with a bit per variable, and a word that tells which of them are targets. A parent set that
does not determine its variable is written as care 0 and value 1, which no evidence leads to.
Dimension letters: e = parent sets, of one variable after another; r = rows, b = worlds, f = functions, d = members.
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
PREFIX_ROWS = 16  # functions are looked up by the first so many rows of their tables


@inline_kernel
def _num_ones(word: np.uint64) -> int:
    count = 0
    while word:
        word &= word - ONE
        count += 1
    return count


@inline_kernel
def _pattern(word: np.uint64, mask: int) -> np.uint64:
    """The row of a table over the variables of a mask that a row of a world shows."""
    pattern = ZERO
    place = ZERO
    while mask:
        low = mask & -mask
        if word & np.uint64(low):
            pattern |= ONE << place
        place += ONE
        mask ^= low
    return pattern


@kernel
def subsets_below(masks: I64, order: I64, below: I64) -> None:
    """[e, k] where each set is without its i-th smallest member; -1 where that is not listed. One variable's sets.

    order: positions of the masks, ascending by mask
    """
    for e in range(masks.shape[0]):
        mask = masks[e]
        place = 0
        while mask:
            bit = mask & -mask
            wanted = masks[e] ^ bit
            low = 0
            high = masks.shape[0]
            while low < high:
                middle = (low + high) // 2
                if masks[order[middle]] < wanted:
                    low = middle + 1
                else:
                    high = middle
            found = low < masks.shape[0] and masks[order[low]] == wanted
            below[e, place] = order[low] if found else -1
            place += 1
            mask ^= bit


@kernel
def depending_on_all(masks: I64, cares: U64, values: U64, below: I64, start: int, end: int, numbers: U64) -> None:
    """[e] functions that agree and depend on all of a set, by Moebius inversion over subsets; modulo 2**64.

    start, end: the sets of one variable; positions in `below` count from `start`
    """
    together = 0
    for e in range(start, end):
        together |= masks[e]
        numbers[e] = ZERO
        if values[e] & ~cares[e] == ZERO:
            num_open = (1 << _num_ones(np.uint64(masks[e]))) - _num_ones(cares[e])
            if num_open < 64:
                numbers[e] = ONE << np.uint64(num_open)
    while together:
        bit = together & -together
        for e in range(start, end):
            if masks[e] & bit:
                under = below[e, _num_ones(np.uint64(masks[e] & (bit - 1)))]
                if under >= 0:
                    numbers[e] -= numbers[start + under]
        together ^= bit


@kernel
def after_rows(
    masks: I64,  # [e]
    starts: I64,  # [n + 1] where the sets of each variable begin
    cares: U64,  # [e] what was seen before
    values: U64,  # [e]
    below: I64,  # [e, k] as subsets_below leaves it, for each variable
    words: U64,  # [r]
    targets: U64,  # [r]
    first: int,
    last: int,
    new_cares: U64,  # [e] out
    new_values: U64,  # [e] out
) -> None:
    """Return what is seen over each parent set when the rows `first` to `last` - 1 are seen as well.

    Sets ascend. What determines the variable does so with further parents, so that once all of a table was seen the
    rows left tell nothing more of it.
    """
    for v in range(starts.shape[0] - 1):
        bit = ONE << np.uint64(v)
        for e in range(starts[v], starts[v + 1]):
            care = cares[e]
            value = values[e]
            if value & ~care == ZERO:
                num_parents = _num_ones(np.uint64(masks[e]))
                whole = ~ZERO >> np.uint64(64 - (1 << num_parents))
                determined = False
                for i in range(num_parents):
                    under = starts[v] + below[e, i]
                    if below[e, i] >= 0 and new_values[under] & ~new_cares[under] == ZERO:
                        determined = True
                        break
                for r in range(first, last):
                    if determined and care == whole:
                        break
                    if targets[r] & bit:
                        continue
                    row = ONE << _pattern(words[r], masks[e])
                    shown = words[r] & bit != ZERO
                    if care & row and (value & row != ZERO) != shown:
                        care = ZERO
                        value = ONE
                        break
                    care |= row
                    if shown:
                        value |= row
            new_cares[e] = care
            new_values[e] = value


@kernel
def agreeing_sizes(
    num_vars: int,
    care: np.uint64,
    value: np.uint64,
    bits: U64,  # [f] functions that depend on all variables, by number of variables, then bits
    sizes: U8,  # [f]
    prefixes: I64,  # [k + 1, 2**PREFIX_ROWS + 1] where the functions of j variables with these first rows begin
    wanted_size: int,
    wanted: int,
    histogram: I64,  # [size + 1] out: functions that agree, by least size; larger ones are left out
) -> np.uint64:
    """Counts what agrees; the table of the function of that size and number, by ascending bits (0 for none)."""
    histogram[:] = 0
    num_rows = 1 << num_vars
    shift = np.uint64(max(0, num_rows - PREFIX_ROWS))
    top = (ONE << np.uint64(min(num_rows, PREFIX_ROWS))) - ONE
    free = ~(care >> shift) & top
    chosen = ZERO
    found = ZERO
    while True:
        prefix = np.int64(value >> shift | chosen)
        for f in range(prefixes[num_vars, prefix], prefixes[num_vars, prefix + 1]):
            if (bits[f] ^ value) & care == ZERO and sizes[f] < histogram.shape[0]:
                if sizes[f] == wanted_size and histogram[wanted_size] == wanted:
                    found = bits[f]
                histogram[sizes[f]] += 1
        chosen = (chosen - free) & free
        if not chosen:
            return found


@kernel
def size_histograms(
    masks: I64,
    cares: U64,
    values: U64,
    bits: U64,
    sizes: U8,
    prefixes: I64,
    histograms: I64,  # [e, size + 1] out
) -> None:
    """`agreeing_sizes` of every set but the empty one."""
    for e in range(masks.shape[0]):
        if masks[e]:
            num_vars = _num_ones(np.uint64(masks[e]))
            agreeing_sizes(num_vars, cares[e], values[e], bits, sizes, prefixes, -1, 0, histograms[e])


@kernel
def weights_after(
    masks: I64,  # [e] this and what follows as in after_rows
    starts: I64,
    cares: U64,
    values: U64,
    below: I64,  # [e, k]
    words: U64,
    targets: U64,
    spans: I64,  # [b + 1] where the rows of each world begin
    bits: U64,  # [f] as in agreeing_sizes
    sizes: U8,
    prefixes: I64,
    by_size: I64,  # [size + 1] weight of a function of each size; [0]: every function weighs 1, whatever its size
    constants: I64,  # [2] size of each constant's formula; negative if it has none
    weights: U64,  # [b, e] out
) -> None:
    """The weight of each parent set if each world in turn is seen as well."""
    num_sets = masks.shape[0]
    new_cares = np.empty(num_sets, np.uint64)
    new_values = np.empty(num_sets, np.uint64)
    histogram = np.empty(by_size.shape[0], np.int64)
    for b in range(spans.shape[0] - 1):
        after_rows(masks, starts, cares, values, below, words, targets, spans[b], spans[b + 1], new_cares, new_values)
        if by_size.shape[0] == 0:
            for v in range(starts.shape[0] - 1):
                depending_on_all(masks, new_cares, new_values, below, starts[v], starts[v + 1], weights[b])
            continue
        for e in range(num_sets):
            weight = 0
            if new_values[e] & ~new_cares[e] == ZERO:
                if masks[e]:
                    num_vars = _num_ones(np.uint64(masks[e]))
                    agreeing_sizes(num_vars, new_cares[e], new_values[e], bits, sizes, prefixes, -1, 0, histogram)
                    for size in range(histogram.shape[0]):
                        weight += histogram[size] * by_size[size]
                else:
                    for bit in range(2):
                        agrees = new_cares[e] == ZERO or new_values[e] == np.uint64(bit)
                        if agrees and 0 <= constants[bit] < by_size.shape[0]:
                            weight += by_size[constants[bit]]
            weights[b, e] = np.uint64(weight)


@kernel
def outcomes(
    order: I64,  # [d, m] endogenous variables of each member, parents first
    masks: I64,  # [d, m] their parent sets
    tables: U64,  # [d, m] their functions over these
    words: U64,  # [r] targets and roots; other variables are not read
    targets: U64,  # [r]
    shown: U64,  # [d, r] out
) -> None:
    """Return what each member does in each row: targets and roots as they are, everything else computed."""
    for d in range(order.shape[0]):
        for r in range(words.shape[0]):
            word = words[r]
            for i in range(order.shape[1]):
                bit = ONE << np.uint64(order[d, i])
                if targets[r] & bit == ZERO:
                    word &= ~bit
                    if tables[d, i] >> _pattern(word, masks[d, i]) & ONE:
                        word |= bit
            shown[d, r] = word
