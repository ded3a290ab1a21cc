"""Worlds: tables of unit rows under one hard intervention; panels (many worlds) as bit columns and as words."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from calibrant.dsl.formulas.table import WORD_BITS

# --- Worlds: tables of unit rows under one hard intervention, and panels of many worlds packed into bit columns -------
Column: TypeAlias = int
"""One variable's values: bit r is its value in row r."""

MAX_CACHED_ORDERS = 16  # evaluation orders for which the results of a candidate without wrong cells are cached


@dataclass(frozen=True, slots=True)
class Intervention:
    """A hard intervention: its targets, and how they are set.

    constants: variable -> the one bit it has in the whole world (mode hard_constant)
    assigned: variables whose value is set row by row (mode hard_assigned); the row shows the value
    """

    constants: Mapping[str, int] = field(default_factory=dict)
    assigned: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        overlap = set(self.constants) & set(self.assigned)
        if overlap:
            raise ValueError(f"{', '.join(sorted(overlap))} both constant and assigned")

    @property
    def targets(self) -> frozenset[str]:
        return frozenset((*self.constants, *self.assigned))

    @property
    def mode(self) -> str:
        """None | hard_constant | hard_assigned; the last if some target is set row by row."""
        if self.assigned:
            return "hard_assigned"
        return "hard_constant" if self.constants else "none"

    @property
    def signature(self) -> tuple[str, tuple[tuple[str, int], ...], tuple[str, ...]]:
        """Key by which interventions of training and held-out worlds have to differ (paper, section B.2.2)."""
        return self.mode, tuple(sorted(self.constants.items())), tuple(sorted(self.targets))

    def __str__(self) -> str:
        constants = ", ".join(f"{v}={bit}" for v, bit in sorted(self.constants.items()))
        assigned = f"{', '.join(self.assigned)} row by row" if self.assigned else ""
        parts = [part for part in (constants, assigned) if part]
        return f"do({'; '.join(parts)})" if parts else "no intervention"


@dataclass(frozen=True, slots=True)
class World:
    """The rows of all units under one intervention.

    variables: names, in column order
    units: one identifier per row
    columns: per variable its bits; bit r belongs to units[r]
    """

    id: str
    intervention: Intervention
    variables: tuple[str, ...]
    units: tuple[str, ...]
    columns: tuple[Column, ...]

    @property
    def num_rows(self) -> int:
        return len(self.units)

    def column(self, variable: str) -> Column:
        return self.columns[self.variables.index(variable)]

    @property
    def by_variable(self) -> dict[str, Column]:
        return dict(zip(self.variables, self.columns, strict=True))

    def row(self, index: int) -> dict[str, int]:
        return {v: column >> index & 1 for v, column in zip(self.variables, self.columns, strict=True)}

    def rows(self) -> Iterator[dict[str, int]]:
        return (self.row(index) for index in range(self.num_rows))

    def row_texts(self, variables: Sequence[str] | None = None) -> list[str]:
        """Return a string of 0 and 1 for each row, a character per variable, in the order of `variables` or columns."""
        columns = self.columns if variables is None else [self.column(variable) for variable in variables]
        return ["".join(str(column >> r & 1) for column in columns) for r in range(self.num_rows)]


def columns_from_rows(rows: Sequence[str], num_vars: int) -> tuple[Column, ...]:
    """Return the bit columns of row strings; requires num_vars characters 0 or 1 in each."""
    if not rows:
        return (0,) * num_vars
    return tuple(int("".join(column)[::-1], 2) for column in zip(*rows, strict=True))


@dataclass(frozen=True)
class Panel:
    """Many worlds as one table: the rows of all worlds one after another, a bit column per variable.

    variables: names, in column order
    worlds: the worlds, in file order
    """

    variables: tuple[str, ...]
    worlds: tuple[World, ...]

    def __repr__(self) -> str:
        return f"<Panel: {len(self.worlds)} worlds, {len(self.variables)} variables, {self.num_rows} rows>"

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """First row of each world, then the total number of rows."""
        starts = [0]
        for world in self.worlds:
            starts.append(starts[-1] + world.num_rows)
        return tuple(starts)

    @cached_property
    def num_rows(self) -> int:
        return self.starts[-1]

    @cached_property
    def columns(self) -> Mapping[str, Column]:
        """Observed values of each variable over all rows."""
        packed = dict.fromkeys(self.variables, 0)
        for world, start in zip(self.worlds, self.starts, strict=False):
            for variable, column in zip(world.variables, world.columns, strict=True):
                packed[variable] |= column << start
        return MappingProxyType(packed)

    @cached_property
    def clamped(self) -> Mapping[str, Column]:
        """Variable -> rows in which it is an intervention target; its other rows are scored."""
        packed = dict.fromkeys(self.variables, 0)
        for world, start in zip(self.worlds, self.starts, strict=False):
            rows = ((1 << world.num_rows) - 1) << start
            for target in world.intervention.targets:
                packed[target] |= rows
        return MappingProxyType(packed)

    @cached_property
    def all_rows(self) -> Column:
        return (1 << self.num_rows) - 1

    def scored_rows(self, variable: str) -> Column:
        """Return the rows in which a variable is no target, as bits: they test its mechanism and are scored."""
        return self.all_rows & ~self.clamped[variable]

    @cached_property
    def num_scored(self) -> Mapping[str, int]:
        """Variable -> number of rows in which it is scored."""
        return {variable: self.scored_rows(variable).bit_count() for variable in self.variables}

    def perfect_accuracies(self, variables: tuple[str, ...]) -> dict[str, float | None]:
        """Return variable -> accuracy if all scored cells are right: 1, or None if never scored. Do not mutate it."""
        accuracies = self._perfect_accuracies.get(variables)
        if accuracies is None:
            accuracies = {variable: 1.0 if self.num_scored[variable] else None for variable in variables}
            if len(self._perfect_accuracies) >= MAX_CACHED_ORDERS:
                self._perfect_accuracies.clear()
            self._perfect_accuracies[variables] = accuracies
        return accuracies

    @cached_property
    def _perfect_accuracies(self) -> dict[tuple[str, ...], dict[str, float | None]]:
        return {}

    @cached_property
    def world_rows(self) -> tuple[Column, ...]:
        """The rows of each world, as bits."""
        return tuple(((1 << (end - start)) - 1) << start for start, end in pairwise(self.starts))

    @cached_property
    def _scored_counts(self) -> dict[frozenset[str], tuple[int, int]]:
        return {}

    def scored_counts(self, endogenous: frozenset[str]) -> tuple[int, int]:
        """Return the numbers of scored cells, and of worlds with one, if these variables are the endogenous ones."""
        counts = self._scored_counts.get(endogenous)
        if counts is None:
            cells = [w.num_rows * len(endogenous - w.intervention.targets) for w in self.worlds]
            counts = self._scored_counts[endogenous] = sum(cells), sum(1 for count in cells if count)
        return counts

    def locate(self, row: int) -> tuple[World, int]:
        """Return the world that a row of the panel belongs to, and its index there."""
        if not 0 <= row < self.num_rows:
            raise IndexError(row)
        index = (
            bisect_right(self.starts, row) - 1
        )  # the last world that begins at or before the row; earlier ones there are empty
        return self.worlds[index], row - self.starts[index]

    def __reduce__(self) -> tuple[type[Panel], tuple[object, ...]]:
        return Panel, (self.variables, self.worlds)


# --- Worlds as arrays of words: row by row, a bit a variable, and column by column, 64 rows a word --------------------
U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]


class Rows(NamedTuple):
    """Rows of worlds: [r] values and [r] intervention targets, a bit per variable."""

    words: U64
    targets: U64

    def select(self, chosen: slice | I64) -> Rows:
        """Return some of the rows."""
        return Rows(self.words[chosen], self.targets[chosen])


NO_ROWS = Rows(np.empty(0, np.uint64), np.empty(0, np.uint64))


def pack_rows(worlds: Sequence[World], variables: Sequence[str]) -> Rows:
    """Return the rows of all worlds, one world after another; variable i at bit i."""
    words, targets = [NO_ROWS.words], [NO_ROWS.targets]
    for world in worlds:
        columns = world.by_variable
        words.append(row_words([columns[v] for v in variables], world.num_rows))
        clamped = sum(1 << i for i, v in enumerate(variables) if v in world.intervention.targets)
        targets.append(np.full(world.num_rows, clamped, np.uint64))
    return Rows(np.concatenate(words), np.concatenate(targets))


def row_words(columns: Sequence[Column], num_rows: int) -> U64:
    """Return the rows of columns, column i at bit i; [r]."""
    num_bytes = -(-num_rows // 8)
    packed = np.frombuffer(b"".join(column.to_bytes(num_bytes, "little") for column in columns), np.uint8)
    bits = np.unpackbits(packed.reshape(len(columns), num_bytes), axis=1, bitorder="little")[:, :num_rows]
    words: U64 = np.bitwise_or.reduce(bits.astype(np.uint64) << np.arange(len(columns), dtype=np.uint64)[:, None])
    return words


class PackedPanels(NamedTuple):
    """Several panels (training, held-out) as words: rows of all of them one after another, 64 a word.

    scored_cells: [variables, panels] number of scored rows; world_words: [worlds, 2] first word and end
    world_masks, panel_masks: [worlds or panels, words] their rows; world_panel: [worlds] index of the panel
    observed, scored: [variables, words]; unused rows of the last word are 0 in `scored` and in all masks
    """

    variables: tuple[str, ...]
    observed: U64
    scored: U64
    scored_cells: I64
    world_words: I64
    world_masks: U64
    world_panel: I64
    panel_masks: U64


def pack_panels(panels: Sequence[Panel]) -> PackedPanels:
    """Return the panels as words; all must have the same variables."""
    variables = panels[0].variables
    if any(panel.variables != variables for panel in panels):
        raise ValueError("panels over different variables")
    offsets = np.cumsum([0, *(panel.num_rows for panel in panels)]).tolist()
    num_words = max(1, -(-offsets[-1] // WORD_BITS))
    observed = [_join_columns([p.columns[v] for p in panels], offsets) for v in variables]
    scored = [_join_columns([p.scored_rows(v) for p in panels], offsets) for v in variables]
    spans = [
        (index, offset + start, offset + end)
        for index, (panel, offset) in enumerate(zip(panels, offsets, strict=False))
        for start, end in zip(panel.starts, panel.starts[1:], strict=False)
    ]
    world_masks = [((1 << (end - start)) - 1) << start for _, start, end in spans]
    panel_masks = [p.all_rows << offset for p, offset in zip(panels, offsets, strict=False)]
    words = [(start // WORD_BITS, -(-end // WORD_BITS)) for _, start, end in spans]
    return PackedPanels(
        variables,
        _words(observed, num_words),
        _words(scored, num_words),
        np.array([[p.scored_rows(v).bit_count() for p in panels] for v in variables], np.int64),
        np.array(words, np.int64).reshape(-1, 2),
        _words(world_masks, num_words),
        np.array([index for index, _, _ in spans], np.int64),
        _words(panel_masks, num_words),
    )


def _join_columns(columns: Sequence[Column], offsets: Sequence[int]) -> Column:
    return sum(column << offset for column, offset in zip(columns, offsets, strict=False))


def _words(columns: Sequence[Column], num_words: int) -> U64:
    packed = b"".join(column.to_bytes(num_words * 8, "little") for column in columns)
    return np.frombuffer(packed, "<u8").astype(np.uint64).reshape(len(columns), num_words)
