"""Kernels: sums over acyclic parent-set assignments, on numbers of several words.

Every number is `l` words of 64 bits (`limbs`), least significant first. Arithmetic is modulo 2**(64 l): intermediate
differences may wrap around, and a result that fits is right. Letters of shapes: m = variables, x = parent sets,
b = batch (rows of weights), e = weights of a row.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from calibrant.dsl._jit import inline_kernel, kernel

U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]


@inline_kernel
def _high_word(a: np.uint64, b: np.uint64) -> np.uint64:
    """Return the upper 64 bits of a product."""
    # schoolbook multiplication of 32-bit halves: there is no 128-bit integer here. Neither cross term overflows:
    # (2**32 - 1)**2 + (2**32 - 1) < 2**64
    low = np.uint64(0xFFFFFFFF)
    half_bits = np.uint64(32)
    low_cross = (a >> half_bits) * (b & low) + ((a & low) * (b & low) >> half_bits)
    high_cross = (a & low) * (b >> half_bits) + (low_cross & low)
    return (a >> half_bits) * (b >> half_bits) + (low_cross >> half_bits) + (high_cross >> half_bits)


@inline_kernel
def _multiply(number: U64, factor: np.uint64, limbs: int, out: U64) -> bool:
    """Set `out` to number * factor, modulo 2**(64 limbs); return False if that is 0."""
    carry = np.uint64(0)
    any_bits = np.uint64(0)
    for i in range(limbs):
        high = _high_word(number[i], factor)
        word = number[i] * factor + carry
        # high is at most 2**64 - 2, the upper word of (2**64 - 1)**2, so that adding 1 cannot overflow
        carry = high + np.uint64(1) if word < carry else high
        out[i] = word
        any_bits |= word
    return bool(any_bits)


@inline_kernel
def _add(number: U64, limbs: int, first: int, out: U64) -> None:
    """Add number to `out`, shifted up by `first` words."""
    carry = np.uint64(0)
    for i in range(first, limbs):
        word = out[i] + carry
        carry = np.uint64(1) if word < carry else np.uint64(0)
        word += number[i - first]
        if word < number[i - first]:
            carry = np.uint64(1)
        out[i] = word


@inline_kernel
def _subtract(number: U64, limbs: int, out: U64) -> None:
    """Subtract number from `out`; below 0 the result wraps around."""
    borrow = np.uint64(0)
    for i in range(limbs):
        word = out[i]
        difference = word - number[i]
        next_borrow = np.uint64(1) if difference > word else np.uint64(0)
        out[i] = difference - borrow
        if out[i] > difference:
            next_borrow = np.uint64(1)
        borrow = next_borrow


@inline_kernel
def _position(bit: int) -> int:
    """Return the index of the only set bit of a word."""
    position = 0
    while bit >> position != 1:
        position += 1
    return position


@kernel
def subset_sums(
    weights: U64,  # [e]
    entries: I64,  # [x] index in `weights` of each parent set
    inside: I64,  # [x] its members among the m variables, bit per position
    starts: I64,  # [m + 1] where the parent sets of each variable begin
    sums: U64,  # [m, 2**m] out: weight of the parent sets whose variables lie in a set
) -> None:
    """Sum the weights of each variable's parent sets within every subset, modulo 2**64 (zeta transform)."""
    num_vars = starts.shape[0] - 1
    for i in range(num_vars):
        row = sums[i]
        row[:] = np.uint64(0)
        for x in range(starts[i], starts[i + 1]):
            row[inside[x]] += weights[entries[x]]
        # one dimension at a time: m 2**m additions a variable. Sums fit a word: `word_weights` refuses any that do not
        for j in range(num_vars):
            bit = 1 << j
            for chosen in range(1 << num_vars):
                if chosen & bit:
                    row[chosen] += row[chosen ^ bit]


@kernel
def count_terms(
    sums: U64,  # [m, 2**m] as subset_sums leaves them
    reached: npt.NDArray[np.bool_],  # [2**m] out, False before: whether some topological order begins with a set
) -> int:
    """Count the terms of `acyclic_totals`: for each order ideal, the sets of variables that may come next."""
    num_vars = sums.shape[0]
    terms = 0
    reached[0] = True
    for placed in range(reached.shape[0] - 1):
        if reached[placed]:
            num_eligible = 0
            for i in range(num_vars):
                if not placed >> i & 1 and sums[i, placed] != np.uint64(0):
                    num_eligible += 1
                    reached[placed | 1 << i] = True
            if num_eligible:
                terms += 1 << num_eligible
    return terms


@kernel
def acyclic_totals(
    weights: U64,  # [b, e]
    entries: I64,  # [x] as in subset_sums
    inside: I64,  # [x]
    starts: I64,  # [m + 1]
    totals: U64,  # [b, l] out
) -> None:
    """Sum by inclusion and exclusion over the set of sinks, as solvers.acyclic.count does on Python's integers.

    O(3**m) multiplications for each row of weights (R. W. Robinson, Counting labeled acyclic digraphs, 1973).
    """
    num_vars = starts.shape[0] - 1
    limbs = totals.shape[1]
    full = (1 << num_vars) - 1
    sums = np.empty((num_vars, full + 1), np.uint64)
    totals_by_set = np.empty((full + 1, limbs), np.uint64)
    product = np.empty((full + 1, limbs), np.uint64)
    odd = np.empty(full + 1, np.bool_)
    for b in range(totals.shape[0]):
        subset_sums(weights[b], entries, inside, starts, sums)
        totals_by_set[:] = np.uint64(0)
        totals_by_set[0, 0] = np.uint64(1)
        # ascending: every proper subset of `placed` has a smaller number, so its total is complete
        for placed in range(full):
            any_bits = np.uint64(0)
            for i in range(limbs):
                any_bits |= totals_by_set[placed, i]
                product[0, i] = totals_by_set[placed, i]
            if any_bits == np.uint64(0):
                continue
            odd[0] = False
            eligible = 0  # variables without a parent set within `placed` make every product 0
            for i in range(num_vars):
                if not placed >> i & 1 and sums[i, placed] != np.uint64(0):
                    eligible |= 1 << i
            # (s - mask) & mask is the next subset of a mask: ascending, so the set without its lowest bit came before
            sinks = (0 - eligible) & eligible
            while sinks:
                low = sinks & -sinks
                odd[sinks] = not odd[sinks ^ low]
                if _multiply(product[sinks ^ low], sums[_position(low), placed], limbs, product[sinks]):
                    if odd[sinks]:
                        _add(product[sinks], limbs, 0, totals_by_set[placed | sinks])
                    else:
                        _subtract(product[sinks], limbs, totals_by_set[placed | sinks])
                sinks = (sinks - eligible) & eligible
        for i in range(limbs):  # assigning a slice would compile an error message too
            totals[b, i] = totals_by_set[full, i]


@kernel
def layer_sums(
    sums: U64,  # [m, 2**m] as subset_sums leaves them
    completions: U64,  # [2**m, 2**m, l] out, zero before: weight of all completions, by placed set and last layer
) -> None:
    """Sum over the ways to complete every state of solvers.acyclic.count.Layers; O(4**m) terms at most."""
    num_vars = sums.shape[0]
    limbs = completions.shape[2]
    full = (1 << num_vars) - 1
    touching = np.empty(num_vars, np.uint64)
    product = np.empty((full + 1, limbs), np.uint64)
    term = np.empty(limbs, np.uint64)
    for last in range(full + 1):
        completions[full, last, 0] = np.uint64(1)
    # descending: a layer only adds variables, so the states that it leads to have larger numbers
    for placed in range(full - 1, -1, -1):
        unplaced = full ^ placed
        last = placed
        while True:  # `last` runs over the nonempty subsets of `placed`; it is empty only before the first layer
            if last or not placed:
                # parent sets that touch the last layer: those within `placed` less those that avoid the layer
                for i in range(num_vars):
                    touching[i] = sums[i, placed] - sums[i, placed ^ last] if last else sums[i, placed]
                row = completions[placed, last]
                product[0] = np.uint64(0)
                product[0, 0] = np.uint64(1)
                layer = (0 - unplaced) & unplaced
                while layer:
                    low = layer & -layer
                    if _multiply(product[layer ^ low], touching[_position(low)], limbs, product[layer]):
                        after = completions[placed | layer, layer]
                        for i in range(limbs):
                            if after[i]:  # words from limbs on are beyond the modulus
                                _multiply(product[layer], after[i], limbs - i, term)
                                _add(term, limbs, i, row)
                    layer = (layer - unplaced) & unplaced
            if not last:
                break
            last = (last - 1) & placed
