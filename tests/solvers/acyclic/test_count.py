"""Sums over acyclic choices where only few sets can come first: against all choices, tables, and closed forms."""

from __future__ import annotations

from itertools import combinations, product
from math import prod
from random import Random

import numpy as np
import pytest

from calibrant.solvers.acyclic import count
from calibrant.solvers.acyclic.count import Layers, Weights, bounds, total
from calibrant.solvers.acyclic.elimination import elimination_order, is_orderable, minimal_sets, total_by_elimination
from calibrant.solvers.outcome import Budget, BudgetSpent
from tests.solvers.acyclic.test_least import is_acyclic

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


# --- Sums in kernels, on numbers of several words, against every choice one by one ------------------------------------


def sums_by_enumeration(options: dict[int, dict[int, int]]) -> int:
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
            expected = sums_by_enumeration(options)
            assert total(weights) == Layers(weights).total == expected
            assert weights.words is not None
            largest = max(largest, weights.words.limbs)
    assert largest == words


def test_weights_that_are_no_words_are_summed_as_well() -> None:
    options = {0: {0: 1 << 64, 2: 3}, 1: {0: 5, 1: 7}}
    weights = Weights(options, 0)
    assert weights.words is None
    assert total(weights) == Layers(weights).total == sums_by_enumeration(options)


# --- Sums by elimination: against all choices, against sums over what can come first, and closed forms at 40 variables


@pytest.mark.parametrize("largest", [5, 1 << 80])
def test_every_order_gives_the_sum_over_all_choices(largest: int) -> None:
    counted = 0
    for seed in range(100):
        options, roots = random_weights(Random(seed), largest)
        expected = by_enumeration(options)
        counted += expected > 0
        own = Weights(options, roots).by_positions
        order = Random(f"order {seed}").sample(range(len(own)), len(own))
        assert total_by_elimination(own, order, Budget()) == expected
    assert 30 < counted < 100


def near(num_vars: int, reach: int, terms: int | None = None) -> Weights:
    """Behind root 0 every variable has up to two of those that are at most `reach` away for parents, by 1, 2 or 3."""
    options = {}
    for v in range(1, num_vars + 1):
        others = [u for u in range(max(1, v - reach), min(num_vars, v + reach) + 1) if u != v]
        sets = [chosen for k in range(3) for chosen in combinations(others, k)]
        options[v] = {1 | sum(1 << u for u in chosen): 1 + len(chosen) for chosen in sets}
    return Weights(options, 1, terms=terms)


@pytest.mark.parametrize("reach", [1, 2])
def test_the_same_sum_as_over_what_can_come_first(reach: int) -> None:
    assert near(11, reach).elimination is not None
    assert total(near(11, reach)) == count._sum_by_sinks(near(11, reach))


def test_a_path_of_forty_is_summed_by_a_recurrence() -> None:
    """From left to right, by the arc to the next variable: none, from it, or to it. No two arcs make a cycle."""
    none, onward, back = 1, 0, 0  # before the first variable there is no arc
    for _ in range(39):
        free = none + back  # the variable has no parent on its left
        none, onward, back = free + 2 * onward, free + 2 * onward, 2 * free + 3 * onward
    assert total(near(40, 1)) == none + back + 2 * onward


def test_rings_and_the_bounds_that_are_not_needed() -> None:
    """Every one has the root or its neighbour on a ring for a parent: all choices but the ring."""
    ring = Weights({i: {1: 2, 1 << (i % 40 + 1): 3} for i in range(1, 41)}, 1)
    assert ring.method == "elimination of variables"
    assert bounds(ring) == (5**40 - 3**40, 5**40 - 3**40)


def test_what_is_too_wide_or_too_long_is_left_to_sums() -> None:
    free = [{0: 1, **{1 << u: 1 for u in range(12) if u != v}} for v in range(12)]
    assert elimination_order(free) is None
    own = near(12, 2).by_positions
    order = elimination_order(own)
    assert order is not None
    assert sorted(order) == list(range(12))
    with pytest.raises(BudgetSpent):
        total_by_elimination(own, order, Budget(1_000))
    assert elimination_order(own, max_scope=4) is None


def test_a_budget_too_small_for_both_is_spent() -> None:
    with pytest.raises(BudgetSpent, match="40 variables that may lie on a cycle together, in more than 50 partial"):
        total(near(40, 2, terms=50))
