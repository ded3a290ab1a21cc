"""Reliability against a written example, Wilson intervals against published ones."""

from __future__ import annotations

from fractions import Fraction

import pytest

from calibrant.bench.statistics import Forecast, reliability, wilson


def test_reliability_of_a_written_example() -> None:
    shares = [(Fraction(0), False), (Fraction(1, 4), False), (Fraction(1, 4), True), (Fraction(3, 4), True)]
    measured = reliability([Forecast(*pair) for pair in [*shares, (Fraction(1), True)]], num_bins=4)
    assert (measured.number, measured.predicted, measured.realised) == (5, 2.25, 3)
    assert measured.standard_error == pytest.approx((3 * 3 / 16) ** 0.5)
    assert [(b.low, b.high, b.number) for b in measured.bins] == [(0, 0.25, 3), (0.5, 0.75, 1), (0.75, 1, 1)]
    assert [b.predicted for b in measured.bins] == [pytest.approx(1 / 6), 0.75, 1]
    assert [b.realised for b in measured.bins] == [pytest.approx(1 / 3), 1, 1]


def test_wilson_intervals_are_the_published_ones() -> None:
    """Newcombe 1998 (Statistics in Medicine 17, table I), method 3, without continuity correction."""
    assert wilson(81, 263) == pytest.approx((0.2553, 0.3662), abs=5e-5)
    assert wilson(15, 148) == pytest.approx((0.0624, 0.1605), abs=5e-5)
    assert wilson(0, 20) == pytest.approx((0.0, 0.1611), abs=5e-5)
    assert wilson(1, 29) == pytest.approx((0.0061, 0.1718), abs=5e-5)
