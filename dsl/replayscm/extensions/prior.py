"""Priors over mechanisms by their number of functional parents."""

from __future__ import annotations

from enum import Enum
from fractions import Fraction
from functools import cache
from math import comb


class Prior(Enum):
    """uniform: every SCM of the class alike. by_parents: number of parents, then parents, then function uniformly."""

    UNIFORM = "uniform"
    BY_PARENTS = "by_parents"


@cache
def num_essential_functions(num_parents: int) -> int:
    """Return how many Boolean functions depend on all of so many variables: 2, 2, 10, 218, 64594, ..."""
    return sum((-1) ** (num_parents - j) * comb(num_parents, j) * 2 ** (2**j) for j in range(num_parents + 1))


def parent_weights(prior: Prior, num_variables: int, max_parents: int) -> tuple[Fraction, ...]:
    """Return the weight of one mechanism by its number of functional parents, 0 to `max_parents`.

    num_variables: all variables of the item, hidden ones too
    """
    if prior is Prior.UNIFORM:
        return (Fraction(1),) * (max_parents + 1)
    others = num_variables - 1
    return tuple(
        Fraction(1, comb(others, j) * num_essential_functions(j)) if j <= others else Fraction(0)
        for j in range(max_parents + 1)
    )
