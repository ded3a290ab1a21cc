"""Columns of hidden variables under which the most probable SCM lies, noise-free: by kinds, best bounds first.

The posterior of the best SCM depends on nothing but the parent sets that fit under a column, and of these on the least
ones: under both priors a smaller set weighs as much or more. So one column of each kind is compared.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from fractions import Fraction
from math import prod
from typing import NamedTuple

import numpy as np

from calibrant.solvers.acyclic.least import Mask
from calibrant.solvers.budget import BudgetSpent
from calibrant.solvers.replayscm.hidden.columns import HiddenColumn
from calibrant.solvers.replayscm.hidden.grouped import ColumnGroups, column_groups
from calibrant.solvers.replayscm.noise.posterior import Posterior


class Fit(NamedTuple):
    """Parent sets that fit under a column: of the hidden variables, and the least ones of each observed variable."""

    hidden: tuple[Mask, ...]
    children: frozenset[tuple[int, frozenset[Mask]]]


def best_fitting_columns(
    posterior: Posterior, best_value: Callable[[Sequence[HiddenColumn]], Fraction], max_kinds: int
) -> Iterator[tuple[HiddenColumn, ...]]:
    """Yield the columns under which the posterior has its maximum, negations apart.

    best_value: largest posterior weight of an SCM under a column. `BudgetSpent` if more than `max_kinds` are compared
    """
    first: dict[Fit, tuple[HiddenColumn, ...]] = {}
    for fit, part, column in columns_by_fit(posterior):
        if fit not in first:
            first[fit] = part.hidden_columns(column)
    bounds = {fit: _weight_bound(posterior, fit, columns) for fit, columns in first.items()}
    values: dict[Fit, Fraction] = {}
    top = Fraction(0)
    for fit in sorted(first, key=bounds.__getitem__, reverse=True):
        if not bounds[fit] or bounds[fit] < top:
            break
        if len(values) == max_kinds:
            raise BudgetSpent(f"more than {max_kinds:,} kinds of columns of hidden variables; compared are that many")
        values[fit] = best_value(first[fit])
        top = max(top, values[fit])
    for fit, part, column in columns_by_fit(posterior):
        if values.get(fit) == top > 0:
            yield part.hidden_columns(column)


def columns_by_fit(posterior: Posterior) -> Iterator[tuple[Fit, ColumnGroups, int]]:
    """Yield every column, negations apart, with what fits under it.

    A column is given by its groups and its number there (`ColumnGroups.hidden_columns`).
    """
    for part in column_groups(posterior):
        fits = {v: [_least_sets(options) for options in listed] for v, listed in part.options.items()}
        for key, rows in part.groups.items():
            others = [(v, fits[v][place]) for v, place in zip(part.others, key, strict=True)]
            for row in rows:
                fit = Fit(part.parents, frozenset([*others, (part.last, fits[part.last][part.last_signatures[row]])]))
                for column in np.flatnonzero(part.column_places == row).tolist():
                    yield fit, part, column


def _least_sets(masks: Collection[Mask]) -> frozenset[Mask]:
    return frozenset(mask for mask in masks if not any(least & mask == least != mask for least in masks))


def _weight_bound(posterior: Posterior, fit: Fit, columns: Sequence[HiddenColumn]) -> Fraction:
    """Return the prior weight of the best parent sets that fit, cyclic or not."""
    scm_class = posterior.scm_class
    hidden = (scm_class.mechanism_weight(scm_class.variables[c.index], c.num_parents) for c in columns)
    weights = (
        max((scm_class.parent_weights[mask.bit_count()] for mask in masks), default=Fraction(0))
        for _, masks in fit.children
    )
    return prod([*hidden, *weights], start=Fraction(1))
