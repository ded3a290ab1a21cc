"""The most probable map against listing: posterior, and least formula size among the best."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from random import Random

import pytest

from calibrant.dsl.formulas.formula import STANDARD_OPERATORS
from calibrant.dsl.formulas.text import STANDARD
from calibrant.dsl.replayscm.extensions.extension import Prior
from calibrant.dsl.replayscm.extensions.reference import Mechanisms, posterior_weights
from calibrant.dsl.replayscm.scm import local_function
from calibrant.solvers.formulas.lookup import formula_for
from calibrant.solvers.outcome import BudgetSpent, Found, OutOfBudget
from calibrant.solvers.replayscm.noise import best_map as best_map_module
from calibrant.solvers.replayscm.noise import best_map as tied_maps_module
from calibrant.solvers.replayscm.noise.best_map import Formulas, best_map, tied_maps
from calibrant.solvers.replayscm.noise.posterior import Posterior
from tests.support.replayscm.extensions.problems import random_class, random_member, random_worlds


def _size(mechanisms: Mechanisms) -> int:
    sizes = (formula_for(f.table, f.parents or ("A",), STANDARD_OPERATORS).size for f in mechanisms.values())
    return sum(sizes)


def _functions(mechanisms: Mechanisms) -> frozenset[tuple[str, tuple[str, ...], int]]:
    return frozenset((v, tuple(f.parents), f.table.bits) for v, f in mechanisms.items())


def _replayed(formulas: Formulas) -> frozenset[tuple[str, tuple[str, ...], int]]:
    return _functions({v: local_function(formula) for v, formula in formulas.items()})


@pytest.mark.parametrize("rate", [Fraction(0), Fraction(1, 10), Fraction(2, 5)])
@pytest.mark.parametrize(("num_hidden", "stated"), [(0, None), (1, 2), (1, None)])
def test_best_and_smallest_of_all_members(rate: Fraction, num_hidden: int, stated: int | None) -> None:
    rng = Random(f"{rate} {num_hidden}")
    for _ in range(4):
        scm_class = random_class(
            rng,
            3 + num_hidden,
            num_roots=1 + num_hidden,
            num_hidden=num_hidden,
            max_parents=2 - num_hidden,
            stated=stated,
            rate=rate,
        )
        evidence = random_worlds(rng, scm_class, random_member(rng, scm_class), 2, 2)
        posterior = Posterior(scm_class).condition(*evidence)
        weighed = list(posterior_weights(scm_class, evidence))
        top = max(weight for _, weight in weighed)
        result = best_map(posterior, STANDARD)
        assert result.share == top / posterior.mass
        functions = {v: local_function(formula) for v, formula in result.formulas.items()}
        assert posterior.likelihood(functions) == top
        assert result.size == sum(formula.size for formula in result.formulas.values())
        least = min(_size(mechanisms) for mechanisms, weight in weighed if weight == top)
        assert result.size == least
        expected = [_functions(m) for m, weight in weighed if weight == top and _size(m) == least]
        tied = tied_maps(posterior, STANDARD, result)
        assert isinstance(tied, Found)
        assert tied.value.count == len(tied.value.maps) == len(expected)
        assert {_replayed(formulas) for formulas in tied.value.maps} == set(expected)
        assert {sum(f.size for f in formulas.values()) for formulas in tied.value.maps} == {least}
        assert _replayed(result.formulas) in expected


@pytest.mark.parametrize(("rate", "num_hidden"), [(Fraction(0), 0), (Fraction(1, 10), 0), (Fraction(1, 10), 1)])
def test_draws_of_tied_maps_are_uniform(rate: Fraction, num_hidden: int) -> None:
    """Of 40 or more ties half as many draws: distinct ones as often as of independent uniform draws."""
    rng, num_drawn, expected, variance = Random(f"ties {rate} {num_hidden}"), 0, 0.0, 0.0
    for _ in range(6):
        scm_class = random_class(rng, 4, num_hidden=num_hidden, max_parents=2, rate=rate)
        evidence = random_worlds(rng, scm_class, random_member(rng, scm_class), 1, 2)
        posterior = Posterior(scm_class).condition(*evidence)
        best = best_map(posterior, STANDARD)
        listed = tied_maps(posterior, STANDARD, best)
        assert isinstance(listed, Found)
        count = listed.value.count
        if count < 2:
            continue
        drawn = tied_maps(posterior, STANDARD, best, max_listed=count - 1)
        assert isinstance(drawn, Found)
        assert drawn.value.count == count == len(drawn.value.maps) + 1
        every = {_replayed(formulas) for formulas in listed.value.maps}
        distinct = {_replayed(formulas) for formulas in drawn.value.maps}
        assert distinct <= every
        # of k draws among n, independent and uniform: n (1 - (1 - 1/n)**k) distinct ones, with this variance
        k, n = count - 1, count
        one, two = (1 - 1 / n) ** k, (1 - 2 / n) ** k
        num_drawn, expected = num_drawn + len(distinct), expected + n * (1 - one)
        variance += n * one + n * (n - 1) * two - n * n * one * one
    assert expected > 0
    assert abs(num_drawn - expected) <= 4 * variance**0.5 + 1e-9


def test_ties_that_are_not_counted_say_why(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = Random("uncounted")
    scm_class = random_class(rng, 4, rate=Fraction(1, 10))
    posterior = Posterior(scm_class).condition(*random_worlds(rng, scm_class, random_member(rng, scm_class), 1, 2))
    best = best_map(posterior, STANDARD)
    assert isinstance(tied_maps(posterior, STANDARD, replace(best, is_smallest=False)), OutOfBudget)
    monkeypatch.setattr(tied_maps_module, "MAX_MECHANISMS", 1)
    outcome = tied_maps(posterior, STANDARD, best)
    assert isinstance(outcome, OutOfBudget)
    assert "more than 1 mechanisms" in outcome.reached


@pytest.mark.parametrize("prior", list(Prior))
def test_many_hidden_columns_cost_the_smallest_size_alone(prior: Prior, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two hidden variables, noise-free: columns that fit no SCM are not searched."""
    rng = Random(f"columns {prior}")
    scm_class = replace(random_class(rng, 5, num_roots=2, num_hidden=2, max_parents=2, rate=Fraction(0)), prior=prior)
    evidence = random_worlds(rng, scm_class, random_member(rng, scm_class), 4, 4)
    posterior = Posterior(scm_class).condition(*evidence)
    whole = best_map(posterior, STANDARD)
    assert whole.is_smallest
    assert whole.num_columns > 1
    monkeypatch.setattr(best_map_module, "MAX_SIGNED_COLUMNS", 1)
    part = best_map(posterior, STANDARD)
    assert not part.is_smallest
    assert (part.share, part.num_columns) == (whole.share, whole.num_columns)
    assert part.size >= whole.size
    functions = {v: local_function(formula) for v, formula in part.formulas.items()}
    assert posterior.likelihood(functions) / posterior.mass == part.share
    # of a prior that is not uniform columns are to be weighted, one of each kind
    monkeypatch.setattr(best_map_module, "MAX_COLUMNS", 1 if prior is Prior.UNIFORM else 0)
    if prior is Prior.UNIFORM:
        assert best_map(posterior, STANDARD).share == whole.share
    else:
        with pytest.raises(BudgetSpent, match="more than 0 kinds of columns"):
            best_map(posterior, STANDARD)
