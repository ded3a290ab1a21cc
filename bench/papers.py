"""Tables that papers print: their figures as facts, and what rows of ours beside them are made of.

A benchmark's `paper.py` declares its tables: columns, which answers belong in one, what groups them into rows, and
what is said of the printed rows. The figures are in `data/paper_rows.json` of its folder; nothing of them is computed.
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
    """Table of a paper, as printed.

    rows: as many texts as there are labels, then one for each column, as printed
    where: section of the paper; questions: counterfactual, intervention or all, behind a table of pass@1 by nodes
    """

    columns: list[str]
    rows: list[list[str]]
    labels: list[str] = msgspec.field(default_factory=lambda: ["setting", "system"])
    title: str = ""
    where: str = ""
    questions: str = ""

    @property
    def settings(self) -> frozenset[str]:
        """The first labels, in most tables the settings."""
        return frozenset(row[0] for row in self.rows)

    @property
    def figures(self) -> list[tuple[tuple[str, ...], dict[str, str]]]:
        """The labels of each row, and its texts by column."""
        width = len(self.labels)
        return [(tuple(row[:width]), dict(zip(self.columns, row[width:], strict=True))) for row in self.rows]


class Paper(msgspec.Struct, frozen=True):
    """Printed tables of a paper.

    tables: by their number in the paper; those that repeat others with rounded figures are left out
    notes: what holds of several of them; problems: setting -> size of its pool
    """

    tables: dict[str, PrintedTable]
    source: str = ""
    notes: list[str] = []
    problems: dict[str, int] = {}

    def where(self, number: str) -> str:
        """Return the note below a table that says where its printed rows are from."""
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
    """Return the mean over items of one value an answer, given with items and units; a dash where none has one."""
    rate = estimate(values, is_share=is_share)
    return NOTHING if rate is None else text(rate)


def group_answers(answers: Iterable[A], key: Callable[[A], G]) -> dict[G, list[A]]:
    """Return answers by key, in the order in which keys first occur."""
    groups: dict[G, list[A]] = {}
    for answer in answers:
        groups.setdefault(key(answer), []).append(answer)
    return groups


# --- Tables of papers as text for a terminal --------------------------------------------------------------------------


def text_of(table: Table) -> str:
    """Return a table with its caption and notes, for a terminal; intervals behind the figures."""
    headings = [heading.text for heading in (*table.labels, *table.headings)]
    lines = aligned(["Source", *headings], [list(_texts(row)) for row in table.rows])
    title = f"Table {table.id}: {table.title}"
    return "\n".join([title, table.caption, "", lines, "", *table.notes])


def _texts(row: TableRow) -> Iterator[str]:
    yield row.source.value
    yield from row.labels
    yield from (f"{cell.text} {cell.interval}".rstrip() for cell in row.cells)
