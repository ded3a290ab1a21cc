"""Statistics of a group of items, as JSON has them: each from what every item adds to it, so items are read once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from statistics import median
from typing import Any, Generic, TypeAlias, TypeVar

Statistic: TypeAlias = int | float | list[int] | dict[str, float] | None

I = TypeVar("I")  # noqa: E741  # an item


@dataclass(frozen=True)
class PoolStatistic(Generic[I]):
    """A statistic of a group of items.

    values: what an item adds, small and few; summary: the statistic of what all items of a group add
    """

    values: Callable[[I], Iterable[Any]]
    summary: Callable[[Sequence[Any]], Statistic]


@dataclass(frozen=True)
class PoolStatistics(Generic[I]):
    """Statistics of a benchmark's pools, by name.

    group: of an item, in which it is counted beside its setting
    """

    columns: Mapping[str, PoolStatistic[I]]
    group: Callable[[I], str]


def span(numbers: Sequence[int]) -> list[int] | None:
    """Return the least and the greatest; None of none."""
    return [min(numbers), max(numbers)] if numbers else None


def spread(numbers: Sequence[float]) -> dict[str, float] | None:
    """Least, median, greatest; None of none."""
    return {"least": min(numbers), "median": median(numbers), "greatest": max(numbers)} if numbers else None


def tally(values: Sequence[object]) -> dict[str, float] | None:
    """Return how often each value occurs, by its text."""
    return dict(sorted(Counter(map(str, values)).items())) or None


def share(holds: Sequence[bool | None]) -> float | None:
    """Return the share of true values among those that are not None; None if there are none."""
    listed = [float(value) for value in holds if value is not None]
    return fsum(listed) / len(listed) if listed else None
