"""A search over orders: an acyclic choice wherever there is one, mostly the least."""

from __future__ import annotations

from random import Random

import pytest

from calibrant.solvers.acyclic.least import best_structure, break_ties, find_good_choice
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
        options[v] = {mask: break_ties(rng.randint(0, 9), v, mask, 11) for mask in masks}
    return options, sum(1 << root for root in roots)


@pytest.mark.parametrize("most_parents", [1, 3])
def test_a_search_over_orders_finds_an_acyclic_choice_wherever_there_is_one(most_parents: int) -> None:
    least = 0
    for seed in range(250):
        options, roots = random_options(Random(f"{most_parents}/{seed}"), most_parents)
        found, best = find_good_choice(options, roots), best_structure(options, roots)
        assert (found is None) == (best is None)
        if found is None or best is None:
            continue
        cost, chosen = found
        assert chosen.keys() == options.keys()
        assert cost == sum(options[v][mask] for v, mask in chosen.items()) >= best[0]
        assert is_acyclic(chosen)
        least += cost == best[0]
    assert least > 150
