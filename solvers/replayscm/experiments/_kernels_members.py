"""Kernel: readings of SCMs with hidden variables and flips, many worlds at a time."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from calibrant.dsl._jit import kernel

U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]


@kernel
def noisy_outcomes(
    order: I64,  # [d, m] variables with mechanisms of each member, parents first
    masks: I64,  # [d, m] their parent sets
    tables: U64,  # [d, m] their functions over these
    words: U64,  # [r] targets and roots; other variables are not read
    targets: U64,  # [r]
    flips: U64,  # [d, r] cells that noise flips
    readings: U64,  # [d, r] out
) -> None:
    """Compute every row of every member: targets and roots as they are."""
    bit_one = np.uint64(1)
    zero = np.uint64(0)
    for d in range(order.shape[0]):
        for r in range(words.shape[0]):
            word = words[r]
            for i in range(order.shape[1]):
                bit = bit_one << np.uint64(order[d, i])
                if targets[r] & bit != zero:
                    continue
                pattern = 0
                place = 0
                mask = masks[d, i]
                while mask:
                    low = mask & -mask
                    if word & np.uint64(low) != zero:
                        pattern |= 1 << place
                    place += 1
                    mask ^= low
                word &= ~bit
                if tables[d, i] >> np.uint64(pattern) & bit_one != zero:
                    word |= bit
                # after the mechanism and before its children: noise propagates (docs/semantics.md)
                word ^= flips[d, r] & bit
            readings[d, r] = word
