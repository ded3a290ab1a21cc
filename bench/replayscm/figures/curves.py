"""Numbers of the plots: the disclosure ladder, success by ambiguity, time by size."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from statistics import median
from typing import NamedTuple

from calibrant.bench.core.metrics import Metric
from calibrant.bench.replayscm.tables.ambiguity import Ambiguities
from calibrant.bench.replayscm.tables.pairs import HELDOUT_EXACT, RUNGS
from calibrant.bench.replayscm.tables.rates import rate_intervals
from calibrant.bench.replayscm.tables.rows import ScoredAnswer, SystemRow
from calibrant.bench.report.intervals import Interval

RUNG_NAMES = ("Ordered", "Block", "Hidden order", "Hidden roots")
BINS = (("1", 1), ("to 100", 100), ("to 10⁴", 10**4), ("to 10⁶", 10**6))
REST = "more"
NUM_BINS = len(BINS) + 1
SIZE_GROUPS = 4


class CurvePoint(NamedTuple):
    """One point of a curve. place: the rung, or the bin"""

    place: int
    mean: float
    interval: Interval | None
    num: int

    @property
    def reach(self) -> tuple[float, float]:
        """Return how far the interval reaches below and above the mean."""
        if self.interval is None:
            return 0.0, 0.0
        return max(0.0, self.mean - self.interval.low), max(0.0, self.interval.high - self.mean)


def estimate(place: int, row: SystemRow, column: Metric) -> CurvePoint | None:
    """Return a row's mean of a column; None where it is defined for no answer."""
    values = [float(value) for o in row.observations if (value := column.value(o.verdict)) is not None]
    if not values:
        return None
    return CurvePoint(place, sum(sorted(values)) / len(values), rate_intervals(row, [column])[0], len(values))


def families(rows: Sequence[SystemRow]) -> list[list[SystemRow]]:
    """Return the rows of the disclosure ladder, apart where they share no latent SCM, with two disclosures at least."""
    groups: list[list[SystemRow]] = []
    for row in rows:
        if RUNGS.get(row.setting, ("-", 0))[0]:
            continue
        touching = [group for group in groups if any(row.latents & member.latents for member in group)]
        groups = [group for group in groups if group not in touching]
        groups.append([*(member for group in touching for member in group), row])
    return [group for group in groups if len({RUNGS[row.setting] for row in group}) > 1]


def ladder_points(family: Sequence[SystemRow], column: Metric) -> dict[str, list[CurvePoint]]:
    """Per system: its mean at each rung, over the latent SCMs that it has at all of its rungs."""
    points: dict[str, list[CurvePoint]] = {}
    for system in dict.fromkeys(row.system for row in family):
        rungs: dict[int, list[SystemRow]] = {}
        for row in family:
            if row.system == system:
                rungs.setdefault(RUNGS[row.setting][1], []).append(row)
        if len(rungs) < 2:
            continue
        at_each = [frozenset[str]().union(*(row.latents for row in rung_rows)) for rung_rows in rungs.values()]
        matched = reduce(frozenset.intersection, at_each)
        estimates = [
            estimate(rung, _only(_merge(rung_rows), _on(matched)), column) for rung, rung_rows in sorted(rungs.items())
        ]
        points[system] = [point for point in estimates if point is not None]
    return points


def _on(latents: frozenset[str]) -> Callable[[ScoredAnswer], bool]:
    return lambda o: o.latent in latents


def num_matched(family: Sequence[SystemRow]) -> int:
    """Return how many latent SCMs occur at more than one rung."""
    rungs_by_latent: dict[str, set[int]] = {}
    for row in family:
        for latent in row.latents:
            rungs_by_latent.setdefault(latent, set()).add(RUNGS[row.setting][1])
    return sum(len(rungs) > 1 for rungs in rungs_by_latent.values())


def ambiguity_bins(
    rows: Sequence[SystemRow], audited: Ambiguities
) -> tuple[dict[str, list[CurvePoint]], dict[int, float]]:
    """HeldoutExact by how many SCMs fit, per system; and what a fair draw among them would score, per bin."""
    points: dict[str, list[CurvePoint]] = {}
    plotted: set[tuple[str, str]] = set()
    for merged in merged_systems([row for row in rows if not row.setting.startswith("Alt-")]):
        plotted |= {(o.pool_digest, o.instance) for o in merged.observations} & audited.keys()
        estimates = [
            estimate(place, _only(merged, _in_bin(audited, place)), HELDOUT_EXACT) for place in range(NUM_BINS)
        ]
        points[merged.system] = [point for point in estimates if point is not None]
    shares: dict[int, list[float]] = {}
    for key in sorted(plotted):
        if (share := audited[key].draw) is not None:
            shares.setdefault(bin_of(audited[key].members), []).append(share)
    means = {place: sum(values) / len(values) for place, values in sorted(shares.items())}
    return {system: estimates for system, estimates in points.items() if estimates}, means


def _in_bin(audited: Ambiguities, place: int) -> Callable[[ScoredAnswer], bool]:
    def is_in_bin(o: ScoredAnswer) -> bool:
        ambiguity = audited.get((o.pool_digest, o.instance))
        return ambiguity is not None and bin_of(ambiguity.members) == place

    return is_in_bin


def bin_of(members: int) -> int:
    return next((place for place, (_, max_members) in enumerate(BINS) if members <= max_members), len(BINS))


def size_medians(row: SystemRow) -> list[tuple[float, float]]:
    """Median size and median seconds of about equal groups of a row's answers by gold size, equal sizes together."""
    timed = sorted((o.gold_size, o.seconds) for o in row.observations if o.gold_size is not None and o.seconds)
    edges = [timed[len(timed) * k // SIZE_GROUPS][0] for k in range(1, SIZE_GROUPS)] if timed else []
    groups: dict[int, list[tuple[int, float]]] = {}
    for size, seconds in timed:
        groups.setdefault(bisect_right(edges, size), []).append((size, seconds))
    return [(median(size for size, _ in group), median(s for _, s in group)) for group in groups.values()]


def merged_systems(rows: Sequence[SystemRow]) -> list[SystemRow]:
    """Return one row per system, over all its pools and settings."""
    return [_merge([row for row in rows if row.system == name]) for name in dict.fromkeys(r.system for r in rows)]


def _merge(rows: Sequence[SystemRow]) -> SystemRow:
    observations = [o for row in rows for o in row.observations]
    if not rows:
        return SystemRow("", "", {}, 0, False, ())
    return replace(rows[0], observations=tuple(sorted(observations, key=lambda o: (o.pool_digest, o.instance))))


def _only(row: SystemRow, condition: Callable[[ScoredAnswer], bool]) -> SystemRow:
    return replace(row, observations=tuple(o for o in row.observations if condition(o)))
