"""Intervals over copies: against closed forms, tables of Student's t, and simulated coverage."""

from __future__ import annotations

import pytest

from calibrant.bench.variants.consistency import Consistency


def test_shares_and_worst_copies() -> None:
    row = Consistency("s", {"a": [1.0, 1.0], "b": [1.0, 0.0], "c": [0.0, 0.0]}, {})
    assert (row.num_copies, row.mean, row.num_equal) == (6, 0.5, 2)
    assert row.worst == pytest.approx(1 / 3)
