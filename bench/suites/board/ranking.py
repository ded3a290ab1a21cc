"""Rows and cells of a board: rates with intervals beside what guessers expect, and the order of systems."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import fsum

from calibrant.bench.answers.frame import estimate
from calibrant.bench.suites.board.submissions import Submission
from calibrant.bench.suites.rescoring import CellResult


@dataclass(frozen=True)
class BoardCell:
    """A system on a pool.

    low, high: 95 % interval over items, each of which counts the mean of its answers (bench.answers.intervals)
    consistency: share of originals whose copies score alike; None for a pool without variants
    """

    pool: str
    result: CellResult
    low: float
    high: float
    consistency: float | None = None

    @classmethod
    def of_result(cls, pool: str, result: CellResult, consistency: float | None = None) -> BoardCell:
        rate = estimate((item.id, item.unit or item.id, item.right) for item in result.items)
        low, high = (rate and rate.interval) or (0.0, 1.0)  # of one unit nothing is known
        return cls(pool, result, low, high, consistency)

    @cached_property
    def rate(self) -> float:
        return self.result.rate

    @cached_property
    def chance(self) -> float | None:
        return self.result.chance

    @cached_property
    def best(self) -> float | None:
        return self.result.best

    @cached_property
    def kinds(self) -> Mapping[str, float]:
        return self.result.kinds

    @property
    def skill(self) -> tuple[float, float, float] | None:
        """Return (rate - chance) / (best - chance) with its interval; None where a level is missing or both agree.

        The interval takes both levels as exact, so it is that of the rate on another scale.
        """
        chance, best = self.chance, self.best
        if chance is None or best is None or best <= chance:
            return None
        low, middle, high = ((value - chance) / (best - chance) for value in (self.low, self.rate, self.high))
        return middle, low, high

    @property
    def is_above_best(self) -> bool:
        """Return whether the rate is significantly above that of the best guesser: a sign of leaked gold."""
        return self.best is not None and self.low > self.best


@dataclass(frozen=True)
class BoardRow:
    """A system on all pools; cells: of the pools that can be ranked by."""

    submission: Submission
    cells: Mapping[str, BoardCell]
    num_pools: int

    @property
    def mean(self) -> float | None:
        """Return the mean rate over all pools; None unless it answered all of them."""
        rates = [cell.rate for cell in self.cells.values()]
        return fsum(rates) / len(rates) if rates and len(rates) == self.num_pools else None


def sort_rows(rows: Iterable[BoardRow]) -> list[BoardRow]:
    """Return systems by mean rate, highest first, then those without one, then calibration rows; equal ones by name."""
    return sorted(
        rows, key=lambda row: (row.submission.is_row, row.mean is None, -(row.mean or 0.0), row.submission.name)
    )


def rank_pool(rows: Iterable[BoardRow], pool: str) -> list[tuple[int | None, BoardRow]]:
    """Return the rows of a pool, highest rate first, with ranks: equal rates share one, calibration rows have none."""
    listed = sorted(
        (row for row in rows if pool in row.cells), key=lambda row: (-row.cells[pool].rate, row.submission.name)
    )
    rates = [row.cells[pool].rate for row in listed if not row.submission.is_row]
    return [(None if row.submission.is_row else 1 + _count_above(rates, row.cells[pool].rate), row) for row in listed]


def _count_above(rates: Sequence[float], rate: float) -> int:
    return sum(other_rate > rate for other_rate in rates)
