"""Exact posteriors with hidden variables against the shared vectors, which were made by enumeration."""

from __future__ import annotations

from calibrant.solvers.replayscm.hidden.meanings import count_meanings
from tests.support.replayscm.extensions.posteriors import check_members, check_query, vector_posterior
from tests.support.replayscm.extensions.vectors import frontier_vectors

EVERY = 5  # predictions and meanings take a tenth of a second a line; all were compared when this was written


def test_every_hidden_vector() -> None:
    number = 0
    for line in frontier_vectors("hidden"):
        check_members(line)
        number += 1
    assert number == 150


def test_predictions_and_meanings_of_hidden_vectors() -> None:
    lines = list(frontier_vectors("hidden"))[::EVERY]
    for line in lines:
        check_query(line)
        if "meanings" in line["expect"]:
            assert count_meanings(vector_posterior(line)) == line["expect"]["meanings"]
    assert len(lines) == 30
