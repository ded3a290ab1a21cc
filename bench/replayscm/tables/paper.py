"""The rows that the paper prints, to stand beside ours. Figures only, each under the number of its table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

import msgspec

from calibrant.bench.report.layout import NOTHING, Cell, Source, TableRow
from calibrant.dsl.replayscm.pools.published_files import BY_DIGEST

MAX_NAMED = 2  # pools that a note names one by one
PAIR = " -> "  # between two settings that are compared
PAIRED = 100  # problems behind the paper's paired tables

_FILE = Path(__file__).resolve().parent.parent / "data" / "paper_rows.json"

# ours -> theirs, by preference: their matched pools where a table has them, else the full ones
_SETTINGS = {
    "Ordered": ("Ord-Full", "Ord-Match"),
    "Hidden-order": ("Hid-Full", "Hid-Match"),
    "Hidden-roots": ("Hid-Roots",),
    "Ord-Full": ("Ord-Full", "Ord-Match"),
    "Hid-Full": ("Hid-Full", "Hid-Match"),
}


class PaperTable(msgspec.Struct, frozen=True):
    """A printed table.

    rows: setting, system, then one text for each of the columns
    """

    columns: list[str]
    rows: list[list[str]]

    @property
    def settings(self) -> frozenset[str]:
        return frozenset(row[0] for row in self.rows)


class _Paper(msgspec.Struct, frozen=True):
    """The paper's tables.

    problems: setting -> size of its pool
    """

    source: str
    problems: dict[str, int]
    tables: dict[str, PaperTable]


@cache
def _paper() -> _Paper:
    return msgspec.json.decode(_FILE.read_bytes(), type=_Paper)


def printed_table(number: str) -> PaperTable | None:
    return _paper().tables.get(number)


def printed_setting(number: str, setting: str) -> str | None:
    """Return what a table of the paper calls a setting; None if it has no such rows."""
    table = printed_table(number)
    return next((name for name in _paper_names(setting) if table and name in table.settings), None)


def _paper_names(setting: str) -> tuple[str, ...]:
    first, arrow, second = setting.partition(PAIR)
    if arrow:  # paired rows are about the matched pools, which come last
        return (f"{_paper_names(first)[-1]}{PAIR}{_paper_names(second)[-1]}",)
    return _SETTINGS.get(setting, (setting,))


def with_printed_rows(number: str, rows: Sequence[TableRow], columns: Sequence[str]) -> tuple[TableRow, ...]:
    """Insert the paper's rows after the last row of their setting, which is the first label of a row."""
    lines: list[TableRow] = []
    for place, line in enumerate(rows):
        lines.append(line)
        setting = line.labels[0]
        if place + 1 == len(rows) or rows[place + 1].labels[0] != setting:
            lines += _printed_rows(number, setting, columns)
    return tuple(lines)


def _printed_rows(number: str, setting: str, columns: Sequence[str]) -> list[TableRow]:
    table, printed_name = printed_table(number), printed_setting(number, setting)
    if table is None or printed_name is None:
        return []
    places = [table.columns.index(key) + 2 if key in table.columns else None for key in columns]
    size = str(_paper().problems.get(printed_name, PAIRED))
    return [
        TableRow(
            (printed_name, row[1], "paper", size),
            tuple(NOTHING if i is None else Cell(row[i]) for i in places),
            Source.PAPER,
        )
        for row in table.rows
        if row[0] == printed_name
    ]


def notes(number: str, lines: Sequence[TableRow], others: Iterable[str]) -> tuple[str, ...]:
    """Return what is said below a table with printed rows.

    Others: names of our pools that have other problems, or fewer
    """
    sizes = {line.labels[0]: line.labels[-1] for line in lines if line.source is Source.PAPER}
    if not sizes:
        return ()
    problems = ", ".join(f"{setting} {size}" for setting, size in sizes.items())
    where = f"Rows of pool “paper” are printed in Table {number} of {_paper().source} (problems: {problems})."
    differing = sorted(set(others))
    if not differing:
        return (where,)
    names = ", ".join(differing) if len(differing) <= MAX_NAMED else f"{len(differing)} pools"
    return where, f"The pools differ: our rows are on other problems, or not on all ({names}); compare levels only."


def is_papers(setting: str, number: str, digests: Iterable[str]) -> bool:
    """Return whether these pools are exactly the ones behind the printed rows."""
    table = printed_table(number)
    official = [BY_DIGEST[digest].setting == setting if digest in BY_DIGEST else False for digest in digests]
    return all(official) and table is not None and setting in table.settings
