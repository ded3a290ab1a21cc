"""Columns of the most probable SCM against weighting every column that fits."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import partial
from random import Random

import pytest

from calibrant.dsl.formulas.text import STANDARD
from calibrant.dsl.replayscm.extensions.extension import Prior
from calibrant.solvers.outcome import BudgetSpent
from calibrant.solvers.replayscm.hidden.mass import best_fitting_columns, columns_by_fit, feasible_columns
from calibrant.solvers.replayscm.noise.best_map import _best_value
from calibrant.solvers.replayscm.noise.posterior import Posterior
from tests.support.replayscm.extensions.random_items import random_class, random_member, random_worlds


@pytest.mark.parametrize(("observed", "hidden", "stated"), [(5, 1, None), (5, 1, 3), (5, 2, 2)])
def test_columns_of_the_maximum(observed: int, hidden: int, stated: int | None) -> None:
    rng = Random(f"{observed} {hidden} {stated}")
    num_left_out = 0
    for _ in range(4):
        scm_class = random_class(rng, observed, num_hidden=hidden, stated=stated, rate=Fraction(0))
        scm_class = replace(scm_class, prior=Prior.BY_PARENTS)
        worlds = random_worlds(rng, scm_class, random_member(rng, scm_class), 7, 4)
        posterior = Posterior(scm_class).condition(*worlds)
        values = {repr(c): _best_value(posterior, STANDARD, c) for c in feasible_columns(posterior)}
        top = max(values.values())
        chosen = best_fitting_columns(posterior, partial(_best_value, posterior, STANDARD), 1_000)
        assert sorted(map(repr, chosen)) == sorted(c for c, value in values.items() if value == top > 0)
        num_left_out += sum(value < top for value in values.values())
    assert num_left_out


def test_kinds_are_fewer_than_columns_and_bounded() -> None:
    rng = Random(5)
    scm_class = replace(random_class(rng, 5, num_hidden=2, stated=2, rate=Fraction(0)), prior=Prior.BY_PARENTS)
    posterior = Posterior(scm_class).condition(*random_worlds(rng, scm_class, random_member(rng, scm_class), 3, 3))
    listed = list(columns_by_fit(posterior))
    assert len({fit for fit, _, _ in listed}) < len(listed)
    with pytest.raises(BudgetSpent, match="more than 0 kinds"):
        list(best_fitting_columns(posterior, partial(_best_value, posterior, STANDARD), 0))
