"""Draws of acyclic choices: every one exactly as likely as its weight says, in each of the three ways."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from itertools import product
from math import prod
from random import Random
from typing import Any, TypeAlias

import pytest

from calibrant.solvers.acyclic import count, draws
from calibrant.solvers.acyclic.count import Layers, Weights, total
from calibrant.solvers.acyclic.draws import Draws, Marginals, draw_by_layers
from calibrant.solvers.outcome import BudgetSpent
from tests.solvers.acyclic.test_count import Options, near, path, random_weights
from tests.solvers.acyclic.test_estimate import dense
from tests.solvers.acyclic.test_least import is_acyclic

Draw: TypeAlias = Callable[[], dict[int, int]]


def probabilities(draw: Draw, monkeypatch: pytest.MonkeyPatch) -> dict[tuple[tuple[int, int], ...], Fraction]:
    """Of everything that can be drawn, by going through all that `weighted` can answer."""
    found: Counter[tuple[tuple[int, int], ...]] = Counter()
    waiting: list[list[int]] = [[]]
    while waiting:
        script = waiting.pop()
        likelihood, asked = Fraction(1), 0

        def scripted(rng: object, options: Iterable[tuple[Any, int]], whole: int, script: list[int] = script) -> Any:
            nonlocal likelihood, asked
            listed = [one for one in options if one[1]]
            assert sum(weight for _, weight in listed) == whole
            if asked == len(script):
                waiting.extend([*script, other] for other in range(1, len(listed)))
                script.append(0)
            option, weight = listed[script[asked]]
            likelihood, asked = likelihood * Fraction(weight, whole), asked + 1
            return option

        with monkeypatch.context() as patched:
            patched.setattr(draws, "draw_weighted", scripted)
            drawn = draw()
        found[tuple(sorted(drawn.items()))] += likelihood  # type: ignore[assignment]
    return dict(found)  # type: ignore[arg-type]


def expected(weights: Weights) -> dict[tuple[tuple[int, int], ...], Fraction]:
    """Of every acyclic choice, by going through all choices."""
    found, whole = {}, 0
    for choice in product(*(own.items() for own in weights.options)):
        chosen = {v: mask for v, (mask, _) in zip(weights.endogenous, choice, strict=True)}
        weight = 1
        for _, own in choice:
            weight *= own
        if weight and acyclic(chosen):
            found[tuple(sorted(chosen.items()))] = weight
            whole += weight
    return {key: Fraction(weight, whole) for key, weight in found.items()}


def acyclic(chosen: dict[int, int]) -> bool:
    left = set(chosen)
    while left:
        ready = {v for v in left if not any(chosen[v] >> u & 1 for u in left)}
        if not ready:
            return False
        left -= ready
    return True


def problems() -> Iterator[tuple[Weights, Random]]:
    for seed in range(60):
        rng = Random(seed)
        weights = Weights(*random_weights(rng, 5))
        if weights.endogenous and total(weights) and len(expected(weights)) < 60:
            yield weights, rng


def by_layers(weights: Weights, rng: Random) -> Draw:
    layers = Layers(weights)
    assert layers.total == total(weights)
    return lambda: draw_by_layers(layers, rng)


def by_elimination(weights: Weights, rng: Random) -> Draw:
    weights.elimination = rng.sample(range(len(weights.endogenous)), len(weights.endogenous))
    eliminated = draws._ByElimination(weights)
    assert eliminated.total == sum_of(weights)
    return lambda: eliminated.draw(rng)


def by_shares(weights: Weights, rng: Random) -> Draw:
    shared = draws._SequentialSampler(weights)
    assert shared.total == sum_of(weights)
    return lambda: shared.draw(rng)


def sum_of(weights: Weights) -> int:
    return total(Weights(dict(zip(weights.endogenous, weights.options, strict=True)), weights.available))


@pytest.mark.parametrize("way", [by_layers, by_elimination, by_shares])
def test_each_choice_is_as_likely_as_its_weight(
    way: Callable[[Weights, Random], Draw], monkeypatch: pytest.MonkeyPatch
) -> None:
    compared = 0
    for weights, rng in problems():
        assert probabilities(way(weights, rng), monkeypatch) == expected(weights)
        compared += 1
    assert compared > 12


@pytest.mark.parametrize("num_vars", [12, 60])
def test_what_elimination_counts_is_drawn(num_vars: int) -> None:
    """Also where the sum goes over far more than could be layered; the same seed draws the same."""
    weights = near(num_vars, 2)
    several = Draws(weights)
    drawn = [several.draw(Random(seed)) for seed in (0, 0, 1)]
    assert several.total == total(near(num_vars, 2))
    assert drawn[0] == drawn[1] != drawn[2]
    for chosen in drawn:
        assert acyclic(chosen)
        assert all(chosen[v] in own for v, own in zip(weights.endogenous, weights.options, strict=True))
        placed = 1
        for v, mask in chosen.items():
            assert not mask & ~placed  # parents first
            placed |= 1 << v


def test_a_parent_set_of_a_long_path_comes_as_often_as_its_share() -> None:
    """Within four standard deviations of what was counted beside it."""
    several, rng, number = Draws(near(40, 1)), Random(7), 1_500
    counted = Counter(several.draw(rng)[20] for _ in range(number))
    for mask, weight in several.weights.options[several.weights.position[20]].items():
        options = dict(zip(several.weights.endogenous, several.weights.options, strict=True))
        share = total(Weights({**options, 20: {mask: weight}}, 1)) / several.total
        assert abs(counted[mask] - number * share) < 4 * (number * share * (1 - share)) ** 0.5


def test_where_only_the_sum_is_in_reach() -> None:
    """Fewer terms than layers have."""
    weights = dense(8, 10**11, 0, terms=7_000)
    assert weights.words is None
    several = Draws(weights)
    assert {type(part) for part in several._parts} == {draws._SequentialSampler}
    assert several.total == total(dense(8, 10**11, 0))
    assert acyclic(several.draw(Random(0)))


def test_too_many_terms_are_refused_in_a_line() -> None:
    with pytest.raises(BudgetSpent, match=r"^24 variables that may lie .*, in more than 1,000 partial orders$"):
        _ = Draws(dense(24, 3, 0, terms=1_000)).total


# --- What choices with each parent set weigh: against all choices, and against sums with that set alone --------------


def by_enumeration(options: Options) -> dict[int, Counter[int]]:
    found = {v: Counter[int]() for v in options}
    for masks in product(*options.values()):
        chosen = dict(zip(options, masks, strict=True))
        weight = prod(options[v][mask] for v, mask in chosen.items())
        if is_acyclic(chosen) and weight:
            for v, mask in chosen.items():
                found[v][mask] += weight
    return found


@pytest.mark.parametrize("largest", [5, 1 << 80])
def test_each_parent_set_weighs_what_all_choices_with_it_do(largest: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """By kernels; then, as for more variables, by two passes, with tables and without; then by elimination."""
    cases = [random_weights(Random(seed), largest) for seed in range(60)]
    expected = [by_enumeration(options) for options, _ in cases]
    assert sum(any(one.values()) for one in expected) > 20
    for changes in (
        {},
        {"word_weights": lambda sets: None},
        {"word_weights": lambda sets: None, "MAX_TABLE_VARIABLES": 0, "MIN_TABLE_IDEALS": 10**6},
        {"word_weights": lambda sets: None, "MAX_POSITIONS": 0, "MIN_TABLE_IDEALS": 1},
    ):
        with monkeypatch.context() as patched:
            for name, value in changes.items():
                patched.setattr(count, name, value)
            for (options, roots), found in zip(cases, expected, strict=True):
                marginals = Marginals(Weights(options, roots))
                assert {v: marginals.of(v) for v in options} == found


@pytest.mark.parametrize(
    "weights", [dense(11, 9, 0), path(3, 5, 7, 11), near(16, 2)], ids=["sums", "path", "eliminated"]
)
def test_marginals_of_a_variable_add_up_to_the_sum(weights: Weights) -> None:
    marginals, whole = Marginals(weights), total(weights)
    for v in weights.endogenous[::7]:
        found, at = marginals.of(v), weights.position[v]
        assert sum(found.values()) == whole
        mask = max(found)
        alone = dict(zip(weights.endogenous, weights.options, strict=True)) | {v: {mask: weights.options[at][mask]}}
        assert total(Weights(alone, 1)) == found[mask]


def test_too_many_terms_are_a_spent_budget() -> None:
    with pytest.raises(BudgetSpent, match="11 variables that may lie on a cycle together, in more than 20 partial"):
        Marginals(dense(11, 1, 0, terms=20)).of(1)
