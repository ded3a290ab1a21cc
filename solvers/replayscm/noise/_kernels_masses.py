"""Kernels: masses under noise in doubles, to choose by; what is reported is exact.

Dimension letters: e = parent sets, of one variable after another, subsets before supersets; k = largest number of
parents; m = endogenous variables; r = rows, b = batch. A row is a word of values and a word of targets.
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
def _pattern(word: np.uint64, mask: int) -> int:
    pattern = 0
    place = 0
    while mask:
        low = mask & -mask
        if word & np.uint64(low):
            pattern |= 1 << place
        place += 1
        mask ^= low
    return pattern


@inline_kernel
def _factor(zeros: int, ones: int, flip: F64, stay: F64) -> float:
    """Return the sum over both values of a table's row; 2 if it was not seen."""
    together: float = flip[ones] * stay[zeros] + flip[zeros] * stay[ones]
    return together


@kernel
def count_patterns(
    masks: I64,  # [e]
    variables: I64,  # [e] whose parent set it is
    words: U64,  # [r]
    targets: U64,  # [r]
    counts: I32,  # [e, 2, 2**k] out: cells by value and pattern
) -> None:
    """Count the free cells of all rows by pattern."""
    counts[:] = 0
    for e in range(masks.shape[0]):
        bit = np.uint64(1) << np.uint64(variables[e])
        for r in range(words.shape[0]):
            if not targets[r] & bit:
                counts[e, 1 if words[r] & bit else 0, _pattern(words[r], masks[e])] += 1


@kernel
def log_masses(
    masks: I64,  # [e]
    starts: I64,  # [m + 1] where the sets of each variable begin
    variables: I64,  # [m] index of each
    below: I64,  # [e, k] where a set is without its i-th smallest member, from the start of its variable
    inside: I64,  # [e] endogenous members, as positions
    prior: F64,  # [e]
    counts: I32,  # [e, 2, 2**k] of the evidence
    flip: F64,  # powers of the rate
    stay: F64,  # powers of its complement
    words: U64,  # [r]
    targets: U64,  # [r]
    spans: I64,  # [b + 1] where the rows of each batch begin
    logs: F64,  # [b] out
) -> None:
    """Natural logarithm of the mass with each batch of rows as well; -inf for none."""
    num_vars = starts.shape[0] - 1
    num_sets = masks.shape[0]
    full = 1 << num_vars
    size = counts.shape[2]
    base = np.ones(num_sets)
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
                        new[1 if words[r] & bit else 0, _pattern(words[r], masks[e])] += 1
                for r in range(spans[b], spans[b + 1]):
                    pattern = _pattern(words[r], masks[e])
                    zeros = new[0, pattern]
                    ones = new[1, pattern]
                    # only patterns of the new rows change, and each once: clearing its cells marks it as done
                    if zeros + ones:
                        before = _factor(counts[e, 0, pattern], counts[e, 1, pattern], flip, stay)
                        after = _factor(counts[e, 0, pattern] + zeros, counts[e, 1, pattern] + ones, flip, stay)
                        weight = weight * (after / before) if before > 0.0 else 0.0
                        new[0, pattern] = 0
                        new[1, pattern] = 0
                weights[e] = weight
                top = max(top, weight)
            # else divided by the largest g: 320 cells, half of them 1, may be 2**-319 a variable, 2**-3190 for ten
            if top == 0.0:
                scale = -np.inf
                break
            scale += np.log(top)
            _invert(masks, below, starts[i], starts[i + 1], weights)
            sums[i, :] = 0.0
            for e in range(starts[i], starts[i + 1]):
                if weights[e] > 0.0:  # differences below the rounding of a subset's sum are none
                    sums[i, inside[e]] += weights[e] * prior[e] / top
            # sums over subsets: m 2**m additions, so that the sum over DAGs looks a set up
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
    together = 0
    for e in range(start, end):
        together |= masks[e]
    while together:
        # one variable at a time: k subtractions a set; the subset lacks the bit, so this pass leaves it unchanged
        bit = together & -together
        for e in range(start, end):
            if masks[e] & bit:
                weights[e] -= weights[start + below[e, _num_bits(masks[e] & (bit - 1))]]
        together ^= bit


@inline_kernel
def _acyclic_total(sums: F64, totals: F64, product: F64) -> float:
    """Sum over acyclic choices, by inclusion and exclusion over the set of sinks."""
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
        rest = full - 1 ^ placed
        sinks = (0 - rest) & rest
        while sinks:
            low = sinks & -sinks
            place = 0
            while low >> place != 1:
                place += 1
            product[sinks] = -product[sinks ^ low] * sums[place, placed]
            totals[placed | sinks] += product[sinks]
            sinks = (sinks - rest) & rest
    whole: float = max(totals[full - 1], 0.0)
    return whole
