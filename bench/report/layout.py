"""A table as every format prints it: headings, rows of cells, caption and notes. Every cell is text already."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import Enum

from calibrant.bench.answers.intervals import Interval
from calibrant.bench.core.metrics import UNDEFINED


class Source(Enum):
    """Origin of a row's numbers."""

    OURS = "ours"
    PAPER = "paper"
    PROTOTYPE = "prototype"  # of ours


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a table.

    text: the figure, `*` or a dash; low, high: ends of its interval, empty where there is none
    """

    text: str
    low: str = ""
    high: str = ""

    @property
    def interval(self) -> str:
        return f"[{self.low}, {self.high}]" if self.low else ""


NOTHING = Cell(UNDEFINED)


def cell(text: str, interval: Interval | None = None, *, decimals: int = 3, signed: bool = False) -> Cell:
    """Return a figure with its interval, both with as many decimals."""
    if interval is None:
        return Cell(text)
    sign = "+" if signed else ""
    low, high = (f"{end + 0.0:{sign}.{decimals}f}" for end in interval)
    return Cell(text, low, high)


def percent_cell(share: float, interval: tuple[float, float] | None) -> Cell:
    """Return a share with its interval, in percent with one decimal."""
    return Cell(*(f"{100 * figure:.1f}" for figure in (share, *(interval or ()))))


@dataclass(frozen=True, slots=True)
class Heading:
    """A column's heading; key: its name in CSV."""

    key: str
    text: str


@dataclass(frozen=True, slots=True)
class TableRow:
    """Row of a table.

    labels: one for each of the table's label headings; cells: one for each heading
    fits: whether a row of ours is about items that the paper's table is about
    """

    labels: tuple[str, ...]
    cells: tuple[Cell, ...]
    source: Source = Source.OURS
    fits: bool = True


@dataclass(frozen=True)
class Table:
    """A table of a report.

    id: the number in the paper, or a word for what the paper has not
    printed: the items that the paper's table is about, in words; empty for a table that no paper prints
    fits: whether some rows of ours are about such items; those that are not do not stand in it
    is_result: whether our rows are a table of results by themselves, beside what the paper prints
    """

    id: str
    title: str
    caption: str
    labels: tuple[Heading, ...]
    headings: tuple[Heading, ...]
    rows: tuple[TableRow, ...]
    notes: tuple[str, ...] = field(default=())
    printed: str = ""
    fits: bool = True
    is_result: bool = False

    @property
    def anchor(self) -> str:
        return anchor_of(f"table {self.id}")


def anchor_of(name: str) -> str:
    """Return a name as the address of a place in a page, or as that of a file."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
