"""The most probable map against listing: posterior, and least formula size among the best."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from random import Random

import pytest

from calibrant.dsl.formulas.operators import STANDARD_OPERATORS
from calibrant.dsl.formulas.text import STANDARD
from calibrant.dsl.replayscm.extensions.prior import Prior
from calibrant.dsl.replayscm.extensions.reference import Mechanisms, posterior_weights
from calibrant.dsl.replayscm.scm import local_function
from calibrant.solvers.budget import BudgetSpent
from calibrant.solvers.formulas.lookup import formula_for
from calibrant.solvers.replayscm.noise import best_map as best_map_module
from calibrant.solvers.replayscm.noise.best_map import best_map
from calibrant.solvers.replayscm.noise.posterior import Posterior
from tests.support.replayscm.extensions.random_items import random_class, random_member, random_worlds


def _size(mechanisms: Mechanisms) -> int:
    sizes = (formula_for(f.table, f.parents or ("A",), STANDARD_OPERATORS).size for f in mechanisms.values())
    return sum(sizes)


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
        assert result.size == min(_size(mechanisms) for mechanisms, weight in weighed if weight == top)


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
