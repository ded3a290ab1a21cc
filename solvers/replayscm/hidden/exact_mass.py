"""The exact mass of any extended class, by the cheapest way: grouped columns where there is no noise."""

from __future__ import annotations

from fractions import Fraction

from calibrant.solvers.replayscm.hidden.grouped import grouped_mass
from calibrant.solvers.replayscm.noise.posterior import Posterior


def exact_mass(posterior: Posterior) -> Fraction:
    """Return the mass; `BudgetSpent` where hidden columns are too many."""
    if posterior.scm_class.hidden_parents and posterior.scm_class.noise.is_silent:
        return grouped_mass(posterior).mass
    return posterior.mass
