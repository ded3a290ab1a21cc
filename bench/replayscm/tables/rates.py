"""Tables with one row per pool and system, each column a rate, a mean or a number of answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from calibrant.bench.core.metrics import Metric
from calibrant.bench.core.rates import MAX_SUPPRESSED, UNDEFINED, rate_text
from calibrant.bench.replayscm.tables.paper import is_papers, notes, with_printed_rows
from calibrant.bench.replayscm.tables.rows import SystemRow, by_pools
from calibrant.bench.replayscm.verdict import MetricReader
from calibrant.bench.report.intervals import Array, Interval, bootstrap_intervals
from calibrant.bench.report.layout import Cell, Heading, Table, TableRow, cell
from calibrant.bench.statistics import wilson

ROW_LABELS = (Heading("setting", "Setting"), Heading("system", "System"), Heading("pool", "Pool"), Heading("n", "n"))


class Count(NamedTuple):
    """A number of answers; it gets no interval."""

    key: str
    heading: str
    counts: Callable[[MetricReader], bool]


@dataclass(frozen=True)
class RateTable:
    """Definition of a table. applies: whether a setting has rows in it; searches_only: without rows of models"""

    id: str
    title: str
    caption: str
    columns: tuple[Metric | Count, ...]
    applies: Callable[[str], bool] = lambda setting: not setting.startswith("Alt-")
    searches_only: bool = False

    def made(self, rows: Sequence[SystemRow], *, with_paper: bool) -> Table | None:
        """Return the table of these rows, or None if none of them belongs here."""
        ours = [row for row in rows if self.applies(row.setting) and not (self.searches_only and row.is_model)]
        lines = [self._row(row) for group in by_pools(ours) for row in group]
        if not lines:
            return None
        headings = tuple(Heading(column.key, column.heading) for column in self.columns)
        crashes = tuple(crash_note(row) for row in ours if row.num_crashed)
        if not with_paper:
            return Table(self.id, self.title, self.caption, ROW_LABELS, headings, tuple(lines), crashes)
        whole = with_printed_rows(self.id, lines, [column.key for column in self.columns])
        said = notes(self.id, whole, (row.pool for row in ours if not self._is_papers(row)))
        return Table(self.id, self.title, self.caption, ROW_LABELS, headings, whole, (*said, *crashes))

    def _is_papers(self, row: SystemRow) -> bool:
        return row.num_items == row.num_expected and is_papers(row.setting, self.id, row.pools)

    def _row(self, row: SystemRow) -> TableRow:
        answered = row.num_items
        size = str(answered) if answered == row.num_expected else f"{answered} of {row.num_expected}"
        return TableRow((row.setting, row.system, row.pool, size), self.cells(row))

    def cells(self, row: SystemRow) -> tuple[Cell, ...]:
        rates = [column for column in self.columns if isinstance(column, Metric)]
        intervals = dict(zip((column.key for column in rates), rate_intervals(row, rates), strict=True))
        return tuple(
            rate_cell(row, column, intervals[column.key])
            if isinstance(column, Metric)
            else Cell(str(sum(column.counts(one.verdict) for one in row.observations)))
            for column in self.columns
        )


def crash_note(row: SystemRow) -> str:
    answers = f"{row.num_crashed} of {len(row.observations)} answers of {row.system} to {row.pool} ({row.setting})"
    return f"{answers} are crashes; rates count them as not valid."


def rate_cell(row: SystemRow, column: Metric, interval: Interval | None) -> Cell:
    """Return a mean with its interval, `*` for a conditional rate over 1 to 5 answers, a dash for one over none."""
    known: dict[float, int | Fraction] = {}
    items = set()
    for one in row.observations:
        value = column.value(one.verdict)
        if value is not None:
            weight = 1 if one.num_samples == 1 else Fraction(1, one.num_samples)
            known[float(value)] = known.get(float(value), 0) + weight
            items.add((one.pool_digest, one.instance))
    text = rate_text(known, conditional=column.conditional, decimals=column.decimals, num_items=len(items))
    shown = text != UNDEFINED and len(items) > MAX_SUPPRESSED
    return cell(text, interval if shown else None, decimals=column.decimals)


def rate_intervals(row: SystemRow, columns: Sequence[Metric]) -> list[Interval | None]:
    """Intervals of a row's rates over its latent SCMs: bootstrap, and Wilson's where no resample differs.

    Kept with the row: several tables and plots have the same columns, and a resampling is what a report waits for.
    """
    missing = [column for column in columns if column.key not in row.intervals]
    if missing:
        row.intervals.update(zip((column.key for column in missing), _rate_intervals(row, missing), strict=True))
    return [row.intervals[column.key] for column in columns]


def _rate_intervals(row: SystemRow, columns: Sequence[Metric]) -> list[Interval | None]:
    latents = {latent: place for place, latent in enumerate(sorted(row.latents))}
    sums = np.zeros((len(latents), len(columns)))
    counts = np.zeros_like(sums)
    for one in row.observations:
        for k, column in enumerate(columns):
            value = column.value(one.verdict)
            if value is not None:
                sums[latents[one.latent], k] += value / one.num_samples
                counts[latents[one.latent], k] += 1 / one.num_samples
    found = bootstrap_intervals(sums, counts)
    return [all_or_none(interval, counts[:, k]) for k, interval in enumerate(found)]


def all_or_none(interval: Interval | None, counts: Array) -> Interval | None:
    """Wilson's interval for a rate that is 0 or 1 on every problem: the bootstrap gives it no width, 12 of 12 or 80."""
    if interval is None or interval.low != interval.high or interval.low not in (0.0, 1.0):
        return interval
    number = int((counts > 0).sum())
    return Interval(*wilson(number if interval.low else 0, number))
