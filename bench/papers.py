"""Printed tables of papers, and the parts of computed rows beside them.

A benchmark's `paper.py` declares its tables: columns, answers of each table, keys of rows and notes on printed rows.
Printed figures are stored in `data/paper_rows.json` of its folder, and none of them is computed.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from calibrant.bench.answers.frame import Estimate, estimate
from calibrant.bench.pages.terminal_tables import aligned
from calibrant.bench.report.layout import NOTHING, Cell, Table, TableRow, cell

A = TypeVar("A")
G = TypeVar("G", bound=Hashable)
_FOLDER = Path(__file__).resolve().parent


class PrintedTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A table as a paper prints it.

    rows: for each row a text per label, then a text per column
    labels: headings of the leading columns that name a row; where: section of the paper
    questions: `counterfactual`, `intervention` or `all`, for a table of pass@1 by number of nodes; else empty
    """

    columns: list[str]
    rows: list[list[str]]
    labels: list[str] = msgspec.field(default_factory=lambda: ["setting", "system"])
    title: str = ""
    where: str = ""
    questions: str = ""

    @property
    def settings(self) -> frozenset[str]:
        """Return the first label of each row, in most tables its setting."""
        return frozenset(row[0] for row in self.rows)

    @property
    def figures(self) -> list[tuple[tuple[str, ...], dict[str, str]]]:
        """Return the labels of each row with its texts by column."""
        width = len(self.labels)
        return [(tuple(row[:width]), dict(zip(self.columns, row[width:], strict=True))) for row in self.rows]


class Paper(msgspec.Struct, frozen=True):
    """Printed tables of a paper.

    tables: number in the paper -> table, without tables that repeat others with rounded figures
    notes: remarks on several tables; problems: setting -> number of problems of its pool
    """

    tables: dict[str, PrintedTable]
    source: str = ""
    notes: list[str] = []
    problems: dict[str, int] = {}

    def where(self, number: str) -> str:
        """Return the note below a table with the source of its printed rows."""
        return f"Printed rows: {self.tables[number].where} of {self.source}."


P = TypeVar("P", bound=Paper)


def read_paper(benchmark: str, kind: type[P], name: str = "paper_rows") -> P:
    """Return the printed tables that a benchmark's folder stores."""
    stored: P = _decode(_FOLDER / benchmark / "data" / f"{name}.json", kind)
    return stored


@cache
def _decode(path: Path, kind: type[Paper]) -> Any:
    return msgspec.json.decode(path.read_bytes(), type=kind)


def rate_text(rate: Estimate) -> Cell:
    """Return a share with three decimals."""
    return cell(f"{rate.mean:.3f}", rate.interval)


def rate_cell(
    values: Iterable[tuple[Any, str, float | None]],
    text: Callable[[Estimate], Cell] = rate_text,
    *,
    is_share: bool = True,
) -> Cell:
    """Return the mean over items of one value per answer; a dash if no answer has a value.

    values: item, unit of the interval and value of each answer, None for an answer without a value
    """
    rate = estimate(values, is_share=is_share)
    return NOTHING if rate is None else text(rate)


def group_answers(answers: Iterable[A], key: Callable[[A], G]) -> dict[G, list[A]]:
    """Return key -> answers, with keys in the order of first occurrence."""
    groups: dict[G, list[A]] = {}
    for answer in answers:
        groups.setdefault(key(answer), []).append(answer)
    return groups


# --- Tables of papers as text for a terminal --------------------------------------------------------------------------


def text_of(table: Table) -> str:
    """Return a table with caption and notes for a terminal; intervals follow their figures."""
    headings = [heading.text for heading in (*table.labels, *table.headings)]
    lines = aligned(["Source", *headings], [list(_texts(row)) for row in table.rows])
    title = f"Table {table.id}: {table.title}"
    return "\n".join([title, table.caption, "", lines, "", *table.notes])


def _texts(row: TableRow) -> Iterator[str]:
    yield row.source.value
    yield from row.labels
    yield from (f"{cell.text} {cell.interval}".rstrip() for cell in row.cells)
