"""Comparisons of systems two by two: mean differences over the items that both answered, and what may be claimed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

from calibrant.bench.answers.frame import AnswerFrame
from calibrant.bench.answers.rates import LEVEL, Difference, Means, paired_differences
from calibrant.bench.core.benchmark import Benchmark
from calibrant.bench.core.metrics import MAX_SUPPRESSED, SUPPRESSED, UNDEFINED, Metric, item_itself
from calibrant.bench.papers import group_answers
from calibrant.bench.report.layout import NOTHING, Cell, Heading, Table, TableRow, cell
from calibrant.bench.report.rows import Answer, Grouping, Row, group
from calibrant.bench.report.sections import ReportContents, Section
from calibrant.dsl.errors import CalibrantError, short_repr

PAIRED = "paired"
OVERALL = "all"  # the setting of a row over all settings
MANY_SYSTEMS = 6  # beyond that every pair would be a table of its own
REFERENCE = "exact"  # what many systems are compared with
LABELS = (
    *(Heading("setting", "Setting"), Heading("system", "System"), Heading("other", "Compared with")),
    *(Heading("pool", "Pool"), Heading("n", "n")),
)


def differences(
    first: Row, second: Row, means: Callable[[AnswerFrame, int], Means], keys: Iterable[str]
) -> list[Difference]:
    """Return differences of metrics between two rows, each over the units in which it is defined for both.

    means: `AnswerFrame.item_means` or `unit_means`; keys: of the metrics
    """
    sides = [(means(first.frame, first.places[key]), means(second.frame, second.places[key])) for key in keys]
    return paired_differences(sides, first.frame.clusters | second.frame.clusters)


def difference_headings(metrics: Iterable[Metric]) -> tuple[Heading, ...]:
    return tuple(Heading(f"{metric.key}_difference", f"Δ {metric.heading}") for metric in metrics)


def difference_cell(difference: Difference, decimals: int = 3) -> Cell:
    """Return a difference with its interval; suppressed, as a conditional rate is, over 1 to 5 units."""
    if difference.mean is None:
        return NOTHING
    if difference.num_units <= MAX_SUPPRESSED:
        return Cell(SUPPRESSED)
    return cell(f"{difference.mean + 0.0:+.{decimals}f}", difference.interval, decimals=decimals, signed=True)


def verdict(difference: Difference) -> str:
    """Return what may be claimed of a difference."""
    if difference.interval is None:
        return UNDEFINED
    if not difference.interval.excludes_zero:
        return "not separated"
    return "better" if difference.interval.low > 0 else "worse"


def comparisons(
    rows: Sequence[Row], metrics: Sequence[Metric], against: Sequence[str], *, units: str, on: str
) -> Table | None:
    """Every pair of systems on the same pools; with many systems, each against `against`.

    metrics: what differs, the last one decides, on what `on` names; units: what is drawn together

    By default `against` is `exact`, or where it is missing the row of each pool that is best by the last metric.

    `CalibrantError` for a system that is not there.
    """
    systems = {row.system for row in rows}
    for name in against:
        if name not in systems:
            raise CalibrantError(
                f"no system {short_repr(name)} to compare with; there are {', '.join(sorted(systems))}"
            )
    references = tuple(against) or ((REFERENCE,) if len(systems) > MANY_SYSTEMS and REFERENCE in systems else ())
    many = len(systems) > MANY_SYSTEMS and not references
    keys = [metric.key for metric in metrics]
    lines = [
        _compare(first, second, keys)
        for rows_of_pools in group_answers(rows, lambda row: (row.setting, frozenset(row.pools))).values()
        for first, second in _pairs(rows_of_pools, _best(rows_of_pools, keys[-1]) if many else references)
    ]
    if not lines:
        return None
    headings = (*difference_headings(metrics), Heading("verdict", f"On {on}"))
    caption = (
        f"System minus the other, over the instances that both answered, with paired {LEVEL:.0%} percentile bootstrap"
        f" intervals over {units}. “Better” or “worse” is said only where the interval of {metrics[-1].heading}"
        " excludes zero; intervals are for one comparison each, not for all of them at once."
    )
    return Table(PAIRED, "Which row beats which", caption, LABELS, headings, tuple(lines))


def _best(rows: Sequence[Row], key: str) -> tuple[str, ...]:
    """Return the system with the largest sum of a metric, the first of equals."""
    return tuple(row.system for row in sorted(rows, key=lambda row: -float(row.frame.total(row.places[key])))[:1])


def _pairs(rows: Sequence[Row], references: tuple[str, ...]) -> Iterator[tuple[Row, Row]]:
    if not references:
        yield from combinations(rows, 2)
    for reference in (row for row in rows if row.system in references):
        yield from ((row, reference) for row in rows if row is not reference)


def _compare(first: Row, second: Row, keys: Sequence[str]) -> TableRow:
    deltas = differences(first, second, AnswerFrame.item_means, keys)
    labels = first.setting, first.system, second.system, first.pool, str(deltas[0].num_units)
    return TableRow(labels, (*map(difference_cell, deltas), Cell(verdict(deltas[-1]))))


# --- The same over all settings of a benchmark, whose items weigh alike -----------------------------------------------


def over_settings(answers: Iterable[Answer]) -> list[Answer]:
    """Return answers as of one setting without strata."""
    return [(context._replace(setting=OVERALL, stratum=""), score) for context, score in answers]


def add_pairs(section: Section, of: Benchmark[Any], answers: Sequence[Answer], contents: ReportContents) -> Section:
    """Return the section with comparisons over all settings, then by setting, where they were asked for by name.

    Of a benchmark whose section has comparisons of its own it is returned unchanged.
    """
    if PAIRED not in contents.tables or any(table.id == PAIRED for table in section.tables):
        return section
    by = Grouping.SETTING if contents.by is Grouping.SETTING else Grouping.POOL
    rows = group(over_settings(answers), of.metrics, by)
    by_setting = group(answers, of.metrics, by)
    if len({row.setting for row in by_setting}) > 1:
        rows += by_setting
    rows.sort(key=lambda row: (row.setting != OVERALL, *of.metrics.place(row.setting), row.pool, row.system))
    (accuracy,) = (metric for metric in of.metrics.columns if metric.key == "accuracy")
    units = "items" if of.metrics.unit is item_itself else "items, those about one model drawn together"
    table = comparisons(rows, (accuracy,), contents.against, units=units, on="right answers")
    return section if table is None else replace(section, tables=(*section.tables, table))
