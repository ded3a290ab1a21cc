"""The table of differences and the paper's figures, from made-up answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from calibrant.bench.causalab.paper import paper
from calibrant.bench.causalab.report import COLUMNS, difference_table, lab_figures
from calibrant.bench.causalab.scoring import METRICS
from calibrant.bench.core.metrics import Metric, Sample
from calibrant.bench.core.scoring import AnswerContext
from calibrant.bench.report.layout import Cell, Heading, Source, Table, TableRow
from calibrant.bench.report.rows import Row, RowGroups
from calibrant.dsl.errors import CalibrantError


def row(system: str, activated: Sequence[float], setting: str = "4nodes") -> Row:
    columns = tuple(Metric(key, key, key, lambda score: 0.0) for key in COLUMNS)
    groups = RowGroups(METRICS, columns)
    for k, value in enumerate(activated):
        context = AnswerContext(system, "p", "d", 9, f"I{k}", setting, "")
        groups.add(context, (value, *[0.5] * (len(columns) - 1)), Sample(True, True, False, False, None))
    (made,) = groups.rows()
    return made


def test_differences_are_paired_and_in_points() -> None:
    table = difference_table([row("a", [1] * 8), row("b", [1] * 6 + [0] * 4)], ["b"])
    assert table is not None
    (line,) = table.rows
    assert line.labels == ("4nodes", "a", "b", "8")
    assert line.cells[0].text == "+25.0"  # two of the eight that both answered
    assert float(line.cells[0].low) < 25 < float(line.cells[0].high)
    assert [cell.text for cell in line.cells[1:]] == ["+0.0"] * (len(COLUMNS) - 1)


def test_suites_are_not_mixed_and_an_unknown_system_is_refused() -> None:
    assert difference_table([row("a", [1] * 8), row("b", [0] * 8, "6nodes")], ["b"]) is None
    assert difference_table([row("a", [1] * 8)], []) is None
    with pytest.raises(CalibrantError, match="no system 'x' to compare with; there are a"):
        difference_table([row("a", [1] * 8)], ["x"])


def printed(number: str) -> Table:
    """Return a printed table as a report has it."""
    table = paper().tables[number]
    keys = [key for key in table.columns if key != "rows"]
    width = len(table.labels)
    rows = []
    for listed in table.rows:
        figures: dict[str, Any] = dict(zip(table.columns, listed[width:], strict=True))
        labels = (*listed[:width], *(() if "system" in table.labels else ("GPT",)))
        rows.append(TableRow(labels, tuple(Cell(figures[key]) for key in keys), Source.PAPER))
    names = (*table.labels, *(() if "system" in table.labels else ("system",)))
    headings = tuple(Heading(key, key) for key in keys)
    return Table(number, table.title, "", tuple(Heading(n, n) for n in names), headings, tuple(rows))


def test_each_table_has_its_figures_with_a_mark_for_every_printed_row() -> None:
    plots = {plot.name: plot.svg for plot in lab_figures([printed(n) for n in ("3", "4", "5", "6", "7", "9", "10")])}
    assert sorted(plots) == [
        *("lab-budget-10", "lab-budget-9", "lab-frontier-10", "lab-frontier-3", "lab-frontier-4", "lab-frontier-5"),
        *("lab-frontier-6", "lab-frontier-9", "lab-nodes"),
    ]
    regimes = len({row[0] for row in paper().tables["9"].rows})
    assert plots["lab-frontier-9"].count('class="mark"') == len(paper().tables["9"].rows) + regimes  # and in the legend
    assert plots["lab-frontier-4"].count("<polyline") == len(paper().tables["4"].rows) - 1  # an arrow to each variant
    assert plots["lab-nodes"].count('class="mark"') == 4 * 20 + 4
