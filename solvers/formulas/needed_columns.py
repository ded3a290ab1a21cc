"""Least sets of columns that determine a target: all smallest hitting sets, counted.

Two rows with different targets have to differ in some column of the set: so the set hits, for every such pair, the
columns in which the two differ. The search branches on an open pair, the columns tried before excluded, so that each
set is met once; it ends where the columns that remain cannot hit the open pairs. It holds pairs of few columns, and
adds others where a set hits all that it holds and misses one. Sizes are refuted one after another, from a packing of
disjoint pairs on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from calibrant.solvers.formulas.fronts import U64, Patterns
from calibrant.solvers.outcome import Budget, BudgetSpent

MAX_PAIRS = 20_000_000  # pairs of patterns with different targets: 2 s
MAX_NODES = 100_000  # nodes of the search over sets: 3 s
MAX_HELD_PAIRS = 5_000  # pairs of fewest columns, those that contain no other
MAX_SETS = 10_000  # smallest sets that are held


@dataclass(frozen=True)
class NeededColumns:
    """Smallest sets of columns that determine the target.

    at_least: proven bound of their size; number: the size, None if the budget ended first or no set determines it
    num_sets: how many sets have that size; sets: the first of them, ascending; clash: two patterns that no set parts
    """

    at_least: int
    number: int | None
    num_sets: int = 0
    sets: tuple[tuple[int, ...], ...] = ()
    clash: tuple[int, int] | None = None

    @property
    def is_proven(self) -> bool:
        return self.number is not None or self.clash is not None


def find_needed_columns(patterns: Patterns, budget: Budget | None = None) -> NeededColumns:
    """Return the smallest sets of columns that determine the target, of rows without gaps.

    `BudgetSpent` if there are more pairs of patterns than are compared
    """
    clashes = np.flatnonzero((patterns.zeros > 0) & (patterns.ones > 0))
    if len(clashes):
        return NeededColumns(patterns.num_columns + 1, None, clash=(int(clashes[0]), int(clashes[0])))
    lows, highs = patterns.codes[patterns.zeros > 0], patterns.codes[patterns.ones > 0]
    if len(lows) * len(highs) > MAX_PAIRS:
        raise BudgetSpent
    pairs = _differences(_pack(lows), _pack(highs))
    if len(pairs) and pairs[0] == 0:
        return NeededColumns(patterns.num_columns + 1, None, clash=_clash(patterns))
    search = _HittingSets(pairs, patterns.num_columns, budget or Budget(MAX_NODES))
    number = search.packing_bound()
    while True:
        try:
            sets = list(search.sets_of(number))
        except BudgetSpent:
            return NeededColumns(number, None)
        if sets:
            return NeededColumns(number, number, len(sets), tuple(sorted(sets)[:MAX_SETS]))
        number += 1


def _pack(codes: np.ndarray) -> U64:
    words = np.zeros(len(codes), np.uint64)
    for column in range(codes.shape[1]):
        words |= codes[:, column].astype(np.uint64) << np.uint64(column)
    return np.unique(words)


def _clash(patterns: Patterns) -> tuple[int, int]:
    """Return two patterns with the same codes and different targets."""
    first: dict[bytes, int] = {}
    for index, codes in enumerate(patterns.codes):
        previous = first.setdefault(codes.tobytes(), index)
        if (patterns.zeros[previous] > 0) != (patterns.zeros[index] > 0):
            return previous, index
    raise AssertionError("no two patterns clash")


def _differences(lows: U64, highs: U64) -> U64:
    """Return the different sets of columns in which a row of each kind differ, ascending."""
    merged = np.zeros(0, np.uint64)
    step = max(1, 1_000_000 // max(1, len(highs)))
    for start in range(0, len(lows), step):
        words = (lows[start : start + step, None] ^ highs[None, :]).ravel()
        merged = np.union1d(merged, words)
    return merged


def _narrow_pairs(pairs: U64) -> list[int]:
    """Return pairs of few columns that contain no other one, fewest columns first."""
    pairs = pairs[np.lexsort((pairs, np.bitwise_count(pairs)))][:MAX_HELD_PAIRS]
    narrow = []
    while len(pairs):
        least = pairs[0]
        narrow.append(int(least))
        pairs = pairs[(pairs & least) != least]
    return narrow


class _HittingSets:
    """Sets of columns that hit all pairs. pairs: as bits of columns."""

    def __init__(self, pairs: U64, num_columns: int, budget: Budget) -> None:
        self.all_pairs = pairs
        self.budget = budget
        self.pairs = _narrow_pairs(pairs)
        # hits[c]: bit k is 1 where pair k has column c
        self.hits = [sum(1 << k for k, pair in enumerate(self.pairs) if pair >> c & 1) for c in range(num_columns)]

    def packing_bound(self) -> int:
        """Return the number of disjoint pairs that are met in order."""
        taken = number = 0
        for pair in self.pairs:
            if not pair & taken:
                taken |= pair
                number += 1
        return number

    def sets_of(self, size: int) -> Iterator[tuple[int, ...]]:
        """Yield the hitting sets of that size, if none is smaller; `BudgetSpent` if it ends first."""
        allowed = (1 << len(self.hits)) - 1
        yield from self._extend((1 << len(self.pairs)) - 1, allowed, size, ())

    def _extend(self, unhit: int, allowed: int, remaining: int, chosen: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        self.budget.spend(1)
        if not unhit:
            missed = self._find_missed(chosen)
            if missed is None:
                yield tuple(sorted(chosen))
                return
            unhit = 1 << missed
        if not remaining:
            return
        columns = [c for c in range(len(self.hits)) if allowed >> c & 1]
        numbers = {c: (self.hits[c] & unhit).bit_count() for c in columns}
        if sum(sorted(numbers.values())[-remaining:]) < unhit.bit_count():
            return
        pair = self.pairs[(unhit & -unhit).bit_length() - 1] & allowed
        for column in sorted((c for c in columns if pair >> c & 1), key=lambda c: (-numbers[c], c)):
            yield from self._extend(unhit & ~self.hits[column], allowed, remaining - 1, (*chosen, column))
            allowed &= ~(1 << column)

    def _find_missed(self, chosen: tuple[int, ...]) -> int | None:
        """Return the position of a pair that a set misses, added to those that are held; None if it hits all."""
        columns = np.uint64(sum(1 << c for c in chosen))
        missed = np.flatnonzero((self.all_pairs & columns) == 0)
        if not len(missed):
            return None
        words = self.all_pairs[missed]
        pair = int(words[np.argmin(np.bitwise_count(words))])
        for column in range(len(self.hits)):
            self.hits[column] |= (pair >> column & 1) << len(self.pairs)
        self.pairs.append(pair)
        return len(self.pairs) - 1
