"""Times of the searches."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from calibrant.bench.replayscm.tables.rows import pool_name
from calibrant.bench.replayscm.tables.spec import ROW_LABELS
from calibrant.bench.report.layout import Cell, Heading, Table, TableRow
from calibrant.bench.report.rows import Row

_HEADINGS = (
    Heading("seconds_median", "median s"),
    Heading("seconds_max", "longest s"),
    Heading("seconds_total", "total s"),
)


def times(rows: Sequence[Row]) -> Table | None:
    """Wall seconds per instance, where they are on record."""
    timed = [(row, row.seconds) for row in rows if row.seconds]
    if not timed:
        return None
    lines = tuple(
        TableRow(
            (row.setting, row.system, pool_name(row), str(len(seconds))),
            (Cell(f"{median(seconds):.4f}"), Cell(f"{max(seconds):.4f}"), Cell(f"{sum(sorted(seconds)):.2f}")),
        )
        for row, seconds in timed
    )
    caption = (
        "Wall seconds of the search on one instance, without process start and compilation; crashed ones left out."
    )
    return Table("time", "Time", caption, ROW_LABELS, _HEADINGS, lines)
