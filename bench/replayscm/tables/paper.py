"""The rows that the paper prints, to stand beside ours. Figures only, each under the number of its table."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import msgspec

from calibrant.bench.report.layout import NOTHING, Cell, Source, Table, TableRow
from calibrant.bench.report.rows import Row
from calibrant.dsl.replayscm.generation.strata import STRATA
from calibrant.dsl.replayscm.pools.published_files import BY_DIGEST

MAX_NAMED = 2  # pools that a note names one by one
PAIR = " -> "  # between two settings that are compared
DIFFERENCE = " - "  # between two settings whose rates are subtracted
PAIRED = 100  # problems behind the paper's paired tables
LABELS = ("setting", "system", "pool", "n")

_DATA = Path(__file__).resolve().parent.parent / "data"
_WITH_INTERVAL = re.compile(r"(\S+) \[(\S+), (\S+)\]")

# ours -> theirs, by preference: their matched pools where a table has them, else the full ones
_SETTINGS = {
    "Ordered": ("Ord-Full", "Ord-Match"),
    "Hidden-order": ("Hid-Full", "Hid-Match"),
    "Hidden-roots": ("Hid-Roots",),
    "Ord-Full": ("Ord-Full", "Ord-Match"),
    "Hid-Full": ("Hid-Full", "Hid-Match"),
    "Alt-Ordered": ("Alt-Ord",),
    "Alt-Hidden-order": ("Alt-Hid",),
}


class PaperTable(msgspec.Struct, frozen=True):
    """A printed table.

    rows: a text for each of the labels, then one for each of the columns
    """

    columns: list[str]
    rows: list[list[str]]
    labels: list[str] = msgspec.field(default_factory=lambda: ["setting", "system"])

    @property
    def settings(self) -> frozenset[str]:
        """The first labels, in most tables the settings."""
        return frozenset(row[0] for row in self.rows)


class _Paper(msgspec.Struct, frozen=True):
    """The paper's tables.

    problems: setting -> size of its pool
    """

    source: str
    problems: dict[str, int]
    tables: dict[str, PaperTable]


class _Appendix(msgspec.Struct, frozen=True):
    """Printed tables of the appendices.

    notes: where printed figures differ from each other, and where tables overlap
    """

    notes: list[str]
    tables: dict[str, PaperTable]


@cache
def _paper() -> _Paper:
    return msgspec.json.decode((_DATA / "paper_rows.json").read_bytes(), type=_Paper)


@cache
def _appendix() -> _Appendix:
    return msgspec.json.decode((_DATA / "appendix_rows.json").read_bytes(), type=_Appendix)


def printed_table(number: str) -> PaperTable | None:
    return _paper().tables.get(number) or _appendix().tables.get(number)


def printed_numbers() -> tuple[str, ...]:
    """Return the numbers of all tables of which printed rows are stored."""
    return (*_paper().tables, *_appendix().tables)


def printed_setting(number: str, setting: str) -> str | None:
    """Return what a table of the paper calls a setting; None if it has no such rows."""
    table = printed_table(number)
    return next((name for name in _paper_names(setting) if table and name in table.settings), None)


def _paper_names(setting: str) -> tuple[str, ...]:
    for sign in (PAIR, DIFFERENCE):
        first, separator, second = setting.partition(sign)
        if separator:  # paired rows are about the matched pools, which come last
            return (f"{_paper_names(first)[-1]}{sign}{_paper_names(second)[-1]}",)
    return _SETTINGS.get(setting, (setting,))


WORDS = (
    "items of the nine strata of the published generator (6 to 10 variables, 10 or 11 training worlds, no noise), under"
    " the disclosure of each row"
)
_STRATA = frozenset(stratum.name for stratum in STRATA)


def fits_printed(row: Row) -> bool:
    """Return whether all items of a row are such as the paper prints: official ones, or of the published strata."""
    official = [digest in BY_DIGEST for digest in row.pools]
    if official and all(official):
        return True
    return row.setting in (*_SETTINGS, "Block") and bool(row.strata) and row.strata <= _STRATA


def with_printed(table: Table, *, with_paper: bool) -> Table:
    """Return a table of ours as one that the paper prints too; with its rows if they are wanted.

    They stand after the last row of ours of their setting; where none of ours fits, all of them at the end.
    """
    fits = any(row.fits for row in table.rows)
    columns = [heading.key for heading in table.headings]
    labels = [heading.key for heading in table.labels]
    rows = table.rows
    if with_paper and fits:
        rows = with_printed_rows(table.id, rows, columns, labels)
    elif with_paper:
        rows = (*rows, *printed_rows(table.id, columns, labels))
    return replace(table, rows=tuple(rows), printed=WORDS, fits=fits, is_result=True)


def with_printed_rows(
    number: str, rows: Sequence[TableRow], columns: Sequence[str], labels: Sequence[str] = LABELS
) -> tuple[TableRow, ...]:
    """Insert the paper's rows after the last row of a setting, the first label, of which some row fits.

    labels: keys of the rows' labels; those that the paper's table lacks are the pool, the number of problems, or empty
    """
    fitting = {row.labels[0] for row in rows if row.fits}
    lines: list[TableRow] = []
    for place, line in enumerate(rows):
        lines.append(line)
        setting = line.labels[0]
        is_last = place + 1 == len(rows) or rows[place + 1].labels[0] != setting
        if is_last and setting in fitting:
            printed_name = printed_setting(number, setting)
            lines += [line for line in printed_rows(number, columns, labels) if line.labels[0] == printed_name]
    return tuple(lines)


def printed_rows(number: str, columns: Sequence[str], labels: Sequence[str] = LABELS) -> list[TableRow]:
    """Return all printed rows of a table, none where none are stored."""
    table = printed_table(number)
    if table is None:
        return []
    start = len(table.labels)
    place_of = {key: start + place for place, key in enumerate(table.columns)}
    places = [place_of.get(key) for key in columns]
    lines = []
    for row in table.rows:
        size = row[place_of["n"]] if "n" in place_of else str(_paper().problems.get(row[0], PAIRED))
        label_texts = {"pool": "paper", "n": size} | dict(zip(table.labels, row, strict=False))
        cells = tuple(NOTHING if place is None else printed_cell(row[place]) for place in places)
        lines.append(TableRow(tuple(label_texts.get(key, "") for key in labels), cells, Source.PAPER))
    return lines


def printed_cell(text: str) -> Cell:
    """Return a printed figure, with its interval where one is printed."""
    match = _WITH_INTERVAL.fullmatch(text)
    return Cell(*match.groups()) if match else Cell(text)


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
