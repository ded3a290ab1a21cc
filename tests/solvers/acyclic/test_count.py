"""Sums over acyclic choices: exact, drawn in proportion, and estimated."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from itertools import combinations, product
from math import exp, log, prod
from random import Random
from typing import Any, TypeAlias

import numpy as np
import pytest

from calibrant.solvers.acyclic import count, draws
from calibrant.solvers.acyclic.count import Layers, Weights, bounds, total
from calibrant.solvers.acyclic.draws import Draws, Marginals, draw_by_layers
from calibrant.solvers.acyclic.elimination import elimination_order, is_orderable, minimal_sets, total_by_elimination
from calibrant.solvers.acyclic.estimate import EXACT, Estimate, add_estimates, estimate
from calibrant.solvers.outcome import Budget, BudgetSpent
from tests.solvers.acyclic.test_least import is_acyclic
from tests.support.effort import effort

# --- Sums over acyclic choices where only few sets can come first: against all choices, tables, and closed forms ------
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


def dense(num_vars: int, most: int, seed: int, terms: int | None = None) -> Weights:
    """Behind root 0 two in five of all sets of up to two others, of weights that are apart; some can come first."""
    rng = Random(f"dense {num_vars} {seed}")
    options: dict[int, dict[int, int]] = {}
    for v in range(1, num_vars + 1):
        others = [u for u in range(1, num_vars + 1) if u != v]
        sets = [chosen for k in range(3) for chosen in combinations(others, k) if rng.random() < 0.4]
        options[v] = {1 | sum(1 << u for u in chosen): rng.randint(1, most) ** len(chosen) for chosen in sets}
    options[1][1] = 1
    return Weights(options, 1, terms=terms)


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


# --- Draws of acyclic choices: every one exactly as likely as its weight says, in each of the three ways --------------
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
    found = {}
    for choice in product(*(own.items() for own in weights.options)):
        chosen = {v: mask for v, (mask, _) in zip(weights.endogenous, choice, strict=True)}
        weight = prod(own for _, own in choice)
        if weight and is_acyclic(chosen):
            found[tuple(sorted(chosen.items()))] = weight
    return {key: Fraction(weight, sum(found.values())) for key, weight in found.items()}


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
        assert is_acyclic(chosen)
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
    assert is_acyclic(several.draw(Random(0)))


def test_too_many_terms_are_refused_in_a_line() -> None:
    with pytest.raises(BudgetSpent, match=r"^24 variables that may lie .*, in more than 1,000 partial orders$"):
        _ = Draws(dense(24, 3, 0, terms=1_000)).total


# --- What choices with each parent set weigh: against all choices, and against sums with that set alone --------------


def weights_by_enumeration(options: Options) -> dict[int, Counter[int]]:
    found = {v: Counter[int]() for v in options}
    for masks in product(*options.values()):
        chosen = dict(zip(options, masks, strict=True))
        weight = prod(options[v][mask] for v, mask in chosen.items())
        if is_acyclic(chosen) and weight:
            for v, mask in chosen.items():
                found[v][mask] += weight
    return found


@pytest.mark.parametrize(("num_vars", "most"), [(11, 1), (12, 2**28), (13, 5)])
def test_kernel_of_more_variables_sums_what_integers_do(num_vars: int, most: int) -> None:
    """Sums over all subsets of more than MAX_POSITIONS variables, of one to several words."""
    weights = dense(num_vars, most, 3)
    assert weights.words is None
    assert weights.elimination is None
    words = weights.tabulated_words
    assert words is not None
    expected = count.prefix_totals(Weights(dict(zip(weights.endogenous, weights.options, strict=True)), 1))[-1]
    assert total(weights) == words.totals(words.weights[None])[0] == expected[weights.full] > 0


def test_kernel_charges_the_terms_that_integers_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """More variables than MAX_FREE_VARIABLES: the sum, and the same refusal with one term less."""
    monkeypatch.setattr(count, "MAX_FREE_VARIABLES", 10)
    count_words = count.word_weights
    num_terms = 0

    def charge(self: Weights, budget: Budget, terms: int) -> None:
        nonlocal num_terms
        num_terms += terms

    for num_vars in (11, 12):
        options = dict(zip(dense(num_vars, 5, 1).endogenous, dense(num_vars, 5, 1).options, strict=True))
        num_terms = 0
        with monkeypatch.context() as patched:
            patched.setattr(Weights, "charge", charge)
            expected = count.prefix_totals(Weights(options, 1))[-1][(1 << num_vars) - 1]
        assert num_terms > 1_000
        for limit in (num_terms, num_terms - 1):
            monkeypatch.setattr(count, "MAX_TERMS", limit)
            messages = []
            for words in (count_words, lambda *_: None):
                with monkeypatch.context() as patched:
                    patched.setattr(count, "word_weights", words)
                    weights = Weights(options, 1)
                    assert (weights.tabulated_words is None) == (words is not count_words)
                    try:
                        messages.append(str(total(weights)))
                    except BudgetSpent as spent:
                        messages.append(str(spent))
            assert messages[0] == messages[1]
            assert (messages[0] == str(expected)) == (limit == num_terms)


@pytest.mark.parametrize("largest", [5, 1 << 80])
def test_each_parent_set_weighs_what_all_choices_with_it_do(largest: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """By kernels; then, as for more variables, by two passes, with tables and without; then by elimination."""
    cases = [random_weights(Random(seed), largest) for seed in range(60)]
    expected = [weights_by_enumeration(options) for options, _ in cases]
    assert sum(any(one.values()) for one in expected) > 20
    for changes in (
        {},
        {"word_weights": lambda sets, *_: None},
        {"word_weights": lambda sets, *_: None, "MAX_TABLE_VARIABLES": 0, "MIN_TABLE_IDEALS": 10**6},
        {"word_weights": lambda sets, *_: None, "MAX_POSITIONS": 0, "MIN_TABLE_IDEALS": 1},
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


# --- Estimates of sums: unbiased against exact sums, honest about their spread, the same for the same seed ------------
SEEDS = 8


@pytest.mark.parametrize("most", [1, 9])
def test_estimates_lie_around_the_sum_as_far_as_they_say(most: int) -> None:
    """The mean within four of its standard errors, two thirds within two of their own."""
    exact = total(dense(11, most, 0))
    assert exact > 10**6
    rough = dense(11, most, 0, terms=1)
    assert len(rough.components()) == 1
    found = [estimate(rough, np.random.SeedSequence(s), particles=20, runs=4) for s in range(SEEDS)]
    values = np.array([one.value / exact for one in found])
    assert 0 < values.std(ddof=1) < 0.5
    assert abs(values.mean() - 1) < 4 * values.std(ddof=1) / SEEDS**0.5
    assert sum(abs(one.value - exact) < 2 * one.standard_error for one in found) > 2 * SEEDS / 3
    assert {one.method for one in found} == {"estimate by sequential Monte Carlo over orders, 4 runs of 20 particles"}


def test_more_particles_come_closer() -> None:
    rough = dense(11, 9, 0, terms=1)
    spread = [estimate(rough, np.random.SeedSequence(1), particles=p, runs=6).standard_error for p in (10, 1_000)]
    assert spread[1] < spread[0] / 3


def test_the_matrix_tree_theorem_at_twenty_variables() -> None:
    """Every one has the root or any other for its parent: spanning trees from the root."""
    free = {i: {1: 20, **{1 << j: 1 for j in range(1, 21) if j != i}} for i in range(1, 21)}
    exact, rough = 20 * (20 + 20) ** 19, Weights(free, 1, terms=10)
    found = [estimate(rough, np.random.SeedSequence(s), particles=80, runs=4) for s in (0, 0, 1)]
    assert abs(found[0].value - exact) < 4 * found[0].standard_error < exact
    assert found[0] == found[1] != found[2]


def test_weights_far_beyond_floating_point_sums() -> None:
    """Everybody behind the root only, but for two that compete: nothing but a product of large numbers."""
    options = {i: {1: 10**15} for i in range(1, 31)}
    options[1][1 << 2], options[2][1 << 1] = 7, 7
    exact = estimate(Weights(options, 1), np.random.SeedSequence(0))
    assert exact == Estimate(10**420 * (10**30 + 14 * 10**15), 0, EXACT)


def test_where_every_order_ends_early_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("calibrant.solvers.acyclic.estimate._Run._resample", lambda run: -np.inf)
    with pytest.raises(BudgetSpent, match="all 20 orders of 11 variables ended where nothing can come next"):
        estimate(dense(11, 1, 0, terms=1), np.random.SeedSequence(0), particles=10, runs=2)


def heavy(seed: int, terms: int | None = None) -> Weights:
    """Behind root 0 sets of up to four of six others, of weights like counts of functions: few sets hold most."""
    rng = Random(f"heavy {seed}")
    options: dict[int, dict[int, int]] = {}
    for v in range(1, 8):
        others = [u for u in range(1, 8) if u != v]
        sets = [chosen for k in range(5) for chosen in combinations(others, k) if rng.random() < 0.2]
        options[v] = {1 | sum(1 << u for u in chosen): 1 << rng.randrange(2 ** len(chosen) + 1) for chosen in sets}
        options[v][1] = 1
    options[1] = {mask: weight << 64 for mask, weight in options[1].items()}  # no words
    return Weights(options, 1, terms=terms)


@pytest.mark.soak
def test_intervals_hold_the_sum_as_often_as_they_say() -> None:
    """In 20 problems, in a soak 400, with little effort, so that few runs meet what weighs most: 95 in 100 at least."""
    held = least = asked = 0
    number = effort(20, 400)
    for seed in range(number):
        exact, rough = total(heavy(seed)), heavy(seed, terms=1)
        found = estimate(rough, np.random.SeedSequence(seed), particles=20, runs=8)
        asked += bool(found.runs)
        low, high = found.interval
        held += low <= exact <= high
        least += found.at_least <= exact
        assert found.at_least <= low <= found.value <= high
    assert asked == number
    assert held >= 0.95 * number
    assert least >= 0.95 * number


def test_the_interval_is_of_a_lognormal_mean() -> None:
    """Five numbers, of logarithms 46 to 54, variance 10: with four degrees t is 2.776, chi-square 0.4844 or 11.143."""
    runs = tuple(round(exp(power)) for power in (46, 48, 50, 52, 54))
    found = add_estimates([Estimate(1, 1, "rough", runs)])
    most = 4 * 10 / 0.4844
    low, high = found.interval
    assert low == found.at_least == pytest.approx(exp(50) / 20 ** (1 / 5))
    assert log(high) == pytest.approx(50 + most / 2 + 2.776 * (most / 5) ** 0.5, rel=1e-3)
    assert found.value == sum(runs) // 5
    assert Estimate(7, 0, EXACT).interval == (7, 7)
    near = add_estimates([Estimate(1, 1, "rough", tuple(round(exp(50 + shift / 10)) for shift in (-4, -2, 0, 2, 4)))])
    low, _ = near.interval
    assert log(low) == pytest.approx(50 + 4 * 0.1 / 11.143 / 2 - 2.776 * (0.1 / 5) ** 0.5, rel=1e-5)


def test_numbers_of_any_length_are_written() -> None:
    far = Estimate(10**3000, 1, "rough", (10**2990, 2 * 10**3000))
    assert str(far).startswith("about 1.00e3000 (")
    assert str(far).endswith(f" to 1e{int((2995 * log(10) + log(2) / 2 + 100_000) / log(10))})")


def test_the_standard_error_is_of_the_mean_of_runs() -> None:
    found = add_estimates([Estimate(100, 1, "rough", (90, 95, 100, 105, 110)), Estimate(7, 0, EXACT)])
    assert (found.value, found.standard_error) == (107, 3)  # the root of 62.5 / 5, rounded down
    assert found.runs == (97, 102, 107, 112, 117)
    assert found.at_least == int((97 * 102 * 107 * 112 * 117 / 20) ** (1 / 5))


def test_a_run_that_came_to_nothing_bounds_nothing() -> None:
    found = add_estimates([Estimate(1, 1, "rough", (0, 2, 4))])
    assert (found.value, found.at_least) == (2, 0)


def test_estimates_add_up_and_say_what_they_are() -> None:
    parts = [Estimate(10, 3, "rough", (7, 13)), Estimate(5, 0, EXACT), Estimate(7, 4, "rougher", (3, 11))]
    assert add_estimates(parts) == Estimate(22, 7, "rougher", (15, 29))
    assert add_estimates(parts[1:2]) == parts[1]
    assert add_estimates([]) == Estimate(0, 0, EXACT)
    assert str(parts[1]) == "5"
    large = Estimate(prod([10] * 99) * 123, 10**98, "rough", (prod([10] * 99) * 123,) * 9)
    assert str(large) == "about 1.23e101 (1.22e101 to 1.23e101)"
