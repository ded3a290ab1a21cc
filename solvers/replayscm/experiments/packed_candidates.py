"""Rows of all candidate worlds as bit columns, 64 rows a word: what members read, and which of them read alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from calibrant.dsl.replayscm.evaluator import TablePrograms
from calibrant.solvers.replayscm.experiments._kernels_members import count_alike, reading_keys

F64 = npt.NDArray[np.float64]
U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]

WORD_BITS = 64


@dataclass(frozen=True)
class PackedCandidates:
    """Worlds with equally many rows each.

    values: [n, w] targets and roots, 0 elsewhere; clamped: [n, w]; row r of candidate c is bit (c % p) * num_rows + r
    of word c // p * b, for p candidates a word, or bits of b words a candidate
    endogenous: observed variables that readings show
    """

    values: U64
    clamped: U64
    num_candidates: int
    num_rows: int
    endogenous: I64

    def keys(self, members: TablePrograms) -> U64:
        """[c, d] number of what each member reads of each candidate: equal iff readings are.

        Hashed where a reading has more than 64 cells: two of 32,640 pairs collide with probability 2e-15.
        """
        keys = np.empty((self.num_candidates, len(members)), np.uint64)
        arrays = members.order, members.masks, members.tables
        reading_keys(*arrays, self.values, self.clamped, self.endogenous, self.num_rows, keys)
        return keys


def pack_candidates(
    index: Mapping[str, int],
    roots: Sequence[str],
    candidates: Sequence[Mapping[str, int]],
    contexts: Sequence[int],
) -> PackedCandidates:
    """Return the rows of candidates in the same contexts.

    index: number of each observed variable; contexts: bit i is the value of root i
    """
    places = [index[root] for root in roots]
    root_words = [sum((context >> i & 1) << place for i, place in enumerate(places)) for context in contexts]
    targets = np.array([sum(1 << index[v] for v in do) for do in candidates], np.uint64)
    constants = np.array([sum(bit << index[v] for v, bit in do.items()) for do in candidates], np.uint64)
    # a clamped root shows its constant, whatever the context
    words = np.array(root_words, np.uint64)[None, :] & ~targets[:, None] | constants[:, None]
    clamped = np.broadcast_to(targets[:, None], words.shape)
    variables = range(len(index))
    endogenous = np.array([v for v in variables if v not in places], np.int64)
    return PackedCandidates(
        np.array([_pack_column(words, v) for v in variables], np.uint64),
        np.array([_pack_column(clamped, v) for v in variables], np.uint64),
        len(candidates),
        len(contexts),
        endogenous,
    )


def _pack_column(words: U64, variable: int) -> U64:
    """[w] bits of one variable in all rows."""
    bits = (words >> np.uint64(variable) & np.uint64(1)).astype(np.uint8)
    num_candidates, num_rows = bits.shape
    per_word = max(1, WORD_BITS // num_rows)
    bits = np.pad(bits, ((0, -num_candidates % per_word), (0, 0))).reshape(-1, per_word * num_rows)
    bits = np.pad(bits, ((0, 0), (0, -bits.shape[1] % WORD_BITS)))
    packed: U64 = np.packbits(bits, axis=1, bitorder="little").view("<u8").astype(np.uint64).ravel()
    return packed


def alike_shares(keys: U64) -> F64:
    """[c] share of pairs of different members that read a candidate alike; an unbiased estimate of the expected share.

    Draws are not paired with themselves: the estimate would be too large by up to 1/256.

    keys: [c, d] of every candidate and member
    """
    num_members = keys.shape[1]
    if num_members < 2:
        return np.ones(len(keys))
    alike = np.empty(len(keys), np.int64)
    count_alike(np.sort(keys, axis=1), alike)
    shares: F64 = 2 * alike / (num_members * (num_members - 1))
    return shares
