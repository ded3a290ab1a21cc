"""Exact binomial bounds for tests of rates."""

from __future__ import annotations

from scipy.special import bdtr, bdtrc  # scipy.stats takes a second to import

OUTSIDE = 1e-4  # probability that a count of the stated rate is called wrong


def within(hits: int, rate: float, number: int) -> bool:
    """Whether a count is inside the central part of the binomial distribution of that rate."""
    at_most = bdtr(hits, number, rate)
    at_least = bdtrc(hits - 1, number, rate) if hits else 1.0
    return bool(at_most > OUTSIDE / 2 and at_least > OUTSIDE / 2)
