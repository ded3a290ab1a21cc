"""Exact means of answers, what each answer weighs, sums by class, and differences of means."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from fractions import Fraction
from math import comb
from statistics import stdev
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from calibrant.bench.answers.intervals import FEWEST_PROBLEMS, Interval, bootstrap_intervals
from calibrant.bench.statistics import NORMAL_95

Number: TypeAlias = int | Fraction


def exact_mean(values: Iterable[float | Fraction]) -> float:
    """Return the exact mean of some values, rounded once; `ZeroDivisionError` without any."""
    counts = Counter(values)  # mostly few different ones, of which fractions are slow
    return float(sum((Fraction(value) * times for value, times in counts.items()), Fraction()) / counts.total())


def mean_if_known(values: Sequence[float | None]) -> float | None:
    """Return the exact mean; None where a value is not known, and without any."""
    numbers = [value for value in values if value is not None]
    return exact_mean(numbers) if numbers and len(numbers) == len(values) else None


def weighted_sum(values: Iterable[float | Number], weights: Iterable[Number]) -> Fraction:
    """Return the exact sum of values times weights, which are mostly few different ones."""
    counts = Counter(zip(values, weights, strict=True))
    return sum((Fraction(value) * weight * times for (value, weight), times in counts.items()), Fraction())


def item_weights(items: Sequence[Hashable]) -> list[Number]:
    """Return what each answer weighs: one of k answers to an item 1/k, so that all add up to the number of items."""
    times = Counter(items)
    shares: dict[int, Number] = {number: 1 if number == 1 else Fraction(1, number) for number in {*times.values()}}
    return [shares[times[item]] for item in items]


def people_weights(participants: Sequence[str]) -> Mapping[str, Fraction]:
    """Return by participant what one of their answers weighs: all participants count alike, all answers add to 1.

    participants: of each answer
    """
    counts = Counter(participants)
    return {name: Fraction(1, len(counts) * number) for name, number in counts.items()}


def sum_classes(shares: Iterable[tuple[Any, Number]]) -> dict[Any, Number]:
    """Return the exact sum of each class's shares."""
    sums: dict[Any, Number] = {}
    for (kind, share), times in Counter(shares).items():
        sums[kind] = sums.get(kind, 0) + share * times
    return sums


def pass_at(num_samples: int, num_right: int, k: int) -> Fraction:
    """Return the probability that k of the samples hold a right one; k is at most their number.

    Without bias: 1 - C(n-c, k) / C(n, k) (Chen et al. 2021, Evaluating Large Language Models Trained on Code, eq. 1).
    """
    return 1 - Fraction(comb(num_samples - num_right, k), comb(num_samples, k))


# --- Differences over the units that both sides have ------------------------------------------------------------------
Means: TypeAlias = Mapping[Any, float]
"""Means of a metric by unit."""


class Difference(NamedTuple):
    """A mean difference over matched units; both None where nothing matches."""

    mean: float | None
    interval: Interval | None
    num_units: int


def paired_differences(pairs: Sequence[tuple[Means, Means]], cluster: Mapping[Any, str]) -> list[Difference]:
    """Return the mean of `first - second` over the units that both have, of several quantities.

    Intervals resample whole clusters of units; quantities over the same clusters share a resampling, which costs most.
    """
    units = [sorted(first.keys() & second.keys()) for first, second in pairs]
    over = [tuple(sorted({cluster[unit] for unit in shared})) for shared in units]
    results = [Difference(None, None, 0)] * len(pairs)
    for names in dict.fromkeys(filter(None, over)):
        alike = [k for k, unit_names in enumerate(over) if unit_names == names]
        place = {name: row for row, name in enumerate(names)}
        sums, counts = np.zeros((len(names), len(alike))), np.zeros((len(names), len(alike)))
        for column, k in enumerate(alike):
            first, second = pairs[k]
            for unit in units[k]:
                sums[place[cluster[unit]], column] += first[unit] - second[unit]
                counts[place[cluster[unit]], column] += 1
        intervals = bootstrap_intervals(sums, counts)
        for column, k in enumerate(alike):
            number = len(units[k])
            results[k] = Difference(float(sums[:, column].sum() / number), intervals[column], number)
    return results


def normal_difference(first: Means, second: Means, scale: float = 1) -> Difference:
    """Return the mean of `first - second` with its normal interval, as papers have it; none of few units."""
    differences = [scale * (first[unit] - second[unit]) for unit in sorted(first.keys() & second.keys())]
    if len(differences) < FEWEST_PROBLEMS:
        return Difference(mean_if_known(differences), None, len(differences))
    mean, reach = exact_mean(differences), NORMAL_95 * stdev(differences) / len(differences) ** 0.5
    return Difference(mean, Interval(mean - reach, mean + reach), len(differences))
