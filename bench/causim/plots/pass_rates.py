"""Figures of the CauSim paper: pass@1 by number of nodes, a line a system, a panel a kind of question."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from calibrant.bench.causim.paper_tables.printed import paper
from calibrant.bench.pages.charts import Axis, Line, Mark, Panel, panels_svg
from calibrant.bench.report.layout import Cell, Source, Table
from calibrant.bench.report.sections import Plot

FIGURES = {
    ("3", "4"): "Programs with 5 training instances",
    ("5", "6"): "Programs with 15 training instances",
    ("11", "12", "13"): "Medical prose",
    ("17", "18", "19"): "Prose, inverted star",
    ("20", "21", "22"): "Prose, three topologies",
    ("33",): "NIHSS",
}
CAPTION = "Share of right answers by number of nodes, with Wilson's 95 % intervals of ours. Hollow and dashed: printed."


def causim_figures(tables: Sequence[Table]) -> Iterator[Plot]:
    """Yield a plot for each group of tables that are there with rows of ours."""
    by_number = {table.id: table for table in tables}
    for numbers, title in FIGURES.items():
        listed = [by_number[number] for number in numbers if number in by_number]
        panels = [_panel(table) for table in listed if any(row.source is Source.OURS for row in table.rows)]
        if panels:
            name = f"causim-nodes-{'-'.join(numbers)}"
            yield Plot(name, title, CAPTION, panels_svg(panels, Axis("nodes"), Axis("pass@1", 0, 1), title))


def own_rows(table: Table) -> Table:
    """Return a table without printed rows."""
    return replace(table, rows=tuple(row for row in table.rows if row.source is Source.OURS))


def _panel(table: Table) -> Panel:
    nodes = [float(heading.text) for heading in table.headings]
    lines = []
    for row in table.rows:
        marks = tuple(mark for at, cell in zip(nodes, row.cells, strict=True) if (mark := _mark(at, cell)) is not None)
        lines.append(Line(row.labels[0], marks, row.source is Source.PAPER))
    questions = paper().tables[table.id].questions
    return Panel(f"Table {table.id}: {questions} questions", tuple(lines))


def _mark(nodes: float, cell: Cell) -> Mark | None:
    try:
        value = float(cell.text)
    except ValueError:
        return None
    return Mark(nodes, value, *((float(cell.low), float(cell.high)) if cell.low else (None, None)))
