"""Which sets of variables can come first in an acyclic choice of parent sets, and what may come next.

Positions are those of solvers.acyclic.count.Weights: bit i of a set is its variable i, and roots are in no set.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from calibrant.solvers.acyclic.least_cost import Mask

I64 = npt.NDArray[np.int64]

FREELY_PLACED = 1_000  # beginnings from which on all subsets are worth a table
MAX_POSITIONS = 62  # a set is a signed word


class OrderIdeals:
    """The parent sets of each variable as arrays.

    options: per variable its parent sets, endogenous part only, and their weights, all positive
    """

    def __init__(self, options: Sequence[Mapping[Mask, int]]) -> None:
        if len(options) > MAX_POSITIONS:
            raise ValueError(f"{len(options)} variables; sets of at most {MAX_POSITIONS} are words")
        self._masks = [np.array(sorted(candidates), np.int64) for candidates in options]
        self._weights = [_numbers([candidates[mask] for mask in sorted(candidates)]) for candidates in options]
        least = {i: minimal(masks) for i, masks in enumerate(self._masks) if len(masks)}
        self._least = np.concatenate([*least.values(), np.empty(0, np.int64)])
        self._starts = np.cumsum([0, *map(len, least.values())])[:-1]
        self._bits = np.int64(1) << np.array([*least], np.int64)
        self._full = (1 << len(options)) - 1
        self._able: dict[Mask, Mask] = {}

    def weight(self, index: int, placed: Mask) -> int:
        """Total weight of a variable's parent sets within `placed`."""
        within = (self._masks[index] & np.int64(self._full & ~placed)) == 0
        return int(self._weights[index][within].sum())

    def able(self, placed: Mask) -> Mask:
        """The variables outside of `placed` that have a parent set within it."""
        if placed not in self._able:
            rest = self._full & ~placed
            within = (self._least & np.int64(rest)) == 0
            able = np.logical_or.reduceat(within, self._starts) if len(within) else within
            self._able[placed] = int(self._bits[able].sum()) & rest
        return self._able[placed]

    def num_beginnings(self, limit: int) -> int:
        """Return how many sets some topological order begins with; `limit` if there are more than that."""
        known, waiting = {0}, [0]
        while waiting:
            placed = waiting.pop()
            able = self.able(placed)
            while able:
                low = able & -able
                able ^= low
                if placed | low not in known:
                    if len(known) >= limit:
                        return limit
                    known.add(placed | low)
                    waiting.append(placed | low)
        return len(known)


def _numbers(weights: Sequence[int]) -> npt.NDArray[np.int64] | npt.NDArray[np.object_]:
    """Return the weights as an array: of 64-bit words where no sum can overflow, else of Python integers."""
    if sum(weights) < 1 << 62:
        return np.array(weights, np.int64)
    listed = np.empty(len(weights), np.object_)
    listed[:] = weights
    return listed


def orderable(least: Mapping[int, I64], roots: Mask) -> bool:
    """Return whether the variables can be placed one after another behind these roots, each behind one of its parent
    sets.

    least: per variable the parent sets of which no proper subset is listed; roots need none
    """
    waiting = [i for i in least if not roots >> i & 1]
    placed, before = roots, -1
    while waiting and placed != before:
        before = placed
        ready = [i for i in waiting if ((least[i] & ~np.int64(placed)) == 0).any()]
        placed |= sum(1 << i for i in ready)
        waiting = [i for i in waiting if not placed >> i & 1]
    return not waiting


def minimal(masks: I64) -> I64:
    """The sets of which no proper subset is listed."""
    sizes = np.bitwise_count(masks.astype(np.uint64))
    rest = masks[np.argsort(sizes, kind="stable")]
    least = []
    while len(rest):
        least.append(rest[0])
        rest = rest[(rest & rest[0]) != rest[0]]
    return np.array(least, np.int64)
