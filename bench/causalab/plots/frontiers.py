"""Figures of the CausaLab paper from its tables with our rows: frontiers, lines by nodes and by budget."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from calibrant.bench.pages.charts import Axis, Line, Mark, Panel, panels_svg
from calibrant.bench.report.layout import Cell, Source, Table, TableRow
from calibrant.bench.report.sections import Plot

FRONTIER_X, FRONTIER_Y = "all_edge_f1", "accuracy_percent"
BY_REGIME = ("9", "10", "11", "12")
BY_VARIANT = ("3", "4", "5", "6")
BY_NODES = "7"
METRICS = {
    "accuracy_percent": "Activated %",
    "all_edge_f1": "All-edge F1",
    "root_f1": "Root F1",
    "freq_weight_f1": "Weight F1",
}
_BUDGET = re.compile(r"([\d.]+)o([\d.]+)i")
_FRONTIER = (
    "Activated against all-edge F1, a {}; hollow and dashed: printed. To the upper right: acts rightly, and knows why."
)


def lab_figures(tables: Sequence[Table]) -> Iterator[Plot]:
    """Yield the figures whose tables are there."""
    for table in tables:
        if table.id in BY_VARIANT:
            yield _frontier(table, "arrow from the baseline to each variant", _system_name, arrow=True)
        elif table.id in BY_REGIME:
            yield _frontier(table, "line for each regime and system", _regime_name, arrow=False)
            yield _by_budget(table)
        elif table.id == BY_NODES:
            yield _by_nodes(table)


def _system_name(labels: Mapping[str, str]) -> str:
    return labels["system"]


def _regime_name(labels: Mapping[str, str]) -> str:
    return f"{labels['regime']}, {labels['system']}"


def _labelled(table: Table) -> Iterator[tuple[dict[str, str], dict[str, float], TableRow]]:
    """Yield labels and known figures of each row."""
    for row in table.rows:
        labels = dict(zip((heading.key for heading in table.labels), row.labels, strict=True))
        figures = {
            heading.key: value
            for heading, cell in zip(table.headings, row.cells, strict=True)
            if (value := _number(cell.text)) is not None
        }
        yield labels, figures, row


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _ends(table: Table, row: TableRow, key: str) -> tuple[float | None, float | None]:
    cells = dict(zip((heading.key for heading in table.headings), row.cells, strict=True))
    cell = cells.get(key, Cell(""))
    return _number(cell.low), _number(cell.high)


def _frontier(table: Table, words: str, name: Callable[[Mapping[str, str]], str], *, arrow: bool) -> Plot:
    groups: dict[tuple[str, bool, str], list[Mark]] = {}
    for labels, figures, row in _labelled(table):
        if FRONTIER_X in figures and FRONTIER_Y in figures:
            is_printed = row.source is Source.PAPER
            family = labels.get("suite", "")
            note = "" if arrow else labels["budget"]
            mark = Mark(figures[FRONTIER_X], figures[FRONTIER_Y], note=note)
            groups.setdefault((name(labels), is_printed, family), []).append(mark)
    lines = []
    for (system, is_printed, _), marks in groups.items():
        if arrow and len(marks) > 1:
            lines += [Line(system, (marks[0], mark), is_printed, arrow=True) for mark in marks[1:]]
        else:
            lines.append(Line(system, tuple(marks), is_printed))
    title = f"Accuracy and structure, Table {table.id}"
    svg = panels_svg([Panel(table.title, tuple(lines))], Axis("all-edge F1", 0, 1), Axis("activated, %", 0, 100), title)
    return Plot(f"lab-frontier-{table.id}", title, _FRONTIER.format(words), svg)


def _by_budget(table: Table) -> Plot:
    panels = []
    for key in ("accuracy_percent", "all_edge_f1"):
        groups: dict[tuple[str, bool], list[Mark]] = {}
        for labels, figures, row in _labelled(table):
            budget = _BUDGET.fullmatch(labels["budget"])
            if budget and key in figures:
                low, high = _ends(table, row, key)
                scale = 100 if key == "all_edge_f1" else 1
                ends = [None if end is None else end * scale for end in (low, high)]
                total = float(budget[1]) + float(budget[2])
                mark = Mark(total, figures[key] * scale, ends[0], ends[1])
                groups.setdefault((_regime_name(labels), row.source is Source.PAPER), []).append(mark)
        panels.append(_panel(METRICS[key] + (", %" if key == "all_edge_f1" else ""), groups))
    title = f"By budget, Table {table.id}"
    caption = "Records shown at the start plus settings allowed. Hollow and dashed: printed."
    return Plot(f"lab-budget-{table.id}", title, caption, panels_svg(panels, Axis("budget"), Axis("%", 0, 100), title))


def _by_nodes(table: Table) -> Plot:
    panels = []
    for key, words in METRICS.items():
        groups: dict[tuple[str, bool], list[Mark]] = {}
        for labels, figures, row in _labelled(table):
            if key in figures:
                scale = 1 if key == "accuracy_percent" else 100
                low, high = (None if end is None else end * scale for end in _ends(table, row, key))
                mark = Mark(float(labels["nodes"]), figures[key] * scale, low, high)
                groups.setdefault((labels["system"], row.source is Source.PAPER), []).append(mark)
        panels.append(_panel(words if key == "accuracy_percent" else f"{words}, %", groups))
    title = "By number of nodes, Table 7"
    caption = "A panel for each metric, a line for each system. Hollow and dashed: printed."
    return Plot("lab-nodes", title, caption, panels_svg(panels, Axis("nodes"), Axis("%", 0, 100), title))


def _panel(title: str, groups: dict[tuple[str, bool], list[Mark]]) -> Panel:
    lines = (Line(name, tuple(sorted(marks)), printed) for (name, printed), marks in groups.items())
    return Panel(title, tuple(lines))
