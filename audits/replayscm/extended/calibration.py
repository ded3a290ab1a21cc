"""Calibration of posteriors: the stated probability of the top behaviour against the share of items where it is true.

One statement an item. If gold is drawn from the stated prior, a statement of probability p is true with probability p:
a theorem that the figure checks the implementation against.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt

BIN_EDGES = (0.0, 0.25, 0.5, 0.7, 0.85, 0.95, 0.99, 1.0)
Z = 1.959964  # two-sided 95 %


@dataclass(frozen=True)
class CalibrationBin:
    """Statements in [lower, upper), the last bin closed.

    number: of statements; mean_stated: mean probability; num_true: statements that are true
    """

    lower: float
    upper: float
    number: int
    mean_stated: float
    num_true: int

    @property
    def share_true(self) -> float:
        return self.num_true / self.number

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson interval of the share, 95 %: the normal one has width 0 at shares of 0 and 1."""
        share, n = self.share_true, self.number
        centre = (share + Z * Z / (2 * n)) / (1 + Z * Z / n)
        half = Z * sqrt(share * (1 - share) / n + Z * Z / (4 * n * n)) / (1 + Z * Z / n)
        return centre - half, centre + half

    @property
    def deviation(self) -> float:
        """Return how many standard errors the share lies from what was stated."""
        error = sqrt(self.mean_stated * (1 - self.mean_stated) / self.number)
        difference = self.share_true - self.mean_stated
        return 0.0 if not difference else difference / error if error else float("inf")


def calibration_bins(
    statements: Iterable[tuple[Fraction, bool]], edges: Sequence[float] = BIN_EDGES
) -> list[CalibrationBin]:
    """Return the bins that have statements.

    statements: stated probability, and whether it came true
    """
    listed: dict[int, list[tuple[Fraction, bool]]] = {}
    for stated, is_true in statements:
        place = max(i for i, edge in enumerate(edges[:-1]) if stated >= edge)
        listed.setdefault(place, []).append((stated, is_true))
    return [
        CalibrationBin(
            edges[place],
            edges[place + 1],
            len(pairs),
            float(sum(stated for stated, _ in pairs) / len(pairs)),
            sum(is_true for _, is_true in pairs),
        )
        for place, pairs in sorted(listed.items())
    ]
