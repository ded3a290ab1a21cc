"""Weights of parent sets by signature, as arrays; and the sums of many groups of columns at a time, in words.

A signature is what a child's parent sets see of a column: the exponents of `hidden.patterns`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import accumulate
from operator import or_
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.solvers.acyclic.count import Weights, WordWeights, limbs_for
from calibrant.solvers.acyclic.least import Mask, members_of

I16 = npt.NDArray[np.int16]
I64 = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]
Numbers = npt.NDArray[Any]
"""Integers: int64, or Python's where they might not fit."""

MAX_BITS = 62  # of a number in int64, with one to spare for differences
BATCH_WEIGHTS = 1 << 20  # of a batch of sums: 8 MiB


def unique_rows(rows: npt.NDArray[np.signedinteger[Any]]) -> tuple[npt.NDArray[np.signedinteger[Any]], I64]:
    """Return the different rows in lexicographic order, and the place of each row among them; entries from -1 on."""
    if not rows.shape[1]:
        return rows[:1], np.zeros(len(rows), np.int64)
    # big-endian bytes compare as the numbers do; `np.unique(axis=0)` compares field by field, 20 times slower
    codes = (rows.astype(np.int64) + 1).astype(">u1" if rows.max(initial=0) < 255 else ">u4")
    texts = codes.view(f"S{codes.shape[1] * codes.itemsize}").ravel()
    _, first, places = np.unique(texts, return_index=True, return_inverse=True)
    return rows[first], places


def signature_weights(
    masks: Sequence[Mask],
    visible: Mapping[Mask, int],
    fitting_sets: Sequence[Mask],
    exponents: I16,
    prior: Sequence[int],
) -> Numbers:
    """[s, m] weight of each parent set under each signature, with its prior.

    visible: sums of sets without a hidden variable; fitting_sets: the others that fit some column
    exponents: [s, x] of the latter; prior: integer weight by number of parents
    """
    place = {mask: i for i, mask in enumerate(masks)}
    size = max(mask.bit_count() for mask in masks)
    # an inversion adds up to 2**k sums, each of at most 2**2**k functions
    bits = (1 << size) + size + max(prior).bit_length()
    sums = np.zeros((len(exponents), len(masks)), np.int64 if bits <= MAX_BITS else object)
    for mask, number in visible.items():
        sums[:, place[mask]] = number
    for column, mask in enumerate(fitting_sets):
        fitting = exponents[:, column] >= 0
        powers = exponents[fitting, column].astype(sums.dtype)
        sums[fitting, place[mask]] = np.ones(len(powers), sums.dtype) << powers
    # Moebius inversion over subsets, one variable at a time: all signatures in one operation
    for variable in members_of(reduce(or_, masks)):
        having = [i for i, mask in enumerate(masks) if mask >> variable & 1]
        sums[:, having] -= sums[:, [place[masks[i] ^ 1 << variable] for i in having]]
    weights: Numbers = sums * np.array([prior[mask.bit_count()] for mask in masks], sums.dtype)
    return weights


@dataclass(frozen=True)
class GroupSums:
    """Sums over acyclic choices of many groups at a time.

    words: parent sets of all variables in order, hidden ones too, in the kernels' layout
    parts: where the sets of each child begin and end; weights: [s, m] of each child by signature
    """

    words: WordWeights
    parts: Mapping[int, slice]
    weights: Mapping[int, Numbers]
    last: int

    def totals(self, chosen: Mapping[int, Sequence[int]], added: Sequence[Sequence[tuple[int, int]]]) -> list[int]:
        """Return the sum of each group.

        chosen: signature of each child but the last, by group; added: the last child's signatures with their factors
        """
        size = max(1, BATCH_WEIGHTS // len(self.words.weights))
        totals = []
        for start in range(0, len(added), size):
            batch = added[start : start + size]
            # hidden variables have one parent set, of weight 1
            weights = np.ones((len(batch), len(self.words.weights)), np.uint64)
            for v, signatures in chosen.items():
                weights[:, self.parts[v]] = self.weights[v][signatures[start : start + size]]
            last = self.weights[self.last]
            for row, terms in zip(weights[:, self.parts[self.last]], batch, strict=True):
                signatures, factors = zip(*terms, strict=True)
                row[:] = np.array(factors, np.int64) @ last[list(signatures)]
            totals += self.words.totals(weights)
        return totals


def group_sums(
    masks: Mapping[int, Sequence[Mask]],
    weights: Mapping[int, Numbers],
    hidden: Mapping[int, Mask],
    roots: Mask,
    last: int,
    num_functions: int,
) -> GroupSums | None:
    """Return what sums groups in words; None for too many variables or numbers that might not fit.

    masks, weights: of each child; hidden: parents of each hidden variable; num_functions: of all columns together
    """
    if any(rows.dtype == object for rows in weights.values()):
        return None
    # of no signature is a weight larger; the last child's are added up over columns
    largest = {
        v: [number * (num_functions if v == last else 1) for number in rows.max(axis=0).tolist()]
        for v, rows in weights.items()
    }
    listed = {v: masks[v] if v in masks else [hidden[v]] for v in sorted([*masks, *hidden])}
    sizes = {v: sum(largest[v]) if v in largest else 1 for v in listed}
    limbs = limbs_for(list(sizes.values()))
    if limbs is None or max(sizes.values()).bit_length() > MAX_BITS:
        return None
    positions = Weights({v: dict.fromkeys(sets, 1) for v, sets in listed.items()}, roots)
    inside = np.array([positions.inside(mask) for sets in listed.values() for mask in sets], np.int64)
    starts = np.array([0, *accumulate(map(len, listed.values()))], np.int64)
    bounds = np.array([number for v in listed for number in largest.get(v, [1])], np.uint64)
    words = WordWeights(bounds, np.arange(len(inside)), inside, starts, limbs)
    places = zip(listed, starts.tolist(), starts[1:].tolist(), strict=False)
    parts = {v: slice(start, end) for v, start, end in places}
    return GroupSums(words, parts, weights, last)
