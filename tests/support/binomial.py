"""Exact binomial bounds for tests of rates."""

from __future__ import annotations

from scipy.stats import binom

OUTSIDE = 1e-4  # probability that a count of the stated rate is called wrong


def within(hits: int, rate: float, number: int) -> bool:
    """Whether a count is inside the central part of the binomial distribution of that rate."""
    return bool(binom.cdf(hits, number, rate) > OUTSIDE / 2 and binom.sf(hits - 1, number, rate) > OUTSIDE / 2)
