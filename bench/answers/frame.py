"""Answers of one row as columns: items, units and metrics as codes, so that a metric is summed in one pass."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from calibrant.bench.answers.intervals import Interval, unit_interval
from calibrant.bench.core.metrics import weighted_mean
from calibrant.bench.core.observations import Values

Codes: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class AnswerFrame:
    """Answers in an order that does not depend on the files'.

    unit, code: of each answer, its unit and its place in `values`; times: number of answers to its item
    values: of each distinct list of values, NaN where a metric is not defined; num_units, num_items: of all answers
    """

    unit: Codes
    code: Codes
    times: Codes
    values: Floats
    num_units: int
    num_items: int

    @classmethod
    def of(cls, answers: Iterable[tuple[Any, str, Values]], num_metrics: int) -> AnswerFrame:
        """Return the frame of answers with their items, units and values."""
        listed = list(answers)
        items, item = _codes(item for item, _, _ in listed)
        units, unit = _codes(unit for _, unit, _ in listed)
        values, code = _codes(values for _, _, values in listed)
        table = np.array(values, dtype=np.float64).reshape(-1, num_metrics)  # None becomes NaN
        ranks = np.empty(len(values), dtype=np.int64)
        ranks[np.lexsort(np.nan_to_num(table, nan=-1.0).T)] = np.arange(len(values))
        order = np.lexsort((ranks[code], _ranks(items)[item]))
        times = np.bincount(item)[item] if listed else item
        return cls(_ranks(units)[unit][order], code[order], times[order], table, len(units), len(items))

    def sums(self, place: int) -> tuple[Floats, Floats]:
        """Return what each unit adds to numerator and denominator of a metric's rate."""
        values = self.values[self.code, place]
        defined = ~np.isnan(values)
        unit, weight = self.unit[defined], 1 / self.times[defined]
        return (
            np.bincount(unit, values[defined] * weight, minlength=self.num_units).astype(np.float64),
            np.bincount(unit, weight, minlength=self.num_units).astype(np.float64),
        )

    @cached_property
    def _counts(self) -> list[tuple[int, int, int]]:
        """Return how often a list of values is one of so many answers to an item: place, answers to the item, count."""
        pairs, counts = np.unique(np.stack([self.code, self.times]), axis=1, return_counts=True)
        return [*zip(*pairs.tolist(), counts.tolist(), strict=True)]

    def weights(self, place: int) -> dict[float, int | Fraction]:
        """Return how often each value of a metric occurs; one of k answers to an item occurs 1/k times."""
        weights: dict[float, int | Fraction] = {}
        for code, times, count in self._counts:
            value = float(self.values[code, place])
            if value == value:
                weights[value] = weights.get(value, 0) + (count if times == 1 else Fraction(count, times))
        return weights

    def rate(self, place: int) -> float | None:
        """Return a ratio of sums over items, an item's answers by their mean; None where it is not defined."""
        return weighted_mean(self.weights(place))

    def interval(self, place: int, *, is_share: bool) -> Interval | None:
        """Return the 95 % interval of a metric's rate."""
        return unit_interval(*self.sums(place), is_share=is_share, is_clustered=self.num_units < self.num_items)


class Estimate(NamedTuple):
    """A mean over items with its 95 % interval; num_items: for which it is defined."""

    mean: float
    interval: Interval | None
    num_items: int


def estimate(answers: Iterable[tuple[Any, str, float | None]], *, is_share: bool = True) -> Estimate | None:
    """Return the mean of one value an answer, given with items and units; None where no answer has one."""
    listed = [(item, unit, (value,)) for item, unit, value in answers]
    frame = AnswerFrame.of(listed, 1)
    mean = frame.rate(0)
    if mean is None:
        return None
    num_items = len({item for item, _, (value,) in listed if value is not None})
    return Estimate(mean, frame.interval(0, is_share=is_share), num_items)


def _codes(values: Iterable[Any]) -> tuple[list[Any], Codes]:
    """Return the distinct values and the place of each."""
    places: dict[Any, int] = {}
    codes = [places.setdefault(value, len(places)) for value in values]
    return list(places), np.array(codes, dtype=np.int64)


def _ranks(values: list[Any]) -> Codes:
    ranks = np.empty(len(values), dtype=np.int64)
    ranks[sorted(range(len(values)), key=values.__getitem__)] = np.arange(len(values))
    return ranks
