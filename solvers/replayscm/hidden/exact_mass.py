"""The exact mass of any extended class, by the cheapest way: grouped columns where there is no noise."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from calibrant.dsl.replayscm.extensions.extension import Prior
from calibrant.solvers.replayscm.hidden.grouped import grouped_mass
from calibrant.solvers.replayscm.noise.posterior import Posterior


def exact_mass(posterior: Posterior) -> Fraction:
    """Return the mass; `BudgetSpent` where hidden columns are too many."""
    # groups need weights that are a power of 2 or 0; under noise nearly every column weighs differently
    if posterior.scm_class.hidden_parents and posterior.scm_class.noise.is_silent:
        return grouped_mass(posterior).mass
    return posterior.mass


def count_members(posterior: Posterior) -> int:
    """Return how many SCMs have positive posterior, hidden columns grouped where there is no noise."""
    if not posterior.scm_class.hidden_parents or not posterior.scm_class.noise.is_silent:
        return posterior.num_members
    # every SCM weighs 1 under the uniform prior, so that the mass is their number
    uniform = replace(posterior.scm_class, prior=Prior.UNIFORM)
    return int(exact_mass(replace(posterior, scm_class=uniform)))
