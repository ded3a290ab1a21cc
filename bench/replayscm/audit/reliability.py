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
    """Reliability diagram.

    ticks: length along either axis and label; a forecast that is right lies on the diagonal
    """

    prior: str
    side: int
    margin: int
    ticks: tuple[tuple[float, float, str], ...]
    marks: tuple[Mark, ...]
    number: int
    predicted: str
    realised: int
    standard_error: str


def diagram(prior: str, reliability: Reliability) -> Diagram:
    """Areas of the marks grow with the number of instances."""
    largest = max((bin_.number for bin_ in reliability.bins), default=1)
    marks = tuple(
        Mark(
            _across(bin_.predicted),
            _up(bin_.realised),
            _up(bin_.interval[1]),
            _up(bin_.interval[0]),
            round(3 + 6 * (bin_.number / largest) ** 0.5, 1),
            f"{bin_.number} instances, predicted {bin_.predicted:.3f}, realised {bin_.realised:.3f} "
            f"(95 % interval {bin_.interval[0]:.3f} to {bin_.interval[1]:.3f})",
        )
        for bin_ in reliability.bins
    )
    ticks = tuple((_across(value), _up(value), f"{value:g}") for value in TICKS)
    predicted, spread = f"{reliability.predicted:.2f}", f"{reliability.standard_error:.2f}"
    return Diagram(prior, SIDE, MARGIN, ticks, marks, reliability.number, predicted, reliability.realised, spread)


def _across(share: float) -> float:
    return round(MARGIN + share * SIDE, 1)


def _up(share: float) -> float:
    return round(10 + (1 - share) * SIDE, 1)
