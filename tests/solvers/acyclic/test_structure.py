"""The acyclic choice of least total cost, against all choices."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest

from calibrant.solvers.acyclic.least import MAX_FREE_VARIABLES, best_structure
from calibrant.solvers.outcome import BudgetSpent

Options = dict[int, dict[int, int]]


def random_options(rng: Random, num_roots: int, num_endogenous: int, density: float) -> tuple[Options, int]:
    """Parent sets as masks over the variables, in a shuffled numbering; costs distinct for each variable."""
    numbers = rng.sample(range(num_roots + num_endogenous), num_roots + num_endogenous)
    endogenous = numbers[num_roots:]
    everything = (1 << len(numbers)) - 1
    options = {}
    for variable in endogenous:
        masks = [mask for mask in range(everything + 1) if not mask >> variable & 1 and rng.random() < density]
        options[variable] = dict(zip(masks, rng.sample(range(10**6), len(masks)), strict=True))
    return options, sum(1 << root for root in numbers[:num_roots])


def is_acyclic(chosen: dict[int, int]) -> bool:
    waiting = set(chosen)
    while ready := {v for v in waiting if not any(chosen[v] >> u & 1 for u in waiting)}:
        waiting -= ready
    return not waiting


def best_by_enumeration(options: Options) -> tuple[int, dict[int, int]] | None:
    choices = (dict(zip(options, masks, strict=True)) for masks in product(*options.values()))
    acyclic = [
        (sum(options[v][mask] for v, mask in chosen.items()), chosen) for chosen in choices if is_acyclic(chosen)
    ]
    return min(acyclic, key=lambda choice: choice[0], default=None)


@pytest.mark.parametrize("num_endogenous", [1, 2, 3, 4])
@pytest.mark.parametrize("num_roots", [0, 1, 2])
def test_the_optimum_of_all_acyclic_choices(num_roots: int, num_endogenous: int) -> None:
    rng = Random(f"{num_roots}/{num_endogenous}")
    impossible = 0
    for _ in range(60):
        density = rng.choice([0.05, 0.2, 0.5]) if num_endogenous < 4 else rng.choice([0.05, 0.2])
        options, roots = random_options(rng, num_roots, num_endogenous, density)
        found = best_structure(options, roots)
        assert found == best_by_enumeration(options)
        impossible += found is None
    assert 0 < impossible < 60


def test_a_cheap_circle_is_broken_where_that_costs_least() -> None:
    """Three variables, each cheap from the one before it around a circle, or dearer from the root 0."""
    circle = {1: {0b1000: 1, 0b1: 6}, 2: {0b10: 1, 0b1: 4}, 3: {0b100: 1, 0b1: 5}}
    assert best_structure(circle, 0b1) == (6, {1: 0b1000, 2: 0b1, 3: 0b100})


def test_parent_sets_beyond_the_known_variables_are_not_taken() -> None:
    assert best_structure({1: {0b1000: 1, 0b1: 9}}, 0b1) == (9, {1: 0b1})
    assert best_structure({1: {0b1000: 1}}, 0b1) is None


def test_no_endogenous_variable() -> None:
    assert best_structure({}, 0b11) == (0, {})


def test_a_variable_without_options() -> None:
    assert best_structure({1: {0b1: 3}, 2: {}}, 0b1) is None


def test_costs_beyond_a_machine_word_are_added_exactly() -> None:
    options = {1: {0b1: 1 << 200, 0b101: (1 << 200) - 1}, 2: {0b1: 1 << 100, 0b11: (1 << 100) - 1}}
    assert best_structure(options, 0b1) == ((1 << 200) - 1 + (1 << 100), {1: 0b101, 2: 0b1})


def test_more_variables_than_subsets_can_be_listed() -> None:
    options = {v: {1: 1} for v in range(1, MAX_FREE_VARIABLES + 2)}
    with pytest.raises(BudgetSpent, match="17 variables of unknown order; at most 16"):
        best_structure(options, 1)
