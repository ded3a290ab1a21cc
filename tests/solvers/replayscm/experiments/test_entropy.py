"""Posterior entropies against listing all SCMs."""

from __future__ import annotations

from math import log2

import pytest

from calibrant.dsl.replayscm.episode import ScmEpisode, steps_evidence, task_class
from calibrant.dsl.replayscm.extensions.reference import posterior_weights
from calibrant.solvers.replayscm.experiments.shares import posterior_bits
from calibrant.solvers.replayscm.noise.posterior import Posterior
from tests.support.replayscm.extensions.problems import small_problem


@pytest.mark.parametrize(("rate", "num_hidden"), [(None, 0), ("1/10", 0), (None, 1)])
def test_bits_are_those_of_the_listed_posterior(rate: str | None, num_hidden: int) -> None:
    for seed in range(2):
        problem = small_problem(seed, rate=rate, num_hidden=num_hidden)
        scm_class, evidence = task_class(problem.task), steps_evidence(ScmEpisode(problem).steps)
        weights = [float(weight) for _, weight in posterior_weights(scm_class, evidence) if weight]
        whole = sum(weights)
        expected = -sum(weight / whole * log2(weight / whole) for weight in weights)
        bits = posterior_bits(Posterior(scm_class).condition(*evidence), "bits")
        assert bits.value == pytest.approx(expected, abs=max(1e-9, 5 * bits.error))
