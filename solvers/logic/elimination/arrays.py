"""Integer matrices and segments: what many states or transitions are computed with at once.

Numbers are 64 bits wide where all of them are within `WORD_LIMIT`, else Python integers in arrays of objects.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import SupportsIndex, TypeAlias, overload

import numpy as np
import numpy.typing as npt

Words: TypeAlias = npt.NDArray[np.int64]
Numbers: TypeAlias = npt.NDArray[np.int64] | npt.NDArray[np.object_]

WORD_LIMIT = 1 << 62  # a sum of two numbers within it is a 64-bit integer
_MANY_VALUES = 1 << 20  # then sorting takes less than a table, 8 MB
_MANY_NUMBERS = 1 << 40  # then numbers are counted anew: at most 2**24 rows times as many values stay 64 bits wide


class StateMatrix(Sequence[tuple[int, ...]]):
    """States as rows: a tuple is made of one when it is read, so that millions take 8 bytes a value."""

    def __init__(self, matrix: Words) -> None:
        self.matrix = matrix

    def __len__(self) -> int:
        return len(self.matrix)

    @overload
    def __getitem__(self, position: SupportsIndex) -> tuple[int, ...]: ...

    @overload
    def __getitem__(self, position: slice) -> StateMatrix: ...

    def __getitem__(self, position: SupportsIndex | slice) -> tuple[int, ...] | StateMatrix:
        if isinstance(position, slice):
            return StateMatrix(self.matrix[position])
        return tuple(self.matrix[position].tolist())


def state_matrix(states: Sequence[tuple[int, ...]]) -> Words:
    """Return states as rows."""
    if isinstance(states, StateMatrix):
        return states.matrix
    return np.array(states, dtype=np.int64).reshape(len(states), -1)


def take_states(states: Sequence[tuple[int, ...]], positions: Words) -> Sequence[tuple[int, ...]]:
    """Return the states at some positions."""
    if isinstance(states, StateMatrix):
        return StateMatrix(states.matrix[positions])
    return [states[position] for position in positions]


def numbers_of(values: Sequence[int], *, words: bool) -> Numbers:
    """Return an array of integers; words: all of them are within `WORD_LIMIT`."""
    return np.array(values, dtype=np.int64 if words else object)


def indices_of(values: array[int]) -> Words:
    """Return an array of positions, copied."""
    return np.array(values, dtype=np.int64)


def unsigned_array(values: Words) -> array[int]:
    """Return positions below 2**32 in four bytes each."""
    packed = array("I")
    packed.frombytes(values.astype(np.uint32).tobytes())
    return packed


def span_positions(starts: Words, counts: Words) -> Words:
    """Return the positions of spans one after the other: starts[i], starts[i] + 1, ... for each i."""
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    positions: Words = np.arange(total) + np.repeat(starts - (ends - counts), counts)
    return positions


def rank_values(column: Words) -> tuple[Words, int]:
    """Return the position of each value, none of them negative, among the distinct ones, and how many these are."""
    most = int(column.max()) if len(column) else 0
    if most > _MANY_VALUES:
        distinct, positions = np.unique(column, return_inverse=True)
        return positions, len(distinct)
    # a table of all possible values takes no sorting
    occurs = np.zeros(most + 1, dtype=np.int64)
    occurs[column] = 1
    return np.cumsum(occurs)[column] - 1, int(occurs.sum())


def number_rows(columns: Sequence[Words], num_rows: int) -> tuple[Words, int]:
    """Return for each row a number such that equal rows alone have equal numbers, and what all numbers are below."""
    numbers, count = np.zeros(num_rows, dtype=np.int64), 1
    for column in columns:
        positions, radix = rank_values(column)
        if count * radix > _MANY_NUMBERS:
            numbers, count = rank_values(numbers)
        numbers = numbers * radix + positions
        count *= radix
    return numbers, count


def first_occurrences(numbers: Words) -> tuple[Words, Words]:
    """Return the position of the first row of each number in ascending order, and for each row its place there."""
    positions, count = rank_values(numbers)
    first = np.empty(count, dtype=np.int64)
    first[positions[::-1]] = np.arange(len(numbers))[::-1]  # of repeated indices the last value is assigned
    order = np.argsort(first)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return first[order], place[positions]
