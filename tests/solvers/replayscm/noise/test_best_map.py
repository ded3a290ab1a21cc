"""The most probable map against listing: posterior, and least formula size among the best."""

from __future__ import annotations

from fractions import Fraction
from random import Random

import pytest

from calibrant.dsl.formulas.operators import STANDARD_OPERATORS
from calibrant.dsl.formulas.text import STANDARD
from calibrant.dsl.replayscm.extensions.reference import Mechanisms, posterior_weights
from calibrant.dsl.replayscm.scm import local_function
from calibrant.solvers.formulas.lookup import formula_for
from calibrant.solvers.replayscm.noise.best_map import best_map
from calibrant.solvers.replayscm.noise.posterior import Posterior
from tests.support.replayscm.extensions.random_items import random_class, random_member, random_worlds


def _size(mechanisms: Mechanisms) -> int:
    sizes = (formula_for(f.table, f.parents or ("A",), STANDARD_OPERATORS).size for f in mechanisms.values())
    return sum(sizes)


@pytest.mark.parametrize("rate", [Fraction(0), Fraction(1, 10), Fraction(2, 5)])
@pytest.mark.parametrize("num_hidden", [0, 1])
def test_best_and_smallest_of_all_members(rate: Fraction, num_hidden: int) -> None:
    rng = Random(f"{rate} {num_hidden}")
    for _ in range(4):
        scm_class = random_class(
            rng, 3 + num_hidden, num_roots=1 + num_hidden, num_hidden=num_hidden, max_parents=2 - num_hidden, rate=rate
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
