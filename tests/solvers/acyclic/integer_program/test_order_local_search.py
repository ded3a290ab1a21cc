"""Orders that are disturbed and improved again: possible choices of what they cost, and mostly the least."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from calibrant.solvers.acyclic.integer_program._kernels_orders import IMPOSSIBLE, improve_order
from calibrant.solvers.acyclic.integer_program.order_local_search import OrderLocalSearch
from calibrant.solvers.acyclic.least import Orders, best_structure
from tests.solvers.acyclic.test_least import is_acyclic, random_options

Options = dict[int, dict[int, int]]


def drawn(seed: int) -> Options:
    """Among variables that need no roots, with costs that words hold."""
    options, roots = random_options(Random(f"stirring/{seed}"), 3)
    known = sum(1 << v for v in options)
    costs = {
        v: {own & known: cost >> 121 for own, cost in sets.items() if not own & ~(known | roots)}
        for v, sets in options.items()
    }
    return costs if len(costs) > 1 and all(costs.values()) else drawn(seed + 10_000)


def cost_of(options: Options, order: list[int]) -> int | None:
    """By the definition: each takes its cheapest set among those before it."""
    total = 0
    for place, v in enumerate(order):
        before = sum(1 << u for u in order[:place])
        costs = [cost for own, cost in options[v].items() if not own & ~before]
        if not costs:
            return None
        total += min(costs)
    return total


def moved(order: list[int], v: int, place: int) -> list[int]:
    rest = [u for u in order if u != v]
    return [*rest[:place], v, *rest[place:]]


@pytest.mark.parametrize("seed", range(40))
def test_an_improved_order_costs_what_is_said_and_no_move_makes_it_cheaper(seed: int) -> None:
    options = drawn(seed)
    stirring = OrderLocalSearch(options)
    places = np.random.default_rng(seed).permutation(len(options))
    said = improve_order(places, stirring.starts, stirring.masks, stirring.costs)
    order = [stirring.variables[place] for place in places.tolist()]
    base = sum(min(sets.values()) for sets in options.values())
    cost = cost_of(options, order)
    assert sorted(order) == sorted(options)
    if cost is None:
        assert said >= IMPOSSIBLE
        return
    assert said == cost - base
    others = [cost_of(options, moved(order, v, place)) for v in order for place in range(len(order))]
    assert min(other for other in others if other is not None) == cost


def test_choices_have_no_cycle_and_are_mostly_the_least() -> None:
    least = tried = 0
    for seed in range(60):
        options = drawn(seed)
        best, first, stirring = (
            best_structure(options, 0),
            Orders(options, 0).cheapest_first(),
            OrderLocalSearch(options),
        )
        fresh = stirring.restart(20)
        assert (best is None) == (first is None)
        if best is None or first is None:
            assert fresh is None
            continue
        for chosen in (stirring.improve_from(first, 20), fresh):
            if chosen is not None:
                assert is_acyclic(chosen)
                assert chosen.keys() == options.keys()
                cost = sum(options[v][own] for v, own in chosen.items())
                assert cost >= best[0]
                least += cost == best[0]
        tried += 2
    assert least > 0.9 * tried > 0


def test_the_same_from_the_same_beginning() -> None:
    options = drawn(3)
    assert OrderLocalSearch(options).restart(5) == OrderLocalSearch(options).restart(5)
