"""Numbers of the plots: the disclosure ladder, success by ambiguity, time by size."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from functools import reduce
from statistics import median
from typing import NamedTuple

from calibrant.bench.answers import frame
from calibrant.bench.answers.intervals import Interval
from calibrant.bench.answers.rates import exact_mean
from calibrant.bench.core.metrics import Metric
from calibrant.bench.replayscm.expectations import Ambiguities
from calibrant.bench.replayscm.paper import HELDOUT_EXACT, RUNGS
from calibrant.bench.report.rows import Observation, Row

RUNG_NAMES = ("Ordered", "Block", "Hidden order", "Hidden roots")
BINS = (("1", 1), ("to 100", 100), ("to 10⁴", 10**4), ("to 10⁶", 10**6))
REST = "more"
NUM_BINS = len(BINS) + 1
SIZE_GROUPS = 4


class CurvePoint(NamedTuple):
    """One point of a curve.

    place: of its group on the horizontal axis: the rung, or the bin
    num: answers behind the mean
    """

    place: int
    mean: float
    interval: Interval | None
    num: int


class SystemAnswers(NamedTuple):
    """A system's answers over several rows, by pool and item.

    places: of the metrics among their values
    """

    system: str
    observations: list[Observation]
    places: Mapping[str, int]


def row_estimate(row: Row, column: Metric) -> CurvePoint | None:
    """Return a row's rate, in no place; None where it is defined for no answer."""
    return estimate(0, [*row.observations], row.places[column.key])


def estimate(place: int, observations: Sequence[Observation], metric_place: int) -> CurvePoint | None:
    """Return the rate of a share over answers; None where it is defined for none of them."""
    rate = frame.estimate((o.item, o.unit, o.values[metric_place]) for o in observations)
    return None if rate is None else CurvePoint(place, *rate)


def families(rows: Sequence[Row]) -> list[list[Row]]:
    """Return the rows of the disclosure ladder, apart where they share no latent SCM, with two disclosures at least."""
    groups: list[list[Row]] = []
    for row in rows:
        if RUNGS.get(row.setting, ("-", 0))[0]:
            continue
        touching = [group for group in groups if any(row.units & relative.units for relative in group)]
        groups = [group for group in groups if group not in touching]
        groups.append([*(member for group in touching for member in group), row])
    return [group for group in groups if len({RUNGS[row.setting] for row in group}) > 1]


def ladder_points(family: Sequence[Row], column: Metric) -> dict[str, list[CurvePoint]]:
    """Per system: its mean at each rung, over the latent SCMs that it has at all of its rungs."""
    points: dict[str, list[CurvePoint]] = {}
    for system in dict.fromkeys(row.system for row in family):
        rungs: dict[int, list[Row]] = {}
        for row in family:
            if row.system == system:
                rungs.setdefault(RUNGS[row.setting][1], []).append(row)
        if len(rungs) < 2:
            continue
        at_each = [frozenset[str]().union(*(row.units for row in group)) for group in rungs.values()]
        matched = reduce(frozenset.intersection, at_each)
        at_rungs = [
            estimate(rung, [o for o in _merge(group) if o.unit in matched], group[0].places[column.key])
            for rung, group in sorted(rungs.items())
        ]
        points[system] = [point for point in at_rungs if point is not None]
    return points


def num_matched(family: Sequence[Row]) -> int:
    """Return how many latent SCMs occur at more than one rung."""
    rungs_by_latent: dict[str, set[int]] = {}
    for row in family:
        for latent in row.units:
            rungs_by_latent.setdefault(latent, set()).add(RUNGS[row.setting][1])
    return sum(len(rungs) > 1 for rungs in rungs_by_latent.values())


def ambiguity_bins(rows: Sequence[Row], audited: Ambiguities) -> tuple[dict[str, list[CurvePoint]], dict[int, float]]:
    """HeldoutExact by how many SCMs fit, per system; and what a fair draw among them would score, per bin."""
    points: dict[str, list[CurvePoint]] = {}
    plotted: set[tuple[str, str]] = set()
    for merged in merged_systems([row for row in rows if not row.setting.startswith("Alt-")]):
        audited_here = [o for o in merged.observations if o.item in audited]
        plotted |= {o.item for o in audited_here}
        heldout = merged.places[HELDOUT_EXACT.key]
        in_bins = [
            estimate(place, [o for o in audited_here if bin_of(audited[o.item].members) == place], heldout)
            for place in range(NUM_BINS)
        ]
        points[merged.system] = [point for point in in_bins if point is not None]
    shares: dict[int, list[float]] = {}
    for key in sorted(plotted):
        if (share := audited[key].draw) is not None:
            shares.setdefault(bin_of(audited[key].members), []).append(share)
    means = {place: exact_mean(values) for place, values in sorted(shares.items())}
    return {system: listed for system, listed in points.items() if listed}, means


def bin_of(members: int) -> int:
    return next((place for place, (_, max_members) in enumerate(BINS) if members <= max_members), len(BINS))


def size_medians(timed: Sequence[tuple[int, float]]) -> list[tuple[float, float]]:
    """Return median size and median seconds of about equal groups of answers by gold size, equal sizes together.

    timed: size and seconds, sorted
    """
    edges = [timed[len(timed) * k // SIZE_GROUPS][0] for k in range(1, SIZE_GROUPS)] if timed else []
    groups: dict[int, list[tuple[int, float]]] = {}
    for size, seconds in timed:
        groups.setdefault(bisect_right(edges, size), []).append((size, seconds))
    return [(median(size for size, _ in group), median(s for _, s in group)) for group in groups.values()]


def timed_answers(answers: SystemAnswers, sizes: Mapping[str, int]) -> list[tuple[int, float]]:
    """Return the size of gold and the seconds of each answer for which both are known, sorted."""
    return sorted((sizes[o.unit], o.seconds) for o in answers.observations if o.unit in sizes and o.seconds)


def merged_systems(rows: Sequence[Row]) -> list[SystemAnswers]:
    """Return each system's answers to all its pools under all settings."""
    by_system: dict[str, list[Row]] = {}
    for row in rows:
        by_system.setdefault(row.system, []).append(row)
    return [
        SystemAnswers(system, _merge(rows_of_system), rows_of_system[0].places)
        for system, rows_of_system in by_system.items()
    ]


def _merge(rows: Sequence[Row]) -> list[Observation]:
    return sorted((o for row in rows for o in row.observations), key=lambda o: o.item)
