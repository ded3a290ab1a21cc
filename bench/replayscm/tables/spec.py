"""Tables with one row per pool and system, each column a rate, a mean or a number of answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from calibrant.bench.core.metrics import UNDEFINED, Metric
from calibrant.bench.replayscm.tables.paper import fits_printed, is_papers, notes, printed_table, with_printed
from calibrant.bench.replayscm.tables.rows import by_pools, is_model, pool_name
from calibrant.bench.report.layout import Cell, Heading, Table, TableRow
from calibrant.bench.report.rows import Row
from calibrant.bench.report.views import rate_cell

ROW_LABELS = (Heading("setting", "Setting"), Heading("system", "System"), Heading("pool", "Pool"), Heading("n", "n"))


class Count(NamedTuple):
    """The number of answers for which a metric is 1; it gets no interval."""

    key: str
    heading: str
    metric: str


class KnownCount(NamedTuple):
    """The number of answers for which a metric is 1, undefined where it is not known of some answer; no interval."""

    key: str
    heading: str
    metric: str


class NumDefined(NamedTuple):
    """The number of answers for which a metric is defined; it gets no interval."""

    key: str
    heading: str
    metric: str


@dataclass(frozen=True)
class TableSpec:
    """A table of metrics.

    where: settings that have rows in it; searches_only: it has no rows of models
    """

    id: str
    title: str
    caption: str
    columns: tuple[Metric | Count | KnownCount | NumDefined, ...]
    where: Callable[[str], bool] = lambda setting: not setting.startswith("Alt-")
    searches_only: bool = False

    def make(self, rows: Sequence[Row], *, with_paper: bool) -> Table | None:
        """Return the table of these rows, or None if none of them belongs here."""
        matching = [row for row in rows if self.where(row.setting) and not (self.searches_only and is_model(row))]
        lines = [self._row(row) for group in by_pools(matching) for row in group]
        if not lines:
            return None
        headings = tuple(Heading(column.key, column.heading) for column in self.columns)
        crashes = tuple(crash_note(row) for row in matching if row.outcomes["crashed"])
        our_table = Table(self.id, self.title, self.caption, ROW_LABELS, headings, tuple(lines), crashes)
        if printed_table(self.id) is None:
            return our_table
        table = with_printed(our_table, with_paper=with_paper)
        paper_notes = notes(self.id, table.rows, (pool_name(row) for row in matching if not self._is_papers(row)))
        return replace(table, notes=(*paper_notes, *crashes)) if with_paper and table.fits else table

    def _is_papers(self, row: Row) -> bool:
        return row.num_items == row.num_expected and is_papers(row.setting, self.id, row.pools)

    def _row(self, row: Row) -> TableRow:
        answered = row.num_items
        size = str(answered) if answered == row.num_expected else f"{answered} of {row.num_expected}"
        labels = row.setting, row.system, pool_name(row), size
        return TableRow(labels, self.cells(row), fits=fits_printed(row))

    def cells(self, row: Row) -> tuple[Cell, ...]:
        """Return a row's cells, one for each column."""
        return tuple(
            rate_cell(row, column) if isinstance(column, Metric) else count_cell(row, column) for column in self.columns
        )


def count_cell(row: Row, column: Count | KnownCount | NumDefined) -> Cell:
    """Return the number of a row's answers for which a metric is 1, or is defined."""
    values = [o.values[row.places[column.metric]] for o in row.observations]
    if isinstance(column, NumDefined):
        return Cell(str(len(values) - values.count(None)))
    if isinstance(column, KnownCount) and None in values:
        return Cell(UNDEFINED)
    return Cell(str(values.count(1)))


def crash_note(row: Row) -> str:
    """Return the note below a table on crashes among a row's answers."""
    number = row.outcomes["crashed"]
    answers = f"{number} of {row.num_answers} answers of {row.system} to {pool_name(row)} ({row.setting})"
    return f"{answers} are crashes; rates count them as not valid."
