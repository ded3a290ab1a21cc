"""Sums over acyclic assignments whose weights fit a word: the sums of solvers.acyclic.count, in kernels.

Counts of mechanisms fit a word each, and a total gets as many words as it may need. Up to MAX_POSITIONS variables every
subset is enumerated; for more it pays to enumerate order ideals only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from calibrant.solvers.acyclic._kernels_sums import acyclic_totals, layer_sums, subset_sums
from calibrant.solvers.acyclic.least_cost import Mask

U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]

WORD = 64  # bits
MAX_POSITIONS = 10  # 3**10 terms take half a millisecond
MAX_LAYERED = 8  # variables up to which all 3**8 states of `Layers` are summed at once


class WordWeights(NamedTuple):
    """Parent sets of some variables in the kernels' layout.

    weights: [e]; entries: [x] index of each parent set's weight; inside: [x] its variables, as positions
    starts: [m + 1] where the parent sets of each variable begin; limbs: words that hold any sum of products of them
    """

    weights: U64
    entries: I64
    inside: I64
    starts: I64
    limbs: int

    @property
    def num_vars(self) -> int:
        return len(self.starts) - 1

    def totals(self, weights: U64) -> list[int]:
        """Sum over acyclic assignments for each row of weights, none of them larger than `self.weights`."""
        words = np.empty((len(weights), self.limbs), np.uint64)
        acyclic_totals(weights, self.entries, self.inside, self.starts, words)
        return words[:, 0].tolist() if self.limbs == 1 else [from_words(row) for row in words]

    def subset_sums(self) -> U64:
        """Return the weight of each variable's parent sets within each set of variables; shape [m, 2**m]."""
        sums = np.empty((self.num_vars, 1 << self.num_vars), np.uint64)
        subset_sums(self.weights, self.entries, self.inside, self.starts, sums)
        return sums

    def completions(self) -> U64 | None:
        """Return the sums of solvers.acyclic.count.Layers; [placed, last layer, limb]; None above MAX_LAYERED."""
        if self.num_vars > MAX_LAYERED:
            return None
        completions = np.zeros((1 << self.num_vars, 1 << self.num_vars, self.limbs), np.uint64)
        layer_sums(self.subset_sums(), completions)
        return completions


def word_weights(options: Sequence[Mapping[Mask, int]]) -> WordWeights | None:
    """Return parent sets as positions, per variable; None for too many variables or weights beyond a word."""
    limbs = limbs_for([sum(candidates.values()) for candidates in options])
    if limbs is None:
        return None
    inside = np.array([mask for candidates in options for mask in candidates], np.int64)
    weights = np.array([weight for candidates in options for weight in candidates.values()], np.uint64)
    starts = np.array([0, *accumulate(len(candidates) for candidates in options)], np.int64)
    return WordWeights(weights, np.arange(len(inside)), inside, starts, limbs)


def limbs_for(largest: Sequence[int]) -> int | None:
    """Return the words for a product of numbers up to these; None if they are too many or one does not fit a word."""
    if len(largest) > MAX_POSITIONS or any(number >> WORD for number in largest):
        return None
    # any sum over acyclic assignments is at most the product of the variables' totals, whose bits add up
    return sum(number.bit_length() for number in largest) // WORD + 1


def from_words(words: U64) -> int:
    """Decode a number of a kernel, least significant word first."""
    return int.from_bytes(words.astype("<u8").tobytes(), "little")
