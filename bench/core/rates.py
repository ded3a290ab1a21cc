"""Rates as tables print them: means of multisets, and which conditional ones are not shown."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TypeAlias

UNDEFINED = "\N{EN DASH}"
SUPPRESSED = "*"
MAX_SUPPRESSED = 5  # conditional rates over 1 to 5 instances are not shown (paper, captions of Tables 1 and C.3)
OUTCOMES = ("found", "impossible", "out_of_budget", "crashed")


Weighted: TypeAlias = Mapping[float, int | Fraction]
"""How often each value occurs; an answer that is one of k samples of its item occurs 1/k times."""


def weighted_mean(values: Weighted) -> float | None:
    """Return the mean of a multiset of values, the same however they came in; None if there is none."""
    if len(values) < 2:
        return next(iter(values), None)
    if all(times.__class__ is int and value in (0, 1) for value, times in values.items()):  # as exact, and faster
        return float(values.get(1, 0) / sum(values.values()))
    count = sum(values.values(), Fraction(0))
    total = sum((Fraction(value) * times for value, times in values.items()), Fraction(0))
    return float(total / count)


def rate_text(values: Weighted, *, conditional: bool, decimals: int = 3, num_items: int | None = None) -> str:
    """Return the mean as tables print it.

    num_items: number of items it is over, if not one for each time a value occurs
    """
    return mean_text(
        weighted_mean(values),
        conditional=conditional,
        decimals=decimals,
        num_items=sum(values.values()) if num_items is None else num_items,
    )


def mean_text(mean: float | None, *, conditional: bool, decimals: int, num_items: int | Fraction) -> str:
    """Return a mean over so many items as tables print it."""
    if mean is None:
        return UNDEFINED
    if conditional and is_suppressed(num_items):
        return SUPPRESSED
    return f"{mean:.{decimals}f}"


def is_suppressed(num_items: int | Fraction) -> bool:
    """Return whether a conditional rate over so many items is not shown."""
    return 0 < num_items <= MAX_SUPPRESSED
