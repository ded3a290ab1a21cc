"""Exact posteriors under noise against the shared vectors, which were made by enumeration."""

from __future__ import annotations

from tests.support.replayscm.extensions.posteriors import check_members, check_query
from tests.support.replayscm.extensions.vectors import frontier_vectors


def test_every_noise_vector() -> None:
    """All lines, two seconds: grids, priors and orders are spread over them."""
    number = 0
    for line in frontier_vectors("noise"):
        check_members(line)
        if "query" in line and "query" in line["expect"]:
            check_query(line)
        number += 1
    assert number == 162
