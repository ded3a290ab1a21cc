"""Order ideals: sets of variables that a topological order of some acyclic assignment can begin with.

Positions are those of solvers.acyclic.count.Weights: bit i of a set is its variable i, and roots are in no set.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from calibrant.solvers.acyclic.least_cost import Mask

I64 = npt.NDArray[np.int64]

MIN_TABLE_IDEALS = 1_000  # with as many order ideals or more a table of all subsets is cheaper
MAX_POSITIONS = 62  # a set is a signed word


class OrderIdeals:
    """Enumeration of order ideals, with the parent sets of each variable as arrays.

    options: per variable the weights of its parent sets, endogenous part only, all positive
    """

    def __init__(self, options: Sequence[Mapping[Mask, int]]) -> None:
        if len(options) > MAX_POSITIONS:
            raise ValueError(f"{len(options)} variables; sets of at most {MAX_POSITIONS} are words")
        self._masks = [np.array(sorted(candidates), np.int64) for candidates in options]
        self._weights = [_weight_array([candidates[mask] for mask in sorted(candidates)]) for candidates in options]
        minimal = {i: minimal_sets(masks) for i, masks in enumerate(self._masks) if len(masks)}
        # a variable may come next if some minimal set of it is placed: supersets need not be tested. Variables without
        # a parent set can never come next; all minimal sets are one array, `_starts` is where those of each begin
        self._minimal = np.concatenate([*minimal.values(), np.empty(0, np.int64)])
        self._starts = np.cumsum([0, *map(len, minimal.values())])[:-1]
        self._bits = np.int64(1) << np.array([*minimal], np.int64)
        self._full = (1 << len(options)) - 1
        self._eligible: dict[Mask, Mask] = {}

    def weight(self, index: int, placed: Mask) -> int:
        """Return the total weight of a variable's parent sets within `placed`."""
        within = (self._masks[index] & np.int64(self._full & ~placed)) == 0
        return int(self._weights[index][within].sum())

    def eligible(self, placed: Mask) -> Mask:
        """Return the variables outside of `placed` that have a parent set within it."""
        if placed not in self._eligible:
            unplaced = self._full & ~placed
            within = (self._minimal & np.int64(unplaced)) == 0
            # `reduceat` refuses an empty array
            has_set = np.logical_or.reduceat(within, self._starts) if len(within) else within
            self._eligible[placed] = int(self._bits[has_set].sum()) & unplaced
        return self._eligible[placed]

    def count_ideals(self, limit: int) -> int:
        """Count the order ideals, by depth-first search; `limit` if there are more than that."""
        ideals, stack = {0}, [0]
        while stack:
            placed = stack.pop()
            eligible = self.eligible(placed)
            while eligible:
                low = eligible & -eligible
                eligible ^= low
                if placed | low not in ideals:
                    if len(ideals) >= limit:
                        return limit
                    ideals.add(placed | low)
                    stack.append(placed | low)
        return len(ideals)


def _weight_array(weights: Sequence[int]) -> npt.NDArray[np.int64] | npt.NDArray[np.object_]:
    """Convert weights to an array: of 64-bit words where no sum can overflow, else of Python integers."""
    if sum(weights) < 1 << 62:
        return np.array(weights, np.int64)
    listed = np.empty(len(weights), np.object_)
    listed[:] = weights
    return listed


def is_orderable(minimal: Mapping[int, I64], roots: Mask) -> bool:
    """Return whether some acyclic assignment exists behind these roots.

    Greedy placement decides it: placing a variable never makes another one impossible.

    minimal: per variable its minimal parent sets; roots need none
    """
    remaining = [i for i in minimal if not roots >> i & 1]
    placed, before = roots, -1
    while remaining and placed != before:
        before = placed
        ready = [i for i in remaining if ((minimal[i] & ~np.int64(placed)) == 0).any()]
        placed |= sum(1 << i for i in ready)
        remaining = [i for i in remaining if not placed >> i & 1]
    return not remaining


def minimal_sets(masks: I64) -> I64:
    """Return the sets that contain no other of the list."""
    sizes = np.bitwise_count(masks.astype(np.uint64))
    remaining = masks[np.argsort(sizes, kind="stable")]
    selected = []
    while len(remaining):
        selected.append(remaining[0])
        remaining = remaining[(remaining & remaining[0]) != remaining[0]]
    return np.array(selected, np.int64)
