"""Exact masses by tables of placed variables against the sum over Moebius weights, and against every SCM."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import prod
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant.dsl.replayscm.disclosure import HiddenOrder
from calibrant.dsl.replayscm.extensions.extension import NOISE_FREE, NoiseKind, NoiseModel
from calibrant.solvers.acyclic.count import total
from calibrant.solvers.replayscm.noise import subset_tables
from calibrant.solvers.replayscm.noise.posterior import Posterior
from calibrant.solvers.replayscm.noise.subset_tables import exact_mass_by_tables, sum_by_sinks
from tests.support.effort import examples
from tests.support.replayscm.extensions.random_items import random_class, random_member, random_worlds

GRIDS = [
    NoiseModel(NoiseKind.RATE, ((Fraction(1, 20), Fraction(1)),)),
    NoiseModel(NoiseKind.SHARED, ((Fraction(0), Fraction(1, 3)), (Fraction(2, 7), Fraction(2, 3)))),
    NoiseModel(NoiseKind.EACH, ((Fraction(1, 6), Fraction(1, 4)), (Fraction(1, 10), Fraction(3, 4)))),
]


@settings(deadline=None, max_examples=examples(40))
@given(
    seed=st.integers(0, 10**6),
    shape=st.sampled_from([(3, 1), (4, 2), (5, 3), (6, 2), (7, 4)]),
    noise=st.sampled_from(GRIDS),
    num_worlds=st.integers(0, 5),
    num_clean=st.integers(0, 2),
)
def test_masses_are_those_of_moebius_weights(
    seed: int, shape: tuple[int, int], noise: NoiseModel, num_worlds: int, num_clean: int
) -> None:
    rng = Random(seed)
    scm_class = replace(random_class(rng, shape[0], max_parents=shape[1]), noise=noise)
    member = random_member(rng, scm_class)
    worlds = random_worlds(rng, scm_class, member, num_worlds + num_clean, 4)
    clean = {id(world) for world in worlds[:num_clean]}
    posterior = Posterior(scm_class).condition(*(replace(w, is_clean=id(w) in clean) for w in worlds))
    expected = sum((term.factor * total(term.weights) for term in posterior.terms()), start=Fraction(0))
    assert exact_mass_by_tables(scm_class, posterior.rows) == expected == posterior.mass


def test_sums_by_sinks_are_those_of_all_acyclic_choices() -> None:
    """Every choice of a parent set for each of three variables, those with a cycle left out."""
    rng = Random(4)
    for _ in range(20):
        chosen = [{parents: rng.randint(0, 9) for parents in range(8) if not parents >> i & 1} for i in range(3)]
        expected = sum(
            prod(chosen[i][parents] for i, parents in enumerate(choice))
            for choice in product(*chosen)
            if _has_order(choice)
        )
        # weight within a set of the other two variables, whose bits close up
        weights = [
            [sum(weight for parents, weight in options.items() if parents & ~placed == 0) for placed in _others(i)]
            for i, options in enumerate(chosen)
        ]
        assert sum_by_sinks(weights) == expected


def _others(i: int) -> list[int]:
    """Return the sets of the other two of three variables, ascending."""
    return [placed for placed in range(8) if not placed >> i & 1]


def _has_order(parents: tuple[int, ...]) -> bool:
    placed = 0
    for _ in parents:
        placed |= sum(1 << i for i, mask in enumerate(parents) if mask & ~placed == 0)
    return placed == (1 << len(parents)) - 1


def test_classes_beyond_the_tables_are_left_to_the_general_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = Random(8)
    scm_class = random_class(rng, 5, max_parents=2, rate=Fraction(1, 8))
    scm_class = replace(scm_class, disclosure=HiddenOrder(scm_class.observed, scm_class.roots))
    posterior = Posterior(scm_class).condition(*random_worlds(rng, scm_class, random_member(rng, scm_class), 3, 4))
    mass = posterior.mass
    assert exact_mass_by_tables(replace(scm_class, noise=NOISE_FREE), posterior.rows) is None
    with_hidden = random_class(rng, 5, num_hidden=1, rate=Fraction(1, 8))
    assert exact_mass_by_tables(with_hidden, ()) is None
    monkeypatch.setattr(subset_tables, "MAX_LOOKUP", 1)  # codes are sorted instead
    assert exact_mass_by_tables(scm_class, posterior.rows) == mass
    for limit in ("MAX_COMPONENT", "MAX_BINS"):
        subset_tables.class_layout.cache_clear()
        monkeypatch.setattr(subset_tables, limit, 1)
        assert exact_mass_by_tables(scm_class, posterior.rows) is None
        assert replace(posterior).mass == mass
        monkeypatch.undo()
    subset_tables.class_layout.cache_clear()
