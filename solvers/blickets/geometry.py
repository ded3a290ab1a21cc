"""Configurations of a detector and the number of moves between them.

In `Sets` a configuration is the set of objects on the detector, in `Sequences` their placement order too.
Configurations are numbered; the numbers break ties.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import permutations
from typing import Protocol

import numpy as np
import numpy.typing as npt

from calibrant.dsl.blickets.rule import set_of

Distances = npt.NDArray[np.float64]
Toggle = tuple[str, int]  # verb, object number


class Geometry(Protocol):
    """Numbered configurations."""

    def distances(self, placed: tuple[int, ...]) -> Distances:
        """Return the moves to every configuration; infinite to the current one, which needs a move to be read again."""
        ...

    def toward(self, placed: tuple[int, ...], target: int) -> tuple[Toggle, ...]:
        """Return the first moves of shortest paths to a numbered configuration; none if it is the current one."""
        ...


@dataclass(frozen=True, slots=True)
class Sets:
    """Sets of n objects; the number of a set is the set as an integer."""

    n: int

    def distances(self, placed: tuple[int, ...]) -> Distances:
        row: Distances = _set_distances(self.n)[set_of(placed)]
        return row

    def toward(self, placed: tuple[int, ...], target: int) -> tuple[Toggle, ...]:
        present = set_of(placed)
        return tuple(
            ("remove" if present >> index & 1 else "place", index)
            for index in range(self.n)
            if (present ^ target) >> index & 1
        )


@cache
def _set_distances(n: int) -> Distances:
    sets = range(1 << n)
    moves = np.array([[float((a ^ b).bit_count()) for b in sets] for a in sets])
    np.fill_diagonal(moves, np.inf)
    return moves


@cache
def sequences(n: int) -> tuple[tuple[int, ...], ...]:
    """Return all placement sequences of n objects, shorter ones first: 326 for n = 5."""
    return tuple(order for k in range(n + 1) for order in permutations(range(n), k))


@cache
def sequence_numbers(n: int) -> dict[tuple[int, ...], int]:
    return {sequence: k for k, sequence in enumerate(sequences(n))}


@dataclass(frozen=True, slots=True)
class Sequences:
    """Placement sequences of n objects, numbered as in `sequences`. Removals come before placements."""

    n: int

    def distances(self, placed: tuple[int, ...]) -> Distances:
        return _sequence_distances(self.n, placed)

    def toward(self, placed: tuple[int, ...], target: int) -> tuple[Toggle, ...]:
        target_sequence = sequences(self.n)[target]
        # objects are appended at the end only: what may stay is a prefix of the target, everything else is taken off
        placed_prefix = set(target_sequence[: _prefix_length(placed, target_sequence)])
        removed = tuple(("remove", index) for index in placed if index not in placed_prefix)
        return removed or tuple(("place", index) for index in target_sequence[len(placed) : len(placed) + 1])


def _prefix_length(placed: tuple[int, ...], target: tuple[int, ...]) -> int:
    """Return how many objects may stay: the longest prefix of the target that is a subsequence of the placed ones."""
    prefix_length = 0
    for index in placed:
        if prefix_length < len(target) and index == target[prefix_length]:
            prefix_length += 1
    return prefix_length


@cache
def _sequence_distances(n: int, placed: tuple[int, ...]) -> Distances:
    # remove all but the common prefix, then place the rest of the target: |placed| + |target| - 2 |prefix|
    moves = np.array(
        [len(placed) + len(sequence) - 2 * _prefix_length(placed, sequence) for sequence in sequences(n)], np.float64
    )
    moves[sequence_numbers(n)[placed]] = np.inf
    return moves
