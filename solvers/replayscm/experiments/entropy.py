"""Entropy of a posterior over SCMs, in bits."""

from __future__ import annotations

from fractions import Fraction
from math import log2
from random import Random
from statistics import fmean, stdev
from typing import NamedTuple

from calibrant.dsl.replayscm.extensions.extension import Prior
from calibrant.solvers.replayscm.hidden.mass import count_members, exact_mass
from calibrant.solvers.replayscm.hidden.members import posterior_sampler
from calibrant.solvers.replayscm.noise.posterior import Posterior

NUM_DRAWS = 256  # the logarithms of posteriors spread over a few bits: a standard error of about 0.2


class Bits(NamedTuple):
    """An entropy.

    error: its standard error; 0 where it is exact
    """

    value: float
    error: float


def posterior_bits(posterior: Posterior, seed: str, num_draws: int = NUM_DRAWS) -> Bits:
    """Return the entropy of a posterior; `ValueError` for an empty one.

    Exact by counting without noise under a uniform prior; else the mean surprise of drawn members, which is unbiased.
    """
    scm_class = posterior.scm_class
    if scm_class.noise.is_silent and scm_class.prior is Prior.UNIFORM:
        members = count_members(posterior)
        if not members:
            raise ValueError("no SCM has positive posterior")
        return Bits(log2(members), 0.0)
    rng, sampler = Random(seed), posterior_sampler(posterior)
    whole = _log2(exact_mass(posterior))
    surprises = []
    for _ in range(num_draws):
        member = sampler.draw(rng)
        surprises.append(whole - _log2(posterior.likelihood(member)))  # prior included
    return Bits(fmean(surprises), stdev(surprises) / num_draws**0.5)


def _log2(value: Fraction) -> float:
    # of numerator and denominator apart: their quotient may underflow
    return log2(value.numerator) - log2(value.denominator)
