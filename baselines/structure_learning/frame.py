"""Rows and interventions as structure learning sees them: one binary table, and which rows each variable was set in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

MAX_VARIABLES = 62  # a set of variables is a mask in a signed 64-bit integer

U64 = npt.NDArray[np.uint64]

Mask: TypeAlias = int
"""A set of variables, bit per index into the frame's variables."""

Dag: TypeAlias = tuple[Mask, ...]
"""The parents of every variable."""


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """A table of binary rows.

    variables: names in column order. The order matters to a greedy search: it breaks ties by it
    values: [rows] bit v of a row is the value of variable v
    clamped: [rows] bit v says that variable v was set by intervention in this row
    """

    variables: tuple[str, ...]
    values: U64
    clamped: U64

    def __post_init__(self) -> None:
        if not 1 <= len(self.variables) <= MAX_VARIABLES:
            raise ValueError(f"{len(self.variables)} variables; 1 to {MAX_VARIABLES} are supported")
        if len(set(self.variables)) != len(self.variables):
            raise ValueError(f"a variable is named twice in {', '.join(self.variables)}")

    @property
    def num_rows(self) -> int:
        return len(self.values)

    @property
    def num_vars(self) -> int:
        return len(self.variables)

    def take(self, rows: npt.NDArray[np.int64]) -> Frame:
        """Return the rows at these positions, in this order, each with what was set in it.

        Copies keep their interventions.
        """
        return Frame(self.variables, self.values[rows], self.clamped[rows])

    def reorder(self, variables: Sequence[str]) -> Frame:
        """Return the rows with the columns in another order."""
        if sorted(variables) != sorted(self.variables):
            raise ValueError(f"{', '.join(variables)} is not an order of {', '.join(self.variables)}")
        places = [self.variables.index(v) for v in variables]
        return Frame(tuple(variables), _permute_bits(self.values, places), _permute_bits(self.clamped, places))

    def mask(self, names: Iterable[str]) -> Mask:
        return sum(1 << self.variables.index(name) for name in set(names))

    def dag(self, parents: Mapping[str, Iterable[str]]) -> Dag:
        """Return the parents of each variable as masks; a variable that is not a key has none."""
        unknown = set(parents) - set(self.variables)
        if unknown:
            raise ValueError(f"unknown variables {', '.join(sorted(unknown))}; known: {', '.join(self.variables)}")
        return tuple(self.mask(parents.get(v, ())) for v in self.variables)

    def names(self, mask: Mask) -> tuple[str, ...]:
        """Return the members of a set, in column order."""
        return tuple(v for i, v in enumerate(self.variables) if mask >> i & 1)


def frame_from_columns(variables: Sequence[str], values: Sequence[int], clamped: Sequence[int], num_rows: int) -> Frame:
    """Columns as integers, bit r for row r: what each variable shows, and in which rows it was set."""
    return Frame(tuple(variables), _row_words(values, num_rows), _row_words(clamped, num_rows))


def frame_from_rows(
    variables: Sequence[str], rows: Sequence[str], clamped: Mapping[str, Iterable[int]] | None = None
) -> Frame:
    """Rows as strings, a character 0 or 1 per variable.

    clamped: variable -> positions (from 0, in any order) of the rows in which it was set
    """
    for position, row in enumerate(rows):
        if len(row) != len(variables) or set(row) - {"0", "1"}:
            raise ValueError(f"row {position} is {row!r}; expected {len(variables)} characters 0 or 1")
    values = np.array([int(row[::-1], 2) for row in rows], np.uint64)
    set_in = np.zeros(len(rows), np.uint64)
    for variable, positions in (clamped or {}).items():
        if variable not in variables:
            raise ValueError(f"unknown variable {variable!r}; known: {', '.join(variables)}")
        for position in positions:
            if not 0 <= position < len(rows):
                raise ValueError(f"{variable} is set in row {position}; rows are 0 to {len(rows) - 1}")
            set_in[position] |= np.uint64(1 << list(variables).index(variable))
    return Frame(tuple(variables), values, set_in)


def _row_words(columns: Sequence[int], num_rows: int) -> U64:
    """Transpose bit columns into one word per row."""
    num_bytes = -(-num_rows // 8)
    packed = np.zeros(num_rows, np.uint64)
    for index, column in enumerate(columns):
        octets = np.frombuffer(column.to_bytes(num_bytes, "little"), np.uint8)
        bits = np.unpackbits(octets, count=num_rows, bitorder="little")
        packed |= bits.astype(np.uint64) << np.uint64(index)
    return packed


def _permute_bits(words: U64, places: Sequence[int]) -> U64:
    moved = np.zeros_like(words)
    for index, place in enumerate(places):
        moved |= (words >> np.uint64(place) & np.uint64(1)) << np.uint64(index)
    return moved
