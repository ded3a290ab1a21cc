"""Worlds as arrays of words: row by row, a bit a variable, and column by column, 64 rows a word."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from calibrant.dsl.formulas.table import WORD_BITS
from calibrant.dsl.replayscm.world import Column, Panel, World

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

    scored_cells: [variables, panels] how many rows are scored
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
