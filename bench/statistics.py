"""Proportions: Wilson intervals, and whether predicted probabilities come true."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt

NORMAL_95 = 1.959964  # half width of a 95 % interval, in standard errors


@dataclass(frozen=True, slots=True)
class Forecast:
    """The probability that something would be the case, and whether it is."""

    predicted: Fraction
    realised: bool


@dataclass(frozen=True, slots=True)
class ReliabilityBin:
    """Forecasts with predictions in (low, high]; the first bin holds 0 too.

    interval: 95 % Wilson score interval of the realised frequency
    """

    low: float
    high: float
    number: int
    predicted: float
    realised: float
    interval: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Reliability:
    """Data of a reliability diagram over a pool.

    predicted, realised: expected and actual number of held-out exact best answers
    standard_error: of the number realised, if the predictions are right
    bins: the non-empty ones
    """

    number: int
    predicted: float
    realised: int
    standard_error: float
    bins: tuple[ReliabilityBin, ...]


def reliability(forecasts: Iterable[Forecast], *, num_bins: int = 10) -> Reliability:
    """Predicted against realised, in bins of equal width."""
    numbers, realised = [0] * num_bins, [0] * num_bins
    predicted, spread = [Fraction()] * num_bins, Fraction()
    for forecast in forecasts:
        place = max(0, -int(-forecast.predicted * num_bins // 1) - 1)
        numbers[place] += 1
        realised[place] += forecast.realised
        predicted[place] += forecast.predicted
        spread += forecast.predicted * (1 - forecast.predicted)
    bins = [
        ReliabilityBin(
            place / num_bins,
            (place + 1) / num_bins,
            number,
            float(predicted[place] / number),
            realised[place] / number,
            wilson(realised[place], number),
        )
        for place, number in enumerate(numbers)
        if number
    ]
    return Reliability(sum(numbers), float(sum(predicted)), sum(realised), sqrt(spread), tuple(bins))


def wilson(successes: float, number: float) -> tuple[float, float]:
    """95 % score interval of a binomial proportion (Wilson 1927)."""
    z = NORMAL_95
    share, z2 = successes / number, z * z
    middle = (share + z2 / (2 * number)) / (1 + z2 / number)
    half = z / (1 + z2 / number) * sqrt(share * (1 - share) / number + z2 / (4 * number * number))
    return max(0.0, middle - half), min(1.0, middle + half)
