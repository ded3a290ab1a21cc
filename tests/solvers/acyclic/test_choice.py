"""Choices beyond tables over all subsets: equal to those by tables, and to closed forms at forty variables."""

from __future__ import annotations

from random import Random

import pytest

from solvers.acyclic import choice
from solvers.acyclic.choice import good_choice, least_choice
from solvers.acyclic.least_cost import best_structure, distinct
from solvers.budget import BudgetSpent
from tests.solvers.acyclic.test_structure import is_acyclic

Options = dict[int, dict[int, int]]


def random_options(rng: Random, most_parents: int) -> tuple[Options, int]:
    """Up to eight endogenous variables with up to five parent sets, some of them beyond the known variables."""
    names = rng.sample(range(11), rng.randint(2, 10))
    roots = names[: rng.randint(0, 2)]
    options: Options = {}
    for v in names[len(roots) :]:
        others = [u for u in range(11) if u != v and (u in names or rng.random() < 0.1)]
        sets = [rng.sample(others, min(len(others), rng.randint(0, most_parents))) for _ in range(rng.randint(1, 5))]
        masks = {sum(1 << u for u in chosen) for chosen in sets}
        options[v] = {mask: distinct(rng.randint(0, 9), v, mask, 11) for mask in masks}
    return options, sum(1 << root for root in roots)


@pytest.mark.parametrize("most_parents", [1, 3])
def test_the_choice_is_the_one_by_tables(most_parents: int, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = [random_options(Random(f"{most_parents}/{seed}"), most_parents) for seed in range(250)]
    expected = [best_structure(*one) for one in drawn]
    monkeypatch.setattr(choice, "MAX_FREE_VARIABLES", 0)
    assert [least_choice(*one) for one in drawn] == expected
    assert 5 < sum(found is None for found in expected) < 200


def test_a_ring_of_forty_is_broken_where_that_costs_least() -> None:
    """Each from the one before it for 1, or from the root for 5; variable 17 for 3."""
    ring = {i: {1 << (i - 2) % 40 + 1: 1, 1: 3 if i == 17 else 5} for i in range(1, 41)}
    cost, chosen = least_choice(ring, 1) or (0, {})
    assert cost == 39 + 3
    assert chosen == {i: 1 if i == 17 else 1 << (i - 2) % 40 + 1 for i in range(1, 41)}


def test_forty_variables_of_which_few_can_come_first() -> None:
    """Each needs the two before it; the cheaper sets look ahead and would close a cycle."""
    options: Options = {2: {0b11: 1}, 3: {0b110: 1}}
    for i in range(4, 41):
        options[i] = {1 << i - 1 | 1 << i - 2: 10, 1 << i - 1 | 1 << min(i + 1, 40) % 41 if i < 40 else 0b1: 4}
    options[40] = {1 << 39 | 1 << 38: 10}
    found = least_choice(options, 0b11)
    assert found == (2 + 37 * 10, {i: min(own, key=lambda m: -own[m]) for i, own in options.items()})


def test_too_much_freedom_is_out_of_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "MAX_BEGINNINGS", 500)
    free = {i: {1: 9, 1 << i % 20 + 1 | 1 << (i + 3) % 20 + 1: 2} for i in range(1, 21)}
    with pytest.raises(BudgetSpent, match="20 variables of unknown order: more than 500 sets of them can come first"):
        least_choice(free, 1)


@pytest.mark.parametrize("most_parents", [1, 3])
def test_a_search_over_orders_finds_an_acyclic_choice_wherever_there_is_one(most_parents: int) -> None:
    least = 0
    for seed in range(250):
        options, roots = random_options(Random(f"{most_parents}/{seed}"), most_parents)
        found, best = good_choice(options, roots), best_structure(options, roots)
        assert (found is None) == (best is None)
        if found is None or best is None:
            continue
        cost, chosen = found
        assert chosen.keys() == options.keys()
        assert cost == sum(options[v][mask] for v, mask in chosen.items()) >= best[0]
        assert is_acyclic(chosen)
        least += cost == best[0]
    assert least > 150
