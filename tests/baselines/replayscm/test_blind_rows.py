"""Rows that noise-blind keeps: by halves as one after the other."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from random import Random

import pytest

from calibrant.baselines.replayscm.rows import _consistent_rows
from calibrant.dsl.replayscm.extensions.extension import NOISE_FREE
from calibrant.dsl.replayscm.extensions.reference import EvidenceWorld
from calibrant.solvers.replayscm.hidden.mass import exact_mass
from calibrant.solvers.replayscm.noise.posterior import Posterior
from tests.support.replayscm.extensions.random_items import random_class, random_member, random_worlds


@pytest.mark.parametrize("num_hidden", [0, 1])
def test_rows_are_kept_as_one_after_the_other(num_hidden: int) -> None:
    num_rejected = 0
    for seed in range(5):
        rng = Random(f"blind {num_hidden} {seed}")
        scm_class = random_class(rng, 4, num_hidden=num_hidden, stated=2, rate=Fraction(1, 5))
        worlds = random_worlds(rng, scm_class, random_member(rng, scm_class), 4, 4)
        rows = [EvidenceWorld(world.constants, (row,)) for world in worlds for row in world.rows]
        # rows of two SCMs contradict each other, whatever flips were drawn
        rows += [replace(row, rows=(row.rows[0][::-1],)) for row in rows if not row.constants]
        start = posterior = Posterior(replace(scm_class, noise=NOISE_FREE))
        expected = []
        for row in rows:
            if exact_mass(posterior.condition(row)):
                posterior = posterior.condition(row)
                expected.append(row)
        assert _consistent_rows(start, rows) == expected
        num_rejected += len(rows) - len(expected)
    assert num_rejected
