"""Cohorts of problems compared with each other: unpaired differences over a fixed set of systems (Tables F.3 to F.6).

Rates of a cohort are means over systems of each system's mean, so that every system weighs the same. Intervals resample
the latent SCMs of each cohort on their own, with everything that the systems have on them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from pathlib import Path
from typing import TypeAlias

import numpy as np

from calibrant.bench.answers.intervals import FEWEST_PROBLEMS, LEVEL, RESAMPLES, SEED, Array, Interval
from calibrant.bench.core.metrics import UNDEFINED, Item
from calibrant.bench.replayscm.tables.appendix.levels import finished, systems_text
from calibrant.bench.replayscm.tables.paper import printed_rows
from calibrant.bench.replayscm.tables.rows import pool_name
from calibrant.bench.report.layout import NOTHING, Cell, Heading, Table, TableRow, cell
from calibrant.bench.report.rows import Row
from calibrant.dsl.errors import CalibrantError, short_repr

METRICS = ("train_world", "heldout_world", "train_exact")
Statistic: TypeAlias = Callable[[Array], Array]  # of means of METRICS, one a column

_BINS: Mapping[str, Callable[[float], bool]] = {
    "shortcut-kill coverage <=0.50": lambda ratio: ratio <= 0.5,
    "shortcut-kill coverage >0.75": lambda ratio: ratio > 0.75,
}


@dataclass(frozen=True)
class Cohort:
    """Rows of the problems of one cohort under one setting, a row a system."""

    name: str
    setting: str
    rows: Mapping[str, Row]


def parse_cohorts(texts: Sequence[str]) -> list[tuple[str, Path]]:
    """Return names and pools of NAME=POOL; `CalibrantError` for other texts."""
    pairs = []
    for text in texts:
        name, separator, pool = text.partition("=")
        if not (separator and name.strip() and pool):
            raise CalibrantError(f"--cohort {short_repr(text)}: give NAME=POOL, with the file of a pool")
        if not Path(pool).is_file():
            raise CalibrantError(f"--cohort {short_repr(text)}: no file {short_repr(pool)}")
        pairs.append((name.strip(), Path(pool)))
    return pairs


def cohorts(rows: Sequence[Row], digests: Sequence[tuple[str, str]]) -> list[Cohort]:
    """Return the cohorts with answers, by setting in the order in which they are named. digests: of name and pool."""
    result = []
    for name, digest in digests:
        matching = [row for row in rows if set(row.pools) == {digest}]
        if not matching:
            raise CalibrantError(f"--cohort {name}: no answers to that pool; give runs or predictions on it")
        result.append(Cohort(name, matching[0].setting, {row.system: row for row in matching}))
    return result


def disclosure_of(setting: str) -> str:
    """Return what settings of one ladder have in common: Ord of Ordered, Ord-Full, Ord-Ext."""
    return "Hid" if setting.startswith(("Hid-", "Hidden-order")) else setting[:3]


def resampled(row: Row, stream: int) -> tuple[Array, Array]:
    """Return the means of METRICS over the answers, shape (3,), and over resampled latent SCMs, (RESAMPLES, 3)."""
    places = [row.places[key] for key in METRICS]
    units = {unit: place for place, unit in enumerate(sorted(row.units))}
    sums, counts = np.zeros((len(units), len(places))), np.zeros((len(units), len(places)))
    for o in row.observations:
        for k, place in enumerate(places):
            value = o.values[place]
            if value is not None:
                sums[units[o.unit], k] += value / o.num_samples
                counts[units[o.unit], k] += 1 / o.num_samples
    generator = np.random.Generator(np.random.PCG64([SEED, stream]))
    draws = generator.multinomial(len(units), np.full(len(units), 1 / len(units)), size=RESAMPLES).astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        return sums.sum(0) / counts.sum(0), (draws @ sums) / (draws @ counts)


def gap(means: Array) -> Array:
    return means[..., 0] - means[..., 1]


def retention(means: Array) -> Array:
    """Return the ratio of the means of HeldoutWorld and TrainWorld."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(means[..., 1] / means[..., 0])


def pooled(cohort: Cohort, systems: Sequence[str], stream: int) -> tuple[Array, Array]:
    """Return means over systems, of the answers and of resampled latent SCMs; the systems share each resample."""
    parts = [resampled(cohort.rows[system], stream) for system in systems]
    return np.mean([part[0] for part in parts], axis=0), np.mean([part[1] for part in parts], axis=0)


STATISTICS: tuple[tuple[str, str, Statistic], ...] = (
    ("train_world", "TrainWorld", lambda means: means[..., 0]),
    ("heldout_world", "HeldoutWorld", lambda means: means[..., 1]),
    ("train_minus_heldout_gap", "Gap", gap),
    ("retention", "Retention", retention),
)
DIFFERENCES: tuple[tuple[str, str, Statistic], ...] = (
    ("heldout_world_difference", "Δ HeldoutWorld", lambda means: means[..., 1]),
    ("gap_difference", "Δ gap", gap),
    ("retention_difference", "Δ retention", retention),
    ("train_exact_difference", "Δ TrainExact", lambda means: means[..., 2]),
)
_CAPTION = (
    "Cohorts as --cohort names them. Gap: TrainWorld minus HeldoutWorld. Retention: HeldoutWorld over TrainWorld, a"
    " ratio of the means. Every system weighs the same."
)
_BIN_CAPTION = (
    "Answers in bins of the share of variables with a shortcut that generation ruled out, which official records and"
    " those of the published generator state (kill_coverage_ratio). Every system weighs the same."
)


def _cell(value: float, draws: Array, num_units: int, *, signed: bool) -> Cell:
    if not np.isfinite(value):
        return Cell(UNDEFINED)
    defined = draws[np.isfinite(draws)]
    interval = None
    if num_units >= FEWEST_PROBLEMS and len(defined):
        low, high = np.quantile(defined, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
        interval = Interval(float(low), float(high))
    return cell(f"{value + 0.0:{'+' if signed else ''}.3f}", interval, signed=signed)


def _common(listed: Sequence[Cohort]) -> list[str]:
    """Return the systems that all cohorts of a disclosure have."""
    first = listed[0]
    return [system for system in first.rows if all(system in cohort.rows for cohort in listed)]


def _by_disclosure(listed: Sequence[Cohort]) -> dict[str, list[Cohort]]:
    grouped: dict[str, list[Cohort]] = {}
    for cohort in listed:
        grouped.setdefault(disclosure_of(cohort.setting), []).append(cohort)
    return grouped


def _size(cohort: Cohort) -> int:
    return min(len(row.units) for row in cohort.rows.values())


def cohort_levels(listed: Sequence[Cohort], *, with_paper: bool) -> Table | None:
    """Table F.3."""
    lines = []
    for group in _by_disclosure(listed).values():
        systems = _common(group)
        for stream, cohort in enumerate(group):
            if systems:
                value, draws = pooled(cohort, systems, stream)
                cells = tuple(
                    _cell(float(statistic(value)), statistic(draws), _size(cohort), signed=False)
                    for _, _, statistic in STATISTICS
                )
                lines.append(TableRow(_labels(cohort, cohort.name, systems_text(len(systems))), cells))
    headings = tuple(Heading(key, text) for key, text, _ in STATISTICS)
    return _table("F.3", "Cohorts", headings, lines, with_paper, "cohort")


def _labels(cohort: Cohort, name: str, systems: str) -> tuple[str, ...]:
    return cohort.setting, name, systems, pool_name(next(iter(cohort.rows.values()))), str(_size(cohort))


def _table(
    number: str, title: str, headings: tuple[Heading, ...], lines: Sequence[TableRow], with_paper: bool, name: str
) -> Table | None:
    labels = (
        Heading("setting", "Setting"),
        Heading(name, name.capitalize()),
        Heading("system", "Systems"),
        Heading("pool", "Pool"),
        Heading("n", "n"),
    )
    if number == "F.6":
        return finished(number, title, _BIN_CAPTION, headings, lines, with_paper=with_paper, labels=labels)
    if not lines:
        return None
    keys = [heading.key for heading in labels]
    printed = printed_rows(number, [heading.key for heading in headings], keys) if with_paper else []
    note_lines = (f"Rows of pool “paper” are printed in the paper's Table {number}.",) if printed else ()
    return Table(number, title, _CAPTION, labels, headings, (*lines, *printed), note_lines)


def cohort_differences(listed: Sequence[Cohort], number: str, *, with_paper: bool) -> Table | None:
    """Tables F.1 and F.4, pooled over systems, and F.5 by system: each cohort minus the first of its disclosure."""
    columns = DIFFERENCES if number == "F.4" else DIFFERENCES[:3]
    lines = []
    for group in _by_disclosure(listed).values():
        systems = _common(group)
        base = group[0]
        for stream, cohort in enumerate(group[1:], 1):
            for chosen in [[system] for system in systems] if number == "F.5" else [systems] * bool(systems):
                (value, draws), (base_value, base_draws) = pooled(cohort, chosen, stream), pooled(base, chosen, 0)
                cells = tuple(
                    _cell(
                        float(statistic(value) - statistic(base_value)),
                        statistic(draws) - statistic(base_draws),
                        min(_size(cohort), _size(base)),
                        signed=True,
                    )
                    for _, _, statistic in columns
                )
                name = chosen[0] if number == "F.5" else systems_text(len(chosen))
                lines.append(TableRow(_labels(cohort, f"{cohort.name} - {base.name}", name), cells))
    headings = tuple(Heading(key, text) for key, text, _ in columns)
    titles = {
        "F.1": "Pooled cohort differences",
        "F.4": "Cohort differences",
        "F.5": "Cohort differences by system",
    }
    return _table(number, titles[number], headings, lines, with_paper, "comparison")


def by_kill_coverage(rows: Sequence[Row], kills: Mapping[Item, float], *, with_paper: bool) -> Table | None:
    """Table F.6: replay in bins of the share of variables with a shortcut that generation ruled out."""
    by_setting: dict[str, list[Row]] = {}
    for row in rows:
        by_setting.setdefault(row.setting, []).append(row)
    lines = []
    for setting, listed in by_setting.items():
        for name, holds in _BINS.items():
            chosen = {}
            for row in listed:
                items = {item for item in row.items if item in kills and holds(kills[item])}
                part = row.restrict(items.__contains__)
                if part.num_items:
                    chosen[row.system] = part
            if chosen:
                lines.append(_bin_line(Cohort(name, setting, chosen)))
    headings = (
        Heading("heldout_world", "HeldoutWorld"),
        Heading("retention", "Retention"),
        Heading("heldout_world_given_train_exact", "HW|TE"),
    )
    return _table("F.6", "Replay by ambiguity proxy", headings, lines, with_paper, "bin")


def _bin_line(cohort: Cohort) -> TableRow:
    value, draws = pooled(cohort, [*cohort.rows], 0)
    rates = [row.rates["heldout_world_given_train_exact"].value for row in cohort.rows.values()]
    defined_rates = [rate for rate in rates if rate is not None]
    cells = (
        _cell(float(value[1]), draws[:, 1], _size(cohort), signed=False),
        _cell(float(retention(value)), retention(draws), _size(cohort), signed=False),
        Cell(f"{fsum(defined_rates) / len(defined_rates):.3f}") if defined_rates else NOTHING,
    )
    return TableRow(_labels(cohort, cohort.name, systems_text(len(cohort.rows))), cells)
