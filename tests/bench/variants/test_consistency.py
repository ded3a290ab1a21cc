"""Intervals over copies: against closed forms, tables of Student's t, and simulated coverage."""

from __future__ import annotations

from math import sqrt
from random import Random

import pytest

from calibrant.bench.statistics import wilson
from calibrant.bench.variants.consistency import Consistency, clustered_interval, t_quantile


@pytest.mark.parametrize(
    ("degrees", "quantile"), [(1, 12.7062), (2, 4.30265), (5, 2.57058), (10, 2.22814), (23, 2.06866), (60, 2.00030)]
)
def test_quantiles_are_those_of_tables(degrees: int, quantile: float) -> None:
    assert t_quantile(degrees) == pytest.approx(quantile, rel=3e-6)


def test_clusters_of_one_have_the_interval_of_a_sample() -> None:
    """Then the variance is that of the mean of a sample, with n - 1."""
    values = [0.0, 1.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 1.0]
    mean = sum(values) / len(values)
    error = sqrt(sum((value - mean) ** 2 for value in values) / 9 / 10)
    low, high = clustered_interval([[value] for value in values])
    assert (low, high) == pytest.approx((mean - t_quantile(9) * error, mean + t_quantile(9) * error))


def test_equal_copies_count_once_and_the_ends_have_wilsons_interval() -> None:
    once = [[float(k % 2)] for k in range(12)]
    assert clustered_interval([values * 6 for values in once]) == pytest.approx(clustered_interval(once))
    assert clustered_interval([[1.0, 1.0]] * 8) == wilson(8, 8)
    assert clustered_interval([[1.0, 0.0]] * 8) == wilson(4, 8)  # zero width
    near = clustered_interval([[1.0] * 19 + [0.0]] * 7 + [[1.0] * 20])
    assert near == pytest.approx(wilson(8 * (7 * 19 + 20) / 160, 8))


def test_coverage_of_dependent_copies() -> None:
    """24 originals x 6 copies at .5, correlation .6: the naive interval covers .66."""
    random, covered, runs = Random(5), 0, 400
    for _ in range(runs):
        clusters = []
        for _ in range(24):
            shared = random.random() < 0.5
            keep = [random.random() < sqrt(0.6) for _ in range(6)]
            clusters.append([float(shared if kept_one else random.random() < 0.5) for kept_one in keep])
        low, high = clustered_interval(clusters)
        covered += low <= 0.5 <= high
    assert 0.92 <= covered / runs <= 0.98


def test_shares_and_worst_copies() -> None:
    row = Consistency("s", {"a": [1.0, 1.0], "b": [1.0, 0.0], "c": [0.0, 0.0]}, {})
    assert (row.num_copies, row.mean, row.num_equal) == (6, 0.5, 2)
    assert row.worst == pytest.approx(1 / 3)
