"""A view of a benchmark's measures as a table: a row for each setting, stratum, pool and system, with intervals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from math import fsum, sqrt
from statistics import fmean

from calibrant.bench.core.metrics import Metric, View
from calibrant.bench.core.observations import Values
from calibrant.bench.core.rates import SUPPRESSED, is_suppressed
from calibrant.bench.report.formats import shown_columns
from calibrant.bench.report.intervals import Interval
from calibrant.bench.report.layout import NOTHING, Cell, Heading, Table, TableRow, cell
from calibrant.bench.report.rows import Rate, Row
from calibrant.bench.statistics import NORMAL_95, wilson

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
    """Return the means of metrics over the items of a row; of skill the ratio; each with an interval."""
    means = [*zip(*map(_item_means, row.answers.values()), strict=True)]
    return tuple(
        _skill_cell(row.skill(column)) if column.skill_of else mean_cell(means[row.places[column.key]], column)
        for column in columns
    )


def _skill_cell(rate: Rate) -> Cell:
    return NOTHING if rate.value is None else cell(f"{rate.value:.2f}", rate.interval, decimals=2)


def _item_means(answers: Sequence[Values]) -> Values:
    """Return the mean of each metric over an item's answers, so that every item weighs the same."""
    return answers[0] if len(answers) == 1 else tuple(map(_defined_mean, zip(*answers, strict=True)))


def _defined_mean(values: Sequence[float | None]) -> float | None:
    defined = [value for value in values if value is not None]
    return fmean(defined) if defined else None


def mean_cell(values: Sequence[float | None], column: Metric) -> Cell:
    """Return the mean of what is there: shares with a score interval, others with a normal one.

    A conditional rate over 1 to 5 answers is suppressed. Of values between 0 and 1, the score interval is that of
    shares with the same mean, which spread at least as much.
    """
    defined = [float(value) for value in values if value is not None]
    if not defined:
        return NOTHING
    if column.conditional and is_suppressed(len(defined)):
        return Cell(SUPPRESSED)
    if column.decimals == SHARE_DECIMALS:
        return _share_cell(fmean(defined), fsum(defined), len(defined))
    return cell(f"{fmean(defined):.{column.decimals}f}", _interval(defined), decimals=column.decimals)


@lru_cache(20_000)  # most of 10^5 cells are of few counts
def _share_cell(share: float, total: float, number: int) -> Cell:
    return cell(f"{share:.{SHARE_DECIMALS}f}", Interval(*wilson(total, number)), decimals=SHARE_DECIMALS)


def _interval(values: Sequence[float]) -> Interval | None:
    if len(set(values)) < 2:
        return None
    mean = fmean(values)
    deviation = sqrt(fsum((value - mean) ** 2 for value in values) / (len(values) - 1))
    half_width = NORMAL_95 * deviation / sqrt(len(values))
    return Interval(mean - half_width, mean + half_width)
