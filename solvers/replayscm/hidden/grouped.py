"""The mass with hidden variables, noise-free: columns grouped by what all children but one see of them.

The sum over acyclic choices is linear in the weights of each child. So columns that look alike to all children but one
are summed in one go: the last child's weights are added up, each times the functions of its column.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import lcm, prod

import numpy as np

from calibrant.solvers.acyclic.count import Weights, total
from calibrant.solvers.acyclic.least_cost import Mask
from calibrant.solvers.budget import BudgetSpent
from calibrant.solvers.replayscm.hidden.columns import hidden_parent_sets
from calibrant.solvers.replayscm.hidden.patterns import ChildView, JointColumns, child_view, joint_columns
from calibrant.solvers.replayscm.noise.local_weights import invert, scaled_rate, table_sum
from calibrant.solvers.replayscm.noise.posterior import Posterior

MAX_CELLS = 1 << 30  # columns x parent sets
MAX_TERMS = 1 << 26  # sums x 3**m

_SILENT = scaled_rate(Fraction(0))


@dataclass(frozen=True)
class GroupedMass:
    """A mass and its effort.

    num_columns: combinations of columns; num_signatures: different ones to all children; num_sums: over acyclic choices
    """

    mass: Fraction
    num_columns: int
    num_signatures: int
    num_sums: int


def grouped_mass(posterior: Posterior) -> GroupedMass:
    """Return the mass of a noise-free class with hidden variables; `BudgetSpent` states both numbers."""
    if not posterior.scm_class.noise.is_silent:
        raise ValueError("columns weigh differently under noise; they are summed one by one")
    parts = list(_parts(posterior))
    mass = sum((part.mass for part in parts), start=Fraction(0))
    return GroupedMass(
        mass,
        sum(part.num_columns for part in parts),
        sum(part.num_signatures for part in parts),
        sum(part.num_sums for part in parts),
    )


def _parts(posterior: Posterior) -> Iterator[GroupedMass]:
    """Yield the mass of each choice of the hidden variables' parents."""
    scm_class = posterior.scm_class
    names = list(scm_class.hidden_parents)
    for parents in product(*(hidden_parent_sets(scm_class, name) for name in names)):
        weights = (scm_class.mechanism_weight(n, m.bit_count()) for n, m in zip(names, parents, strict=True))
        prior = prod(weights, start=Fraction(1))
        columns = joint_columns(parents, posterior.words)
        num_sets = sum(len(masks) for masks in posterior.masks.values())
        if len(columns) * num_sets > MAX_CELLS:
            raise BudgetSpent(f"{len(columns):,} columns x {num_sets:,} parent sets; budget {MAX_CELLS:,}")
        part = _ChosenParents(posterior, parents, columns).grouped()
        yield GroupedMass(part.mass * prior, part.num_columns, part.num_signatures, part.num_sums)


class _ChosenParents:
    def __init__(self, posterior: Posterior, parents: Sequence[Mask], columns: JointColumns) -> None:
        scm_class = posterior.scm_class
        self.posterior = posterior
        self.columns = columns
        self.hidden = [scm_class.variables.index(name) for name in scm_class.hidden_parents]
        self.hidden_options = {h: {mask: 1} for h, mask in zip(self.hidden, parents, strict=True)}
        self.roots = sum(1 << scm_class.observed.index(root) for root in scm_class.roots)
        scale = lcm(*(weight.denominator for weight in scm_class.parent_weights))
        self.prior = [int(weight * scale) for weight in scm_class.parent_weights]
        self.scale = scale ** len(posterior.local_rows)
        hidden_bits = sum(1 << h for h in self.hidden)
        self.visible = {
            v: {mask: table_sum(rows, v, mask, _SILENT) for mask in posterior.masks[v] if not mask & hidden_bits}
            for v, rows in posterior.local_rows.items()
        }

    def grouped(self) -> GroupedMass:
        local, masks = self.posterior.local_rows, self.posterior.masks
        views = {v: child_view(rows, v, masks[v], self.columns, self.hidden) for v, rows in local.items()}
        signatures, options = {}, {}
        for v, view in views.items():
            rows, places = np.unique(view.exponents, axis=0, return_inverse=True)
            signatures[v] = places.ravel()
            options[v] = [self._options(v, view, row) for row in rows]
        children = [v for v in views if len(options[v]) > 1]
        if not children:
            return self._sum(options, {}, int(self.columns.numbers.sum()))
        last = max(children, key=lambda v: len(options[v]))
        others = [v for v in children if v != last]
        keys = np.stack([signatures[v] for v in (*others, last)], axis=1)
        alike, places = np.unique(keys, axis=0, return_inverse=True)
        numbers = np.zeros(len(alike), np.int64)
        np.add.at(numbers, places.ravel(), self.columns.numbers)
        return self._grouped_sums(options, others, last, alike.tolist(), numbers.tolist())

    def _grouped_sums(
        self,
        options: dict[int, list[dict[Mask, int]]],
        others: Sequence[int],
        last: int,
        alike: list[list[int]],
        numbers: list[int],
    ) -> GroupedMass:
        """alike: signatures of the other children, then of the last; ascending, so that groups follow each other"""
        groups: dict[tuple[int, ...], dict[Mask, int]] = {}
        for (*key, own_signature), number in zip(alike, numbers, strict=True):
            added = groups.setdefault(tuple(key), {})
            for mask, weight in options[last][own_signature].items():
                added[mask] = added.get(mask, 0) + number * weight
        terms = len(groups) * 3 ** len(options)
        if terms > MAX_TERMS:
            raise BudgetSpent(f"{len(groups):,} sums of 3**{len(options)} terms; budget {MAX_TERMS:,}")
        fixed = {v: listed[0] for v, listed in options.items() if v != last and v not in others}
        mass = 0
        for signature, added in groups.items():
            chosen = {v: options[v][place] for v, place in zip(others, signature, strict=True)}
            mass += total(Weights(fixed | chosen | {last: added} | self.hidden_options, self.roots))
        return GroupedMass(Fraction(mass, self.scale), len(self.columns), len(alike), len(groups))

    def _sum(self, options: dict[int, list[dict[Mask, int]]], chosen: dict[int, int], number: int) -> GroupedMass:
        fixed = {v: listed[chosen.get(v, 0)] for v, listed in options.items()}
        mass = number * total(Weights(fixed | self.hidden_options, self.roots))
        return GroupedMass(Fraction(mass, self.scale), len(self.columns), 1, 1)

    def _options(self, variable: int, view: ChildView, exponents: np.ndarray) -> dict[Mask, int]:
        """Return the weights of a child's parent sets under one signature."""
        sums = dict(self.visible[variable])
        for mask in self.posterior.masks[variable]:
            sums.setdefault(mask, 0)
        for mask, exponent in zip(view.masks, exponents.tolist(), strict=True):
            if exponent >= 0:
                sums[mask] = 1 << exponent
        weights = invert({mask: sums[mask] for mask in self.posterior.masks[variable]})
        return {mask: weight * self.prior[mask.bit_count()] for mask, weight in weights.items() if weight}
