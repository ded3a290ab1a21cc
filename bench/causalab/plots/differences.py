"""Differences of systems on the same laboratories, in points: the shape of the paper's Figure 5."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, stdev

from calibrant.bench.core.samples import Item
from calibrant.bench.report.intervals import FEWEST_PROBLEMS, Interval
from calibrant.bench.report.layout import NOTHING, Cell, Heading, Table, TableRow, cell
from calibrant.bench.report.rows import Row
from calibrant.dsl.errors import CalibrantError, short_repr

ID = "differences"
COLUMNS = {
    "activated": "Activated",
    "edge_f1": "F1",
    "root_f1": "Root F1",
    "frequency_edge_f1": "F1 into F",
    "frequency_weight_f1": "Weights",
}
NORMAL = 1.959963984540054  # 97.5 % quantile


def difference_table(rows: Sequence[Row], against: Sequence[str]) -> Table | None:
    """Return each system minus those named, by suite and pool; `CalibrantError` for one that is not there."""
    systems = {row.system for row in rows}
    for name in against:
        if name not in systems:
            raise CalibrantError(
                f"no system {short_repr(name)} to compare with; there are {', '.join(sorted(systems))}"
            )
    lines = []
    for reference in (row for row in rows if row.system in against):
        for row in rows:
            alike = (row.setting, row.stratum, row.pools.keys()) == (
                reference.setting,
                reference.stratum,
                reference.pools.keys(),
            )
            if alike and row.system != reference.system:
                lines.append(_line(row, reference))
    if not lines:
        return None
    labels = (
        Heading("setting", "Suite"),
        Heading("system", "System"),
        Heading("other", "Compared with"),
        Heading("n", "n"),
    )
    headings = tuple(Heading(f"{key}_difference", f"Δ {text}") for key, text in COLUMNS.items())
    caption = (
        "System minus the other in points of 100, over the laboratories that both answered; in brackets the normal"
        " 95 % interval of the paired differences."
    )
    return Table(ID, "Differences between systems", caption, labels, headings, tuple(lines))


def _line(row: Row, reference: Row) -> TableRow:
    cells = [_difference(_means(row, key), _means(reference, key)) for key in COLUMNS]
    number = len(row.answers.keys() & reference.answers.keys())
    return TableRow((row.setting, row.system, reference.system, str(number)), tuple(cells))


def _means(row: Row, key: str) -> dict[Item, float]:
    """Return the mean of a metric on each item for which it is defined."""
    place = row.places[key]
    means = {}
    for item, answers in row.answers.items():
        values = [value for answer in answers if (value := answer[place]) is not None]
        if values:
            means[item] = fmean(values)
    return means


def _difference(first: dict[Item, float], second: dict[Item, float]) -> Cell:
    points = [100 * (first[item] - second[item]) for item in sorted(first.keys() & second.keys())]
    if not points:
        return NOTHING
    mean = fmean(points)
    if len(points) < FEWEST_PROBLEMS:
        return Cell(f"{mean + 0.0:+.1f}")
    reach = NORMAL * stdev(points) / len(points) ** 0.5
    return cell(f"{mean + 0.0:+.1f}", Interval(mean - reach, mean + reach), decimals=1, signed=True)
