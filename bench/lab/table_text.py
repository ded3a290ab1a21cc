"""Tables of papers as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from calibrant.bench.pages.aligned import aligned
from calibrant.bench.report.layout import Table, TableRow


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
