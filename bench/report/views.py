"""A view of a benchmark's measures as a table: a row for each setting, stratum, pool and system, with intervals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from calibrant.bench.core.metrics import Metric, View
from calibrant.bench.report.formats import shown_columns
from calibrant.bench.report.layout import Cell, Heading, Table, TableRow, cell
from calibrant.bench.report.rows import Row

ROW_LABELS = (
    *(Heading("setting", "Setting"), Heading("stratum", "Stratum"), Heading("system", "System")),
    *(Heading("pool", "Pool"), Heading("n", "n")),
)
SHARE_DECIMALS = 3  # what is printed with fewer is a number of something


def view_table(view: View, rows: Sequence[Row], notes: tuple[str, ...]) -> Table:
    """Return the table of a view, without columns that are undefined in every row."""
    lines = tuple(
        TableRow(
            (row.setting, row.stratum, row.system, row.pool, str(row.num_items)),
            _metric_cells(row, view.metrics),
        )
        for row in rows
    )
    headings = tuple(Heading(column.key, column.heading) for column in view.metrics)
    table = shown_columns(Table(view.id, view.title, "", ROW_LABELS, headings, lines, notes))
    return replace(table, caption=view.caption({heading.key for heading in table.headings}))


def view_tables(views: Mapping[str, View], rows: Sequence[Row], notes: Callable[[str], tuple[str, ...]]) -> list[Table]:
    """Return the tables of views, without those optional ones of which no answer has any figure.

    notes: of a view, by its name
    """
    tables = ((view, view_table(view, rows, notes(name))) for name, view in views.items())
    return [table for view, table in tables if table.headings or not view.optional]


def _metric_cells(row: Row, columns: Sequence[Metric]) -> tuple[Cell, ...]:
    return tuple(rate_cell(row, column) for column in columns)


def rate_cell(row: Row, column: Metric) -> Cell:
    """Return a row's rate with its interval: `*` for a conditional rate over 1 to 5 items, a dash for one over none."""
    return cell(row.rates[column.key].text, row.interval(column.key), decimals=column.decimals)
