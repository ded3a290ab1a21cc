"""Draws of members with hidden variables, noise-free: parents, group, column, DAG, tables; all by exact weights."""

from __future__ import annotations

from collections.abc import Hashable
from fractions import Fraction
from functools import cached_property
from math import lcm
from random import Random

import numpy as np

from calibrant.solvers.acyclic.draws import draw_below, draw_weighted
from calibrant.solvers.replayscm.hidden.columns import HiddenColumn
from calibrant.solvers.replayscm.hidden.grouped import ColumnGroups, column_groups
from calibrant.solvers.replayscm.noise.posterior import Posterior, Term
from calibrant.solvers.replayscm.noise.sampling import PosteriorSampler


class GroupedSampler(PosteriorSampler):
    """Sampler for a noise-free posterior with hidden variables, which sums groups and not columns."""

    @cached_property
    def _parts(self) -> list[tuple[ColumnGroups, int]]:
        """Each choice of hidden parents with its weight as an integer."""
        # choices of hidden parents are disjoint, so that their masses add up
        parts = list(column_groups(self.posterior))
        scale = lcm(*(part.factor.denominator for part in parts))
        weights = [int(part.mass * scale) for part in parts]
        if not any(weights):
            raise ValueError("the posterior is empty")
        return [(part, weight) for part, weight in zip(parts, weights, strict=True) if weight]

    @property
    def mass(self) -> Fraction:
        """The mass that draws are in proportion to."""
        return sum((part.mass for part, _ in self._parts), start=Fraction(0))

    @cached_property
    def _row_totals(self) -> dict[tuple[int, tuple[int, ...]], list[tuple[int, int]]]:
        return {}

    @cached_property
    def _column_terms(self) -> dict[tuple[int, int], tuple[tuple[HiddenColumn, ...], Term]]:
        return {}

    def choose_term(self, rng: Random) -> tuple[Hashable, tuple[HiddenColumn, ...], Term]:
        """Return the summand of one column, drawn through its group."""
        whole = sum(weight for _, weight in self._parts)
        place: int = draw_weighted(rng, ((i, weight) for i, (_, weight) in enumerate(self._parts)), whole)
        part = self._parts[place][0]
        totals = part.group_totals
        key: tuple[int, ...] = draw_weighted(rng, totals.items(), sum(totals.values()))
        if (place, key) not in self._row_totals:
            # one DAG sum a row, and only in groups that a draw has entered
            self._row_totals[place, key] = part.row_totals(key)
        rows = self._row_totals[place, key]
        row: int = draw_weighted(rng, rows, sum(weight for _, weight in rows))
        # columns of a row differ in nothing but their numbers of functions
        members = np.flatnonzero(part.column_places == row)
        mark = draw_below(rng, part.numbers[row])
        column = int(members[np.searchsorted(np.cumsum(part.columns.numbers[members]), mark, side="right")])
        if (place, column) not in self._column_terms:
            # noise-free: a single rate, 0
            term = Term(part.factor, part.row_weights(row), 0)
            self._column_terms[place, column] = part.hidden_columns(column), term
        return (place, column), *self._column_terms[place, column]


def posterior_sampler(posterior: Posterior) -> PosteriorSampler:
    """Return the cheapest sampler for a posterior."""
    if posterior.scm_class.hidden_parents and posterior.scm_class.noise.is_silent:
        return GroupedSampler(posterior)
    return PosteriorSampler(posterior)
