"""Differences over the same problems, each with a paired interval: between disclosures, and between systems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from math import fsum
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from calibrant.bench.answers.intervals import LEVEL, Interval, bootstrap_intervals
from calibrant.bench.core.metrics import MAX_SUPPRESSED, SUPPRESSED, UNDEFINED
from calibrant.bench.replayscm.tables.paper import PAIR, fits_printed, notes, with_printed
from calibrant.bench.replayscm.tables.rows import by_pools, mean_by_unit, pool_name
from calibrant.bench.replayscm.verdict import REPLAY_METRICS
from calibrant.bench.report.layout import NOTHING, Cell, Heading, Table, TableRow, cell
from calibrant.bench.report.rows import Observation, Row
from calibrant.dsl.errors import CalibrantError, short_repr

TRAIN_EXACT, HELDOUT_WORLD, HELDOUT_EXACT = (
    next(column for column in REPLAY_METRICS if column.key == key)
    for key in ("train_exact", "heldout_world", "heldout_exact")
)
DIFFERENCES = (TRAIN_EXACT, HELDOUT_WORLD, HELDOUT_EXACT)
MANY_SYSTEMS = 6  # beyond that every pair would be a table of its own
REFERENCE = "exact"  # what many systems are compared with

RUNGS: Mapping[str, tuple[str, int]] = {
    setting: (family, rung)
    for family, ladder in {
        "": (("Ordered", "Ord-Full"), ("Block",), ("Hidden-order", "Hid-Full"), ("Hidden-roots", "Hid-Roots")),
        "Ext": (("Ord-Ext",), (), ("Hid-Ext",), ()),
        "CEx": (("Ord-CEx",), (), ("Hid-CEx",), ()),
    }.items()
    for rung, settings in enumerate(ladder)
    for setting in settings
}
STEPS = ((0, 1), (1, 2), (0, 2), (2, 3))  # the pairs of the paper's Table D.1, in its order


class Paired(NamedTuple):
    """A mean difference over matched units; both None where nothing matches."""

    mean: float | None
    interval: Interval | None
    num_units: int

    @property
    def cell(self) -> Cell:
        """Suppressed, as a conditional rate is, over 1 to 5 units."""
        if self.mean is None:
            return NOTHING
        if self.num_units <= MAX_SUPPRESSED:
            return Cell(SUPPRESSED)
        return cell(f"{self.mean + 0.0:+.3f}", self.interval, signed=True)


Values: TypeAlias = Mapping[Any, float]  # by unit


def paired_differences(pairs: Sequence[tuple[Values, Values]], cluster: Mapping[Any, str]) -> list[Paired]:
    """Return the mean of `first - second` over the units that both have, of several quantities.

    Intervals resample whole clusters of units; quantities over the same clusters share a resampling, which costs most.
    """
    units = [sorted(first.keys() & second.keys()) for first, second in pairs]
    over = [tuple(sorted({cluster[unit] for unit in shared})) for shared in units]
    results = [Paired(None, None, 0)] * len(pairs)
    for names in dict.fromkeys(filter(None, over)):
        alike = [k for k, unit_names in enumerate(over) if unit_names == names]
        place = {name: row for row, name in enumerate(names)}
        sums, counts = np.zeros((len(names), len(alike))), np.zeros((len(names), len(alike)))
        for column, k in enumerate(alike):
            first, second = pairs[k]
            for unit in units[k]:
                sums[place[cluster[unit]], column] += first[unit] - second[unit]
                counts[place[cluster[unit]], column] += 1
        intervals = bootstrap_intervals(sums, counts)
        for column, k in enumerate(alike):
            number = len(units[k])
            results[k] = Paired(float(sums[:, column].sum() / number), intervals[column], number)
    return results


def by_latent(observation: Observation) -> str:
    return observation.unit


def by_instance(observation: Observation) -> tuple[str, str]:
    return observation.item


def differences(first: Row, second: Row, unit: Any) -> list[Paired]:
    """Return DIFFERENCES between two rows, each over the units in which it is defined for both."""
    cluster = {unit(o): o.unit for row in (first, second) for o in row.observations}
    return paired_differences(
        [
            (
                mean_by_unit(first.observations, unit, first.places[column.key]),
                mean_by_unit(second.observations, unit, second.places[column.key]),
            )
            for column in DIFFERENCES
        ],
        cluster,
    )


def disclosure_deltas(rows: Sequence[Row], *, with_paper: bool) -> Table | None:
    """Table D.1: each system under two disclosures of the same latent SCMs, first minus second."""
    lines: list[tuple[Any, TableRow]] = []
    for first, second in combinations(rows, 2):
        (family, low), (other_family, high) = RUNGS.get(first.setting, ("-", 0)), RUNGS.get(second.setting, ("-", 0))
        step = (low, high)
        if first.system != second.system or family != other_family or step not in STEPS:
            continue
        if not first.units & second.units:
            continue
        deltas = differences(first, second, by_latent)
        pair = PAIR.join((first.setting, second.setting))
        pools = PAIR.join(dict.fromkeys((pool_name(first), pool_name(second))))
        texts = pair, first.system, pools, str(deltas[0].num_units)
        fits = fits_printed(first) and fits_printed(second)
        line = TableRow(texts, tuple(delta.cell for delta in deltas), fits=fits)
        lines.append(((family, STEPS.index(step), len(lines)), line))
    if not lines:
        return None
    table_lines = tuple(line for _, line in sorted(lines, key=lambda item: item[0]))
    headings = tuple(Heading(f"{column.key}_difference", f"Δ {column.heading}") for column in DIFFERENCES)
    labels = (Heading("pair", "Disclosures"), Heading("system", "System"), Heading("pool", "Pools"), Heading("n", "n"))
    caption = (
        "The same latent SCMs under two disclosures; first minus second, so that positive is what hiding costs."
        f" In brackets: {LEVEL:.0%} percentile bootstrap over the latent SCMs, both disclosures of one drawn together."
        " n: matched SCMs; HeldoutWorld is over those in which both answers have one."
    )
    our_table = Table("D.1", "What less disclosure costs", caption, labels, headings, table_lines)
    table = with_printed(our_table, with_paper=with_paper)
    pool_names = (line.labels[2] for line in table_lines)
    return replace(table, notes=notes("D.1", table.rows, pool_names)) if with_paper and table.fits else table


def comparisons(rows: Sequence[Row], against: Sequence[str]) -> Table | None:
    """Every pair of systems on the same pools; with many systems, each against `against`.

    By default that is `exact`, or where it is missing the row of each pool that is best on held-out replay.

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
    groups = [_comparable(group) for group in by_pools(rows)]
    lines = [
        _compare(first, second)
        for group in groups
        for first, second in _pairs(group, _best(group) if many else references)
    ]
    if not lines:
        return None
    headings = tuple(Heading(f"{column.key}_difference", f"Δ {column.heading}") for column in DIFFERENCES)
    headings += (Heading("verdict", "On held-out replay"),)
    labels = (
        Heading("setting", "Setting"),
        Heading("system", "System"),
        Heading("other", "Compared with"),
        Heading("pool", "Pool"),
        Heading("n", "n"),
    )
    caption = (
        f"System minus the other, over the instances that both answered, with paired {LEVEL:.0%} percentile bootstrap"
        " intervals over latent SCMs. “Better” or “worse” is said only where the interval of HeldoutExact excludes"
        " zero; intervals are for one comparison each, not for all of them at once."
    )
    return Table("paired", "Which row beats which", caption, labels, headings, tuple(lines))


def _best(group: Sequence[Row]) -> tuple[str, ...]:
    """Return the system with most answers that replay what is held out, the first of equals."""

    def num_right(row: Row) -> float:
        return fsum(o.values[row.places[HELDOUT_EXACT.key]] or 0.0 for o in row.observations)

    return tuple(row.system for row in sorted(group, key=num_right, reverse=True)[:1])


def _comparable(group: Sequence[Row]) -> list[Row]:
    return [row for row in group if not row.setting.startswith("Alt-")]


def _pairs(group: Sequence[Row], references: tuple[str, ...]) -> list[tuple[Row, Row]]:
    if not references:
        return list(combinations(group, 2))
    reference_rows = [row for row in group if row.system in references]
    return [(row, reference) for reference in reference_rows for row in group if row is not reference]


def _compare(first: Row, second: Row) -> TableRow:
    deltas = differences(first, second, by_instance)
    labels = first.setting, first.system, second.system, pool_name(first), str(deltas[0].num_units)
    return TableRow(labels, (*(delta.cell for delta in deltas), Cell(verdict(deltas[-1]))))


def verdict(heldout: Paired) -> str:
    """Return what may be claimed of a difference."""
    if heldout.interval is None:
        return UNDEFINED
    if not heldout.interval.excludes_zero:
        return "not separated"
    return "better" if heldout.interval.low > 0 else "worse"
