"""Percentile bootstrap over problems.

What is resampled are latent SCMs, with everything a row has on them: a row that has one SCM under two disclosures, or
two rows that are compared on the same SCMs, stay matched in every resample. Answers are fixed. The seed is fixed too,
so equal input gives equal intervals; a resample in which a conditional rate has no instance is left out of its
quantiles. What is the same on every problem gets an interval without width: the bootstrap cannot see what no problem
shows; for rates of 0 and 1 `wilson_if_constant` has Wilson's.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from calibrant.bench.statistics import wilson

RESAMPLES = 10_000
SEED = 2026
LEVEL = 0.95
FEWEST_PROBLEMS = 6  # below that no interval is given, as no conditional rate is (bench.core.rates.MAX_SUPPRESSED)

Array: TypeAlias = NDArray[np.float64]


class Interval(NamedTuple):
    low: float
    high: float

    @property
    def excludes_zero(self) -> bool:
        return self.low > 0 or self.high < 0


@lru_cache(maxsize=4)
def resample_counts(num_problems: int) -> Array:
    """Return how often each problem is drawn: shape (RESAMPLES, num_problems), each row adds to num_problems."""
    generator = np.random.Generator(np.random.PCG64(SEED))
    counts = generator.multinomial(num_problems, np.full(num_problems, 1 / num_problems), size=RESAMPLES)
    return counts.astype(np.float64)


def bootstrap_intervals(sums: Array, counts: Array) -> list[Interval | None]:
    """Intervals of `sums.sum(0) / counts.sum(0)` over resampled problems.

    sums, counts: shape (problems, quantities): what each problem adds to numerator and denominator of each quantity
    """
    num_problems = len(sums)
    if num_problems < FEWEST_PROBLEMS:
        return [None] * sums.shape[1]
    columns = np.hstack([sums, counts])
    keys = [column.tobytes() for column in columns.T]
    places = {key: place for place, key in enumerate(dict.fromkeys(keys))}  # most counts are 1 on every problem
    distinct = columns[:, [keys.index(key) for key in places]]
    totals = resample_counts(num_problems) @ np.ascontiguousarray(distinct)
    return [
        _quantiles(totals[:, places[numerator]], totals[:, places[denominator]])
        for numerator, denominator in zip(keys[: sums.shape[1]], keys[sums.shape[1] :], strict=True)
    ]


def _quantiles(numerators: Array, denominators: Array) -> Interval | None:
    defined = denominators > 0
    if not defined.any():
        return None
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(numerators[defined] / denominators[defined], [tail, 1 - tail])
    return Interval(float(low), float(high))


def wilson_if_constant(interval: Interval | None, counts: Array) -> Interval | None:
    """Return Wilson's interval for a rate that is 0 or 1 on every problem: 12 of 12 or 80, bootstrap gives no width."""
    if interval is None or interval.low != interval.high or interval.low not in (0.0, 1.0):
        return interval
    number = int((counts > 0).sum())
    return Interval(*wilson(number if interval.low else 0, number))
