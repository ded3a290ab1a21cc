"""Coordinates of a reliability diagram; the template turns them into inline SVG. Lengths are rounded to tenths."""

from __future__ import annotations

from dataclasses import dataclass

from calibrant.bench.statistics import Reliability

SIDE, MARGIN = 300, 46  # of the square from (0, 0) to (1, 1)
TICKS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)


@dataclass(frozen=True, slots=True)
class Mark:
    """A bin: its mean prediction against what was realised, with the ends of a 95 % interval; title: for a pointer."""

    x: float
    y: float
    top: float
    bottom: float
    radius: float
    title: str


@dataclass(frozen=True, slots=True)
class Diagram:
    """ticks: length along either axis and label; a forecast that is right lies on the diagonal"""

    prior: str
    side: int
    margin: int
    ticks: tuple[tuple[float, float, str], ...]
    marks: tuple[Mark, ...]
    number: int
    predicted: str
    realised: int
    standard_error: str


def diagram(prior: str, found: Reliability) -> Diagram:
    """Areas of the marks grow with the number of instances."""
    largest = max((one.number for one in found.bins), default=1)
    marks = tuple(
        Mark(
            _across(one.predicted),
            _up(one.realised),
            _up(one.interval[1]),
            _up(one.interval[0]),
            round(3 + 6 * (one.number / largest) ** 0.5, 1),
            f"{one.number} instances, predicted {one.predicted:.3f}, realised {one.realised:.3f} "
            f"(95 % interval {one.interval[0]:.3f} to {one.interval[1]:.3f})",
        )
        for one in found.bins
    )
    ticks = tuple((_across(value), _up(value), f"{value:g}") for value in TICKS)
    predicted, spread = f"{found.predicted:.2f}", f"{found.standard_error:.2f}"
    return Diagram(prior, SIDE, MARGIN, ticks, marks, found.number, predicted, found.realised, spread)


def _across(share: float) -> float:
    return round(MARGIN + share * SIDE, 1)


def _up(share: float) -> float:
    return round(10 + (1 - share) * SIDE, 1)
