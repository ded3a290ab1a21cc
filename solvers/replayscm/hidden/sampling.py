"""Draws of members with hidden variables, noise-free: group, column, DAG, tables; exact weights."""

from __future__ import annotations

from random import Random

from calibrant.dsl.replayscm.extensions.reference import Mechanisms
from calibrant.solvers.replayscm.noise.posterior import Posterior
from calibrant.solvers.replayscm.noise.sampling import PosteriorSampler


class GroupedSampler:
    """Sampler for a noise-free posterior with hidden variables."""

    def __init__(self, posterior: Posterior) -> None:
        self._sampler = PosteriorSampler(posterior)

    def draw(self, rng: Random) -> Mechanisms:
        """Return one member with probability proportional to its prior weight."""
        return self._sampler.draw(rng)
