"""Intervals of rates and means: one for each metric, over items or over the units that items share.

A rate is a ratio of sums over items, an item's several answers by their mean. Items that share a latent model are a
unit: they are right and wrong together, so the variance is G/(G-1) sum_u (s_u - rate * n_u)^2 / n^2 for G units with
sums s_u over n_u items, with Student's t at G-1 degrees (Miller, arXiv:2411.00640, with the factor for few units).
Where no item shares its unit a share has Wilson's interval; so it has, at G units, near 0 and 1 and where all units are
alike. Coverage of 95 % by 6, 12, 24 and 60 units of 1 to 4 items at rates of .5, .2 and .05 was .92 to 1.00, that of
the percentile bootstrap .87 to .99.

Skill and paired differences keep the bootstrap over units, which takes numerator and denominator together. Its seed is
fixed, so equal input gives equal intervals; a resample without any item in a denominator is left out.

Means over participants are clustered by participant and by item: both are drawn with replacement, and an answer counts
as often as its participant times its item was drawn (the pigeonhole bootstrap of A. B. Owen 2007, The Annals of Applied
Statistics 1, 386).

Student's quantile is computed here, to 2e-8 of scipy's: scipy comes with an extra alone, and takes 1.2 s to import.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import atan, cos, fsum, pi, sin, sqrt
from statistics import NormalDist
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from calibrant.bench.statistics import wilson

RESAMPLES = 10_000
SEED = 2026
NUM_DRAWS = 4_000  # draws of participants and items
LEVEL = 0.95
FEWEST_PROBLEMS = 6  # fewer have no bootstrap interval, as no conditional rate is shown (bench.core.metrics)
MAX_BISECTED = 100  # degrees of freedom
TINY = 1e-18  # a sum of squares that rounding leaves of equal units
NEAR = 0.1  # from 0 or 1; measured coverage of the clustered interval at a mean of .9: .90
INTERVALS = (
    "95 % intervals over items: of shares Wilson's, of other means Student's t; where items share a latent model,"
    " clustered by it (Student's t, near 0 and 1 Wilson's at as many items as there are models)."
)

Array: TypeAlias = NDArray[np.float64]
Value: TypeAlias = tuple[str, str, float]  # participant, item, value


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


class Moments(NamedTuple):
    """Sums over units that the interval of a ratio needs.

    num_units: with a denominator; number: sum of the denominators; mean: the ratio, 0 where that is 0
    spread: sum over units of (numerator - mean * denominator)^2
    """

    num_units: int
    number: float
    mean: float
    spread: float


def unit_moments(sums: Array, counts: Array) -> list[Moments]:
    """Return the moments of several ratios; sums, counts: shape (ratios, units), what a unit adds to each part."""
    numbers = np.ascontiguousarray(counts).sum(axis=1)
    means = np.ascontiguousarray(sums).sum(axis=1) / np.where(numbers > 0, numbers, 1)
    spreads = np.ascontiguousarray((sums - means[:, None] * counts) ** 2).sum(axis=1)
    columns = ((counts > 0).sum(axis=1), numbers, means, spreads)
    return [*map(Moments, *(column.tolist() for column in columns))]


@lru_cache(1 << 14)  # most of the cells of a report are of few counts
def unit_interval(moments: Moments, *, is_share: bool, is_clustered: bool) -> Interval | None:
    """Return the 95 % interval of a ratio of sums over independent units; None for fewer than two.

    is_share: no value is outside 0 to 1; is_clustered: whether some unit has several items
    """
    num_units, number, mean, spread = moments
    if num_units < 2:
        return None
    if is_share and not is_clustered:
        return Interval(*_wilson(mean, number))
    if is_share and (spread < TINY or min(mean, 1 - mean) <= NEAR):
        return Interval(*_wilson(mean, num_units))
    if spread < TINY:
        return None
    half = t_quantile(num_units - 1) * sqrt(num_units / (num_units - 1) * spread) / number
    low, high = mean - half, mean + half
    return Interval(max(0.0, low), min(1.0, high)) if is_share else Interval(low, high)


def _wilson(mean: float, number: float) -> tuple[float, float]:
    """Return the score interval of a share over so many units; rounded sums may leave 0 to 1."""
    return wilson(min(max(mean, 0.0), 1.0) * number, number)


@lru_cache(maxsize=1 << 12)
def t_quantile(degrees: int, tail: float = 0.025) -> float:
    """Return the upper quantile of Student's t with integer degrees of freedom.

    By bisection; above MAX_BISECTED by the expansion of Abramowitz and Stegun 26.7.5, with an error below 1e-7.
    """
    if degrees > MAX_BISECTED:
        z = NormalDist().inv_cdf(1 - tail)
        terms = (z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96, (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
        return z + fsum(term / degrees**k for k, term in enumerate(terms, 1))
    low, high = 0.0, 1.0
    while t_tail(high, degrees) > tail:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if t_tail(middle, degrees) > tail else (low, middle)
    return (low + high) / 2


def t_tail(value: float, degrees: int) -> float:
    """Return P(T > value) of Student's t for value >= 0: the finite sums of Abramowitz and Stegun 26.7.3 and 26.7.4."""
    angle = atan(value / sqrt(degrees))
    cosine, sine = cos(angle), sin(angle)
    if degrees % 2:
        term = total = cosine if degrees > 1 else 0.0
        for k in range(3, degrees, 2):
            term *= cosine * cosine * (k - 1) / k
            total += term
        inside = 2 / pi * (angle + sine * total)
    else:
        term = total = 1.0
        for k in range(2, degrees, 2):
            term *= cosine * cosine * (k - 1) / k
            total += term
        inside = sine * total
    return (1 - inside) / 2


# --- Means over participants ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ClusteredMean:
    """A mean over participants, each the mean of their items.

    interval: 95 %; None with fewer than FEWEST_PROBLEMS participants
    with_items: whether items are drawn too; with fewer than FEWEST_PROBLEMS they are fixed
    """

    mean: float
    interval: Interval | None
    num_participants: int
    num_items: int

    @property
    def with_items(self) -> bool:
        return self.num_items >= FEWEST_PROBLEMS


def clustered_mean(values: Sequence[Value]) -> ClusteredMean:
    """Return the mean of one value for each participant and item; `ValueError` without any.

    A share of 0 or 1 in every answer gets Wilson's interval over participants or items, whichever are fewer: all
    answers of a participant, or to an item, may be one and the same.
    """
    if not values:
        raise ValueError("no values")
    people = {name: k for k, name in enumerate(sorted({value[0] for value in values}))}
    items = {name: k for k, name in enumerate(sorted({value[1] for value in values}))}
    table = np.full((len(people), len(items)), np.nan)
    for person, item, value in values:
        table[people[person], items[item]] = value
    present = ~np.isnan(table)
    filled = np.where(present, table, 0.0)
    mean = float((filled.sum(1) / present.sum(1)).mean())
    result = ClusteredMean(mean, None, len(people), len(items))
    if len(people) < FEWEST_PROBLEMS:
        return result
    if mean in (0.0, 1.0) and set(table[present]) <= {0.0, 1.0}:
        number = min(len(people), len(items)) if result.with_items else len(people)
        interval = Interval(*wilson(mean * number, number))
    else:
        interval = _bootstrap(filled, present.astype(np.float64), with_items=result.with_items)
    return ClusteredMean(mean, interval, len(people), len(items))


def _bootstrap(filled: np.ndarray, present: np.ndarray, *, with_items: bool) -> Interval:
    num_people, num_items = filled.shape
    generator = np.random.Generator(np.random.PCG64(SEED))
    drawn_people = generator.multinomial(num_people, np.full(num_people, 1 / num_people), size=NUM_DRAWS)
    if with_items:
        drawn_items = generator.multinomial(num_items, np.full(num_items, 1 / num_items), size=NUM_DRAWS)
    else:
        drawn_items = np.ones((NUM_DRAWS, num_items), dtype=np.int64)
    totals, counts = drawn_items @ filled.T, drawn_items @ present.T  # (draws, people)
    has_any = counts > 0  # a participant none of whose items was drawn is left out of that draw
    means = np.divide(totals, counts, out=np.zeros_like(totals), where=has_any)
    weights = drawn_people * has_any
    sizes = weights.sum(1)
    draws = (weights * means).sum(1)[sizes > 0] / sizes[sizes > 0]
    low, high = np.quantile(draws, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Interval(float(low), float(high))
