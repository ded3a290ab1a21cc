"""Coordinates of the two plots of an audit report; the template turns them into inline SVG.

All lengths are in SVG user units, rounded to tenths: equal audits give equal bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10
from statistics import median

from calibrant.bench.replayscm.audit.records import AuditRecord
from calibrant.bench.replayscm.audit.text import counted_bounds, heldout_share

WIDTH, HEIGHT = 960, 340
LEFT, RIGHT, TOP, BOTTOM = 56, 14, 14, 56
EMPTY_BAND = 26  # below the scale: points that have no logarithm
MAX_POINTS = 2_000  # of a plot; of more, evenly chosen ones are drawn
MAX_TICKS = 9


@dataclass(frozen=True, slots=True)
class Tick:
    at: float
    label: str


@dataclass(frozen=True, slots=True)
class Point:
    """Point of a plot.

    kind: which colour; title: what a pointer over it shows; anchor: the instance, empty where it has no page
    """

    x: float
    y: float
    kind: str
    title: str
    anchor: str


@dataclass(frozen=True, slots=True)
class Bar:
    """A median: a horizontal line from x1 to x2."""

    x1: float
    x2: float
    y: float


@dataclass(frozen=True, slots=True)
class Scatter:
    """One plot. band_y: middle of the band below the scale, named by `band`; left_out: points that are not drawn."""

    width: int
    height: int
    box: tuple[float, float, float, float]
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    points: tuple[Point, ...]
    bars: tuple[Bar, ...]
    x_label: str
    y_label: str
    band: str
    band_y: float
    left_out: int = 0


class _Scale:
    """Linear from values to lengths, over whole numbers that enclose the values."""

    def __init__(self, values: Iterable[float], start: float, end: float) -> None:
        numbers = list(values) or [0.0]
        self.low, self.high = floor(min(numbers)), max(ceil(max(numbers)), floor(min(numbers)) + 1)
        self.start, self.end = start, end

    def __call__(self, value: float) -> float:
        return round(self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start), 1)

    def ticks(self, text: Callable[[int], str] = str) -> tuple[Tick, ...]:
        step = max(1, ceil((self.high - self.low) / MAX_TICKS))
        return tuple(Tick(self(value), text(value)) for value in range(self.low, self.high + 1, step))


def _share_text(exponent: int) -> str:
    """Return a power of ten of at most 1, in full where that is short."""
    return f"{10.0**exponent:.{-exponent}f}" if exponent >= -4 else f"10^{exponent}"


def profile_plot(records: Sequence[AuditRecord], anchors: Mapping[str, str]) -> Scatter:
    """log10 of the number of members, a column per stratum and in it one per class; medians of nonempty counts."""
    audited = [record for record in records if record.findings]
    strata = list(dict.fromkeys(record.stratum for record in audited))
    bounds = counted_bounds(audited)
    counts = [(r, c.max_parents, int(c.members)) for r in audited if r.findings for c in r.findings.classes]
    y = _Scale([0.0, *(log10(members) for _, _, members in counts if members)], _FLOOR, TOP)
    width = (WIDTH - LEFT - RIGHT) / max(1, len(strata))
    lane = width * 0.86 / max(1, len(bounds))

    def centre(stratum: str, bound: int) -> float:
        return LEFT + width * (strata.index(stratum) + 0.07) + lane * (bounds.index(bound) + 0.5)

    points, columns = [], dict[tuple[str, int], list[Point]]()
    for record, bound, members in counts:
        column = columns.setdefault((record.stratum, bound), [])
        spread = ((len(column) * 7) % 10 - 4.5) / 10 * lane * 0.62  # points of a column side by side, in a fixed order
        height = y(log10(members)) if members else _BAND
        title = f"{record.instance}, parents <= {bound}: {members} SCMs"
        column.append(
            Point(
                _tenth(centre(record.stratum, bound) + spread),
                height,
                f"k{bound}",
                title,
                anchors.get(record.instance, ""),
            )
        )
        points.append(column[-1])
    bars = [
        Bar(_tenth(centre(*place) - lane * 0.42), _tenth(centre(*place) + lane * 0.42), _tenth(median(inside)))
        for place, column in columns.items()
        if (inside := [point.y for point in column if point.y != _BAND])
    ]
    labels = tuple(Tick(_tenth(LEFT + width * (i + 0.5)), name or "all instances") for i, name in enumerate(strata))
    visible, left_out = _evenly_chosen(points)
    return Scatter(
        WIDTH,
        HEIGHT,
        _BOX,
        labels,
        y.ticks(),
        visible,
        tuple(bars),
        "",
        "SCMs that fit, log10",
        "empty",
        _BAND,
        left_out,
    )


def agreement_plot(records: Sequence[AuditRecord], anchors: Mapping[str, str]) -> Scatter:
    """Ambiguity (log10 members of the headline class) against the share of members that are held-out exact."""
    shares = []
    for record in records:
        if record.findings:
            class_count = record.findings.class_count(record.findings.headline)
            share = heldout_share(class_count)
            if share is not None:
                shares.append((record, int(class_count.members), share))
    x = _Scale([0.0, *(log10(members) for _, members, _ in shares)], LEFT + 8, WIDTH - RIGHT - 8)
    y = _Scale([0.0, *(log10(share) for _, _, share in shares if share)], _FLOOR, TOP + 6)
    y = y if y.high == 0 else _Scale([-1.0, 0.0], _FLOOR, TOP + 6)
    points = [
        Point(
            x(log10(members)),
            y(log10(share)) if share else _BAND,
            "share",
            f"{record.instance}: {members} SCMs, {share:.3g} of them held-out exact",
            anchors.get(record.instance, ""),
        )
        for record, members, share in shares
    ]
    visible, left_out = _evenly_chosen(points)
    return Scatter(
        WIDTH,
        HEIGHT,
        _BOX,
        x.ticks(),
        y.ticks(_share_text),
        visible,
        (),
        "SCMs that fit, log10",
        "held-out exact share",
        "none",
        _BAND,
        left_out,
    )


def _evenly_chosen(points: Sequence[Point]) -> tuple[tuple[Point, ...], int]:
    """Return at most MAX_POINTS of the points, evenly over their order, and how many others there are."""
    number = len(points)
    if number <= MAX_POINTS:
        return tuple(points), 0
    return tuple(points[k * number // MAX_POINTS] for k in range(MAX_POINTS)), number - MAX_POINTS


def _tenth(length: float) -> float:
    return round(length, 1)


_FLOOR = float(HEIGHT - BOTTOM - EMPTY_BAND)
_BAND = HEIGHT - BOTTOM - EMPTY_BAND / 2
_BOX = (float(LEFT), float(TOP), float(WIDTH - LEFT - RIGHT), float(HEIGHT - TOP - BOTTOM))
