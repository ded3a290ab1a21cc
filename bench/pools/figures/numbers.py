"""Figures of a group of items: ranges, spreads and counts, as JSON has them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from statistics import median
from typing import TypeAlias

Figure: TypeAlias = int | float | list[int] | dict[str, float] | None


def span(numbers: Iterable[int]) -> list[int] | None:
    """The least and the greatest; None of none."""
    listed = list(numbers)
    return [min(listed), max(listed)] if listed else None


def spread(numbers: Sequence[float]) -> dict[str, float] | None:
    """Least, median, greatest; None of none."""
    return {"least": min(numbers), "median": median(numbers), "greatest": max(numbers)} if numbers else None


def tally(values: Iterable[object]) -> dict[str, float] | None:
    """How often each value occurs, by its text."""
    return dict(sorted(Counter(map(str, values)).items())) or None


def share(holds: Iterable[bool | None]) -> float | None:
    """Of those to which it applies; None if there are none."""
    listed = [float(one) for one in holds if one is not None]
    return sum(listed) / len(listed) if listed else None
