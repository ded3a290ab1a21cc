"""Kernels: sums over acyclic parent choices, on numbers of several words.

Every number is `l` words of 64 bits, least significant first, and arithmetic is modulo 2**(64 l): differences on the
way may wrap around, a result that fits is right. Dimension letters: m = variables, x = parent sets, b = batch.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from calibrant.dsl._jit import inline_kernel, kernel

U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]


@inline_kernel
def _high_word(a: np.uint64, b: np.uint64) -> np.uint64:
    """The upper 64 bits of a product."""
    low = np.uint64(0xFFFFFFFF)
    half = np.uint64(32)
    cross = (a >> half) * (b & low) + ((a & low) * (b & low) >> half)
    other = (a & low) * (b >> half) + (cross & low)
    return (a >> half) * (b >> half) + (cross >> half) + (other >> half)


@inline_kernel
def _times(number: U64, factor: np.uint64, limbs: int, out: U64) -> bool:
    """out = number * factor; False if that is 0."""
    carry = np.uint64(0)
    some = np.uint64(0)
    for i in range(limbs):
        high = _high_word(number[i], factor)
        word = number[i] * factor + carry
        carry = high + np.uint64(1) if word < carry else high
        out[i] = word
        some |= word
    return bool(some)


@inline_kernel
def _add(number: U64, limbs: int, first: int, out: U64) -> None:
    """Add number, shifted by `first` words."""
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
    borrow = np.uint64(0)
    for i in range(limbs):
        word = out[i]
        less = word - number[i]
        below = np.uint64(1) if less > word else np.uint64(0)
        out[i] = less - borrow
        if out[i] > less:
            below = np.uint64(1)
        borrow = below


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
    entries: I64,  # [x] where the weight of each parent set is
    inside: I64,  # [x] its variables among the m, bit per position
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
        for j in range(num_vars):
            bit = 1 << j
            for chosen in range(1 << num_vars):
                if chosen & bit:
                    row[chosen] += row[chosen ^ bit]


@kernel
def acyclic_totals(
    weights: U64,  # [b, e]
    entries: I64,  # [x] as in subset_sums
    inside: I64,  # [x]
    starts: I64,  # [m + 1]
    totals: U64,  # [b, l] out
) -> None:
    """By inclusion and exclusion over the set of sinks, as solvers.acyclic.count does on Python's integers."""
    num_vars = starts.shape[0] - 1
    limbs = totals.shape[1]
    full = (1 << num_vars) - 1
    sums = np.empty((num_vars, full + 1), np.uint64)
    least = np.empty((full + 1, limbs), np.uint64)
    product = np.empty((full + 1, limbs), np.uint64)
    odd = np.empty(full + 1, np.bool_)
    for b in range(totals.shape[0]):
        subset_sums(weights[b], entries, inside, starts, sums)
        least[:] = np.uint64(0)
        least[0, 0] = np.uint64(1)
        for placed in range(full):
            some = np.uint64(0)
            for i in range(limbs):
                some |= least[placed, i]
                product[0, i] = least[placed, i]
            if some == np.uint64(0):
                continue
            odd[0] = False
            rest = full ^ placed
            sinks = (0 - rest) & rest
            while sinks:
                low = sinks & -sinks
                odd[sinks] = not odd[sinks ^ low]
                if _times(product[sinks ^ low], sums[_position(low), placed], limbs, product[sinks]):
                    if odd[sinks]:
                        _add(product[sinks], limbs, 0, least[placed | sinks])
                    else:
                        _subtract(product[sinks], limbs, least[placed | sinks])
                sinks = (sinks - rest) & rest
        for i in range(limbs):  # assigning a slice would compile an error message too
            totals[b, i] = least[full, i]


@kernel
def layer_sums(
    sums: U64,  # [m, 2**m] as subset_sums leaves them
    completions: U64,  # [2**m, 2**m, l] out: weight of all ways to go on, by what is placed and the last layer
) -> None:
    """Return what solvers.acyclic.count.Layers sums, for all of its states."""
    num_vars = sums.shape[0]
    limbs = completions.shape[2]
    full = (1 << num_vars) - 1
    fresh = np.empty(num_vars, np.uint64)
    product = np.empty((full + 1, limbs), np.uint64)
    term = np.empty(limbs, np.uint64)
    for last in range(full + 1):
        completions[full, last, 0] = np.uint64(1)
    for placed in range(full - 1, -1, -1):
        rest = full ^ placed
        last = placed
        while True:  # every nonempty subset of what is placed; the empty one before the first layer only
            if last or not placed:
                for i in range(num_vars):
                    fresh[i] = sums[i, placed] - sums[i, placed ^ last] if last else sums[i, placed]
                row = completions[placed, last]
                product[0] = np.uint64(0)
                product[0, 0] = np.uint64(1)
                layer = (0 - rest) & rest
                while layer:
                    low = layer & -layer
                    if _times(product[layer ^ low], fresh[_position(low)], limbs, product[layer]):
                        after = completions[placed | layer, layer]
                        for i in range(limbs):
                            if after[i]:
                                _times(product[layer], after[i], limbs - i, term)
                                _add(term, limbs, i, row)
                    layer = (layer - rest) & rest
            if not last:
                break
            last = (last - 1) & placed
