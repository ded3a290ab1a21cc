"""Worlds that may be asked for: all constants on at most so many variables, in a fixed order."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, product
from math import comb


def candidate_worlds(variables: Sequence[str], max_targets: int) -> list[dict[str, int]]:
    """Return all interventions of at most so many constants: by number of targets, then variables, then values.

    Values count up, the last variable fastest.
    """
    return [
        dict(zip(targets, values, strict=True))
        for number in range(min(max_targets, len(variables)) + 1)
        for targets in combinations(variables, number)
        for values in product((0, 1), repeat=number)
    ]


def num_candidates(num_vars: int, max_targets: int) -> int:
    """Return how many `candidate_worlds` there are."""
    return sum(comb(num_vars, j) << j for j in range(min(max_targets, num_vars) + 1))
