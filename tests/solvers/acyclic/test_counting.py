"""Sums over acyclic choices where only few sets can come first: against all choices, tables, and closed forms."""

from __future__ import annotations

from itertools import product
from math import prod
from random import Random

import numpy as np
import pytest

from calibrant.solvers.acyclic import count
from calibrant.solvers.acyclic.count import Layers, Weights, bounds, total
from calibrant.solvers.acyclic.elimination import is_orderable, minimal_sets
from calibrant.solvers.outcome import BudgetSpent
from tests.solvers.acyclic.test_structure import is_acyclic

Options = dict[int, dict[int, int]]

PATH = 40


def random_weights(rng: Random, largest: int = 5) -> tuple[Options, int]:
    """Up to six endogenous variables with up to three parent sets each, and up to two roots, in a shuffled numbering.

    Some sets have no weight, and some weights do not fit a word.
    """
    names = rng.sample(range(9), rng.randint(2, 7))
    roots = names[: rng.randint(0, 2)]
    options: Options = {}
    for v in names[len(roots) :]:
        others = [u for u in names if u != v]
        sets = [rng.sample(others, rng.randint(0, min(2, len(others)))) for _ in range(rng.randint(1, 3))]
        options[v] = {sum(1 << u for u in chosen): rng.randint(0, largest) for chosen in sets}
    return options, sum(1 << root for root in roots)


def by_enumeration(options: Options) -> int:
    choices = (dict(zip(options, masks, strict=True)) for masks in product(*options.values()))
    return sum(prod(options[v][mask] for v, mask in chosen.items()) for chosen in choices if is_acyclic(chosen))


def path(left: int, right: int, first: int, last: int) -> Weights:
    """PATH variables behind root 0: the one before or the one after is the parent; the ends may have the root."""
    options: Options = {}
    for i in range(1, PATH + 1):
        own = {1 << i - 1: left if i > 1 else first}
        own[1 << i + 1 if i < PATH else 1] = right if i < PATH else last
        options[i] = own
    return Weights(options, 1)


@pytest.mark.parametrize("largest", [5, 1 << 80])
def test_sums_without_tables_are_those_with_them_and_of_all_choices(
    largest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = 0
    for seed in range(150):
        options, roots = random_weights(Random(seed), largest)
        expected = by_enumeration(options)
        counted += expected > 0
        assert total(Weights(options, roots)) == Layers(Weights(options, roots)).total == expected
        with monkeypatch.context() as patched:
            patched.setattr(count, "MAX_TABLE_VARIABLES", 0)
            patched.setattr(count, "MIN_TABLE_IDEALS", 10**6)  # no number of beginnings is worth a table
            assert total(Weights(options, roots)) == Layers(Weights(options, roots)).total == expected
    assert 50 < counted < 150


def test_forty_variables_on_one_cycle_where_few_sets_come_first() -> None:
    """A choice is acyclic iff the first j variables follow the first end and the others the last: j from 0 to 40."""
    a, b, first, last = 3, 5, 7, 11
    ways = [last * b ** (PATH - 1), first * a ** (PATH - 1)]
    ways += [first * a ** (j - 1) * last * b ** (PATH - j - 1) for j in range(1, PATH)]
    weights = path(a, b, first, last)
    assert len(weights.components()) == 1
    assert total(weights) == Layers(path(a, b, first, last)).total == sum(ways)
    assert bounds(weights) == (sum(ways), sum(ways))


def test_more_variables_than_the_budget_reaches_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every one of 20 variables has the root or any other for its parent: by the matrix-tree theorem 2 * 62**19."""
    free = {i: {1: 2, **{1 << j: 3 for j in range(1, 21) if j != i}} for i in range(1, 21)}
    exact = 2 * (2 + 3 * 20) ** 19
    with pytest.raises(BudgetSpent, match="20 variables that may lie on a cycle together, in more than 1,000 partial"):
        total(Weights(free, 1, terms=1_000))
    found = bounds(Weights(free, 1, terms=1_000))
    assert prod(2 + 3 * i for i in range(20)) <= found.lower <= exact <= found.upper == 59**20
    monkeypatch.setattr(count, "MAX_TERMS", 1_000)
    assert bounds(Weights(free, 1)) == found


def test_bounds_hold_the_sum_between_them(monkeypatch: pytest.MonkeyPatch) -> None:
    def spent(weights: Weights) -> int:
        raise BudgetSpent

    monkeypatch.setattr("calibrant.solvers.acyclic.count.total", spent)
    apart = 0
    for seed in range(150):
        options, roots = random_weights(Random(seed))
        found = bounds(Weights(options, roots))
        assert found.lower <= by_enumeration(options) <= found.upper
        apart += found.lower < found.upper
    assert apart > 20


def test_what_can_be_put_in_an_order() -> None:
    possible = 0
    for seed in range(150):
        options, roots = random_weights(Random(seed))
        least = {v: minimal_sets(np.array(list(own), np.int64)) for v, own in options.items()}
        for v, kept in least.items():
            assert {int(mask) for mask in kept} == {
                mask for mask in options[v] if not any(o != mask and o & mask == o for o in options[v])
            }
        expected = any(is_acyclic(dict(zip(options, masks, strict=True))) for masks in product(*options.values()))
        possible += expected
        assert is_orderable(least, roots) == expected
    assert 50 < possible < 150
