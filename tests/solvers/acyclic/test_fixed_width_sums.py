"""Sums in kernels, on numbers of several words, against every choice one by one."""

from __future__ import annotations

from itertools import product
from math import prod
from random import Random

import pytest

from calibrant.solvers.acyclic.count import Layers, Weights, total


def by_enumeration(options: dict[int, dict[int, int]]) -> int:
    """Add up the products of all choices in which variables can be put in an order behind their parents."""
    whole = 0
    for chosen in product(*(own.items() for own in options.values())):
        parents = dict(zip(options, (mask for mask, _ in chosen), strict=True))
        while ready := [v for v, mask in parents.items() if not any(mask >> u & 1 for u in parents)]:
            for v in ready:
                del parents[v]
        whole += 0 if parents else prod(weight for _, weight in chosen)
    return whole


@pytest.mark.parametrize(("bits", "words"), [(3, 1), (40, 3), (61, 4)])
def test_totals_and_layers_are_sums_over_all_choices(bits: int, words: int) -> None:
    rng, largest = Random(bits), 0
    for number in (0, 1, 2, 3, 4, 4):
        for _ in range(6):
            options = {
                v: {rng.getrandbits(6) & ~(1 << v): rng.getrandbits(bits) + 1 for _ in range(5)}
                for v in sorted(rng.sample(range(6), number))
            }
            weights = Weights(options, sum(1 << v for v in range(6) if v not in options))
            expected = by_enumeration(options)
            assert total(weights) == Layers(weights).total == expected
            assert weights.words is not None
            largest = max(largest, weights.words.limbs)
    assert largest == words


def test_weights_that_are_no_words_are_summed_as_well() -> None:
    options = {0: {0: 1 << 64, 2: 3}, 1: {0: 5, 1: 7}}
    weights = Weights(options, 0)
    assert weights.words is None
    assert total(weights) == Layers(weights).total == by_enumeration(options)
