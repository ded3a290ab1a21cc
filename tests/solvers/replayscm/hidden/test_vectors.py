"""Exact posteriors with hidden variables against the shared vectors, which were made by enumeration."""

from __future__ import annotations

import pytest

from calibrant.solvers.replayscm.hidden.members import count_meanings
from tests.support.effort import effort
from tests.support.replayscm.extensions.posteriors import check_members, check_query, vector_posterior
from tests.support.replayscm.extensions.vectors import frontier_vectors

STRIDE = effort(5, 1)  # predictions and meanings take a tenth of a second a line


def test_every_hidden_vector() -> None:
    number = 0
    for line in frontier_vectors("hidden"):
        check_members(line)
        number += 1
    assert number


@pytest.mark.soak
def test_predictions_and_meanings_of_hidden_vectors() -> None:
    """A fifth of the lines, in which sizes and noise take turns; all of them in a soak."""
    lines, num_meanings = list(frontier_vectors("hidden"))[::STRIDE], 0
    for line in lines:
        check_query(line)
        if "meanings" in line["expect"]:
            assert count_meanings(vector_posterior(line)) == line["expect"]["meanings"]
            num_meanings += 1
    assert lines
    assert num_meanings
