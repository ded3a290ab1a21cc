"""Kernels: masses of evidence under noise in doubles, only to rank worlds; reported masses are exact.

A mass is the sum over acyclic SCMs of prior weight times likelihood, where each free cell is flipped with one rate.
Dimension letters: e = parent sets, of one variable after another, subsets before supersets; k = largest number of
parents; m = endogenous variables; r = rows, b = batch. A row is a word of values and a word of intervention targets:
bit v is variable v of the task. A *cell* is one variable in one row, free where it is no target. A *pattern* is the
values of a parent set, lowest variable first: the row of the truth table.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from calibrant.dsl._jit import inline_kernel, kernel

U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]
I32 = npt.NDArray[np.int32]
F64 = npt.NDArray[np.float64]


@inline_kernel
def pattern_of(word: np.uint64, mask: int) -> int:
    """Gather the bits of a word under a mask, lowest first."""
    pattern = 0
    position = 0
    while mask:
        low = mask & -mask
        if word & np.uint64(low):
            pattern |= 1 << position
        position += 1
        mask ^= low
    return pattern


@inline_kernel
def _factor(zeros: int, ones: int, flip: F64, stay: F64) -> float:
    """Return the likelihood of one pattern's cells, summed over both values of the function there; 2 without cells.

    zeros, ones: numbers of cells with value 0 and 1
    """
    likelihood: float = flip[ones] * stay[zeros] + flip[zeros] * stay[ones]
    return likelihood


@kernel
def count_patterns(
    masks: I64,  # [e]
    variables: I64,  # [e] child of each parent set
    words: U64,  # [r]
    targets: U64,  # [r]
    counts: I32,  # [e, 2, 2**k] out: free cells by parent set, value and pattern
) -> None:
    """Count the free cells of each parent set's variable by value and pattern."""
    counts[:] = 0
    for e in range(masks.shape[0]):
        bit = np.uint64(1) << np.uint64(variables[e])
        for r in range(words.shape[0]):
            if not targets[r] & bit:
                counts[e, 1 if words[r] & bit else 0, pattern_of(words[r], masks[e])] += 1


@kernel
def log_masses(
    masks: I64,  # [e]
    starts: I64,  # [m + 1] where the sets of each variable begin
    variables: I64,  # [m] index of each
    below: I64,  # [e, k] index of the set without its i-th smallest member, counted from its variable's start
    inside: I64,  # [e] mask of endogenous members: bit i is variables[i]
    prior: F64,  # [e] prior weight of each function over the set
    counts: I32,  # [e, 2, 2**k] free cells of the evidence, see count_patterns
    flip: F64,  # flip[j] = rate**j
    stay: F64,  # stay[j] = (1 - rate)**j
    words: U64,  # [r]
    targets: U64,  # [r]
    spans: I64,  # [b + 1] where the rows of each batch begin; batches are alternatives, not cumulative
    logs: F64,  # [b] out
) -> None:
    """Compute the natural logarithm of the mass of the evidence with each batch added; -inf for mass 0."""
    num_vars = starts.shape[0] - 1
    num_sets = masks.shape[0]
    full = 1 << num_vars
    size = counts.shape[2]
    base = np.ones(num_sets)  # likelihood of the evidence, summed over all functions, also those that ignore a parent
    for e in range(num_sets):
        for pattern in range(1 << _num_bits(masks[e])):
            base[e] *= _factor(counts[e, 0, pattern], counts[e, 1, pattern], flip, stay)
    new = np.zeros((2, size), np.int64)
    weights = np.empty(num_sets)
    sums = np.empty((num_vars, full))
    totals = np.empty(full)
    product = np.empty(full)
    for b in range(spans.shape[0] - 1):
        scale = 0.0
        for i in range(num_vars):
            bit = np.uint64(1) << np.uint64(variables[i])
            top = 0.0
            for e in range(starts[i], starts[i + 1]):
                weight = base[e]
                for r in range(spans[b], spans[b + 1]):
                    if not targets[r] & bit:
                        new[1 if words[r] & bit else 0, pattern_of(words[r], masks[e])] += 1
                for r in range(spans[b], spans[b + 1]):
                    pattern = pattern_of(words[r], masks[e])
                    zeros = new[0, pattern]
                    ones = new[1, pattern]
                    # only patterns of the new rows change, and each once: clearing its cells marks it as done
                    if zeros + ones:
                        before = _factor(counts[e, 0, pattern], counts[e, 1, pattern], flip, stay)
                        after = _factor(counts[e, 0, pattern] + zeros, counts[e, 1, pattern] + ones, flip, stay)
                        # a factor of 0 (rate 0, or underflow) has made base[e] 0; 0 / 0 would be NaN
                        weight = weight * (after / before) if before > 0.0 else 0.0
                        new[0, pattern] = 0
                        new[1, pattern] = 0
                weights[e] = weight
                top = max(top, weight)
            # divided by the largest against underflow: 320 cells, half of them 1, may weigh 2**-319 for each variable
            if top == 0.0:
                scale = -np.inf
                break
            scale += np.log(top)
            _invert(masks, below, starts[i], starts[i + 1], weights)
            sums[i, :] = 0.0  # of the functions that depend on every member of their set, which the inversion leaves
            for e in range(starts[i], starts[i + 1]):
                if weights[e] > 0.0:  # the inversion subtracts, and rounding may make it negative
                    sums[i, inside[e]] += weights[e] * prior[e] / top
            # zeta transform, m 2**m additions: sums[i, S] becomes the weight of all sets whose members lie in S
            for j in range(num_vars):
                for chosen in range(full):
                    if chosen >> j & 1:
                        sums[i, chosen] += sums[i, chosen ^ (1 << j)]
        logs[b] = scale + np.log(_acyclic_total(sums, totals, product)) if scale > -np.inf else -np.inf


@inline_kernel
def _num_bits(mask: int) -> int:
    count = 0
    while mask:
        mask &= mask - 1
        count += 1
    return count


@inline_kernel
def _invert(masks: I64, below: I64, start: int, end: int, weights: F64) -> None:
    """Moebius inversion over subsets of one variable's sets, in place."""
    union = 0
    for e in range(start, end):
        union |= masks[e]
    while union:
        # one variable at a time: k subtractions a set; the subset lacks the bit, so this pass leaves it unchanged
        bit = union & -union
        for e in range(start, end):
            if masks[e] & bit:
                weights[e] -= weights[start + below[e, _num_bits(masks[e] & (bit - 1))]]
        union ^= bit


@inline_kernel
def _acyclic_total(sums: F64, totals: F64, product: F64) -> float:
    """Sum over acyclic parent-set assignments, by inclusion and exclusion over the set of sinks.

    totals[S] = sum over non-empty T in S of (-1)**(|T| + 1) * totals[S - T] * product of sums[i, S - T] for i in T.
    """
    full = sums.shape[1]
    totals[:] = 0.0
    totals[0] = 1.0
    for placed in range(full - 1):
        # cancellation can leave a value below 0 where the exact one is 0
        if totals[placed] <= 0.0:
            continue
        # R. W. Robinson (Counting labeled acyclic digraphs, 1973): sinks with sign (-1)**(|sinks| + 1); 3**m terms.
        # Subsets ascend, so that the product without the lowest sink is there already
        product[0] = -totals[placed]
        unplaced = full - 1 ^ placed
        # (x - unplaced) & unplaced: the next larger subset of `unplaced`, 0 after the last
        sinks = (0 - unplaced) & unplaced
        while sinks:
            low = sinks & -sinks
            i = 0
            while low >> i != 1:
                i += 1
            product[sinks] = -product[sinks ^ low] * sums[i, placed]
            totals[placed | sinks] += product[sinks]
            sinks = (sinks - unplaced) & unplaced
    # the alternating sum may round below 0, which has no logarithm
    total: float = max(totals[full - 1], 0.0)
    return total
