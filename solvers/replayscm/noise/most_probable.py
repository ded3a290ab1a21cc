"""The most probable SCMs: their posterior, and how many there are.

Of a parent set S the best table has the fewest mismatches, whatever the rate below 1/2: the majority of each pattern
or, if that ignores a parent, its cheapest single flip. (A table that is constant along one argument witnesses each
other argument twice, so after one flip it depends on all; any other table differs somewhere, at no less cost.)

Numbers come from polynomials in the mismatches, packed into integers, so that ties are counted without listing
tables. A candidate is a pair of prior weight and mismatches; of several only those count that no other exceeds in both.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from calibrant.dsl.replayscm.extensions.noise import NoiseKind
from calibrant.solvers.acyclic.least_cost import Mask, members_of
from calibrant.solvers.replayscm.hidden.columns import HiddenColumn, hidden_columns
from calibrant.solvers.replayscm.noise.local_weights import clean_patterns, invert, pattern_counts
from calibrant.solvers.replayscm.noise.posterior import Posterior, extend_rows
from calibrant.solvers.replayscm.noise.rows import VariableRows

Front: TypeAlias = dict[tuple[Fraction, int], int]
"""(weight, mismatches) of SCMs that none exceeds in both -> how many there are."""


@dataclass(frozen=True)
class MostProbable:
    """The maximum of the posterior.

    share: posterior of each; number: SCMs that have it; mismatches: the fewest among SCMs of positive posterior
    """

    share: Fraction
    number: int
    mismatches: int


def fewest_mismatches(rows: VariableRows, variable: int, masks: Iterable[Mask]) -> dict[Mask, tuple[int, int]]:
    """Return of each parent set the fewest mismatches of a function of exactly these parents, and how many have it.

    Sets without such a function under the clean rows are left out. masks: every subset of a set is listed
    """
    masks = list(masks)
    width = (1 << max(mask.bit_count() for mask in masks)) + 1  # no more functions than 2**(2**k)
    polynomials = invert({mask: _polynomial(rows, variable, mask, width) for mask in masks})
    digit = (1 << width) - 1
    fewest = {}
    for mask, polynomial in polynomials.items():
        if polynomial:
            # after the inversion digits are numbers of functions, none negative: the lowest that is not 0 counts
            place = ((polynomial & -polynomial).bit_length() - 1) // width
            fewest[mask] = place, polynomial >> place * width & digit
    return fewest


def _polynomial(rows: VariableRows, variable: int, parents: Mask, width: int) -> int:
    """Sum of z**mismatches over all functions of the parents, for z = 2**width."""
    clean = clean_patterns(rows, variable, parents)
    if clean is None:
        return 0
    product, counts = 1, pattern_counts(rows, variable, parents)
    for pattern, (zeros, ones) in counts.items():
        value = clean.get(pattern)
        as_zero = 0 if value == 1 else 1 << width * ones
        as_one = 0 if value == 0 else 1 << width * zeros
        product *= as_zero + as_one
    return product << (1 << parents.bit_count()) - len(counts.keys() | clean.keys())


def most_probable(posterior: Posterior) -> MostProbable:
    """Return the maximum of the posterior, over every column of the hidden variables; the mass must be positive.

    Sums over layers of DAGs: up to 3**m states for m endogenous variables.
    """
    fronts = [_column_front(posterior, columns) for columns in hidden_columns(posterior.scm_class, posterior.words)]
    together = _pruned(_merged(fronts))
    values: dict[Fraction, int] = {}
    for (weight, mismatches), number in together.items():
        value = weight * rate_factor(posterior, mismatches)
        values[value] = values.get(value, 0) + number
    # pairs that differ may have equal posterior: their numbers add up
    best = max(values)
    return MostProbable(best / posterior.mass, values[best], min(mismatches for _, mismatches in together))


def rate_factor(posterior: Posterior, mismatches: int) -> Fraction:
    """Return the probability of a number of mismatches; 1 where rates are summed out for each variable already."""
    if posterior.scm_class.noise.kind is NoiseKind.EACH:
        return Fraction(1)
    cells = sum(rows.num_cells for rows in posterior.local_rows.values())
    grid = posterior.scm_class.noise.grid
    return sum((p * e**mismatches * (1 - e) ** (cells - mismatches) for e, p in grid), start=Fraction(0))


def _column_front(posterior: Posterior, columns: Sequence[HiddenColumn]) -> Front:
    scm_class = posterior.scm_class
    options: dict[int, dict[Mask, tuple[Fraction, int, int]]] = {}
    for v, local in posterior.local_rows.items():
        rows = extend_rows(local, columns)
        options[v] = {}
        for mask, (mismatches, number) in fewest_mismatches(rows, v, posterior.masks[v]).items():
            weight = scm_class.parent_weights[mask.bit_count()]
            if scm_class.noise.kind is NoiseKind.EACH:
                cells, grid = rows.num_cells, scm_class.noise.grid
                weight *= sum((p * e**mismatches * (1 - e) ** (cells - mismatches) for e, p in grid), start=Fraction(0))
                # rates are summed out here; below 1/2 each term falls with mismatches, so the fewest stay best
                mismatches = 0
            if weight and not (scm_class.noise.is_silent and mismatches):
                options[v][mask] = weight, mismatches, number
    for column in columns:
        weight = scm_class.mechanism_weight(scm_class.variables[column.index], column.num_parents)
        options[column.index] = {column.parents: (weight, 0, column.num_functions)}
    roots = sum(1 << scm_class.observed.index(root) for root in scm_class.roots)
    return _Layered(options, roots).completions(0, 0)


class _Layered:
    """Maxima over DAGs by layers: each DAG is met exactly once, so that numbers are right.

    options: variable -> parent set -> weight, mismatches, number of functions
    """

    def __init__(self, options: Mapping[int, Mapping[Mask, tuple[Fraction, int, int]]], roots: Mask) -> None:
        self.options = options
        self.roots = roots
        self.full = sum(1 << v for v in options)
        self._memo: dict[tuple[Mask, Mask], Front] = {}

    def completions(self, placed: Mask, last: Mask) -> Front:
        if placed == self.full:
            return {(Fraction(1), 0): 1}
        key = placed, last
        if key not in self._memo:
            self._memo[key] = _pruned(_merged(self._next_layers(placed, last)))
        return self._memo[key]

    def _next_layers(self, placed: Mask, last: Mask) -> Iterator[Front]:
        fronts = {v: self._fresh(v, placed, last) for v in members_of(self.full & ~placed)}
        able = sum(1 << v for v, front in fronts.items() if front)
        layer = 0
        while True:
            # next non-empty subset of those that can follow: 3**m states (placed, last), up to 4**m steps
            layer = (layer - able) & able
            if not layer:
                return
            product = self.completions(placed | layer, layer)
            for v in members_of(layer):
                product = _product(product, fronts[v])
            yield product

    def _fresh(self, variable: int, placed: Mask, last: Mask) -> Front:
        """Return the front of parent sets among `placed` that touch the last layer; any set for the first layer."""
        available = placed | self.roots
        candidates = [
            {(weight, mismatches): number}
            for mask, (weight, mismatches, number) in self.options[variable].items()
            if not mask & ~available and (mask & last or not last)
        ]
        return _pruned(_merged(candidates))


def _merged(fronts: Iterable[Front]) -> Front:
    merged: Front = {}
    for front in fronts:
        for key, number in front.items():
            merged[key] = merged.get(key, 0) + number
    return merged


def _product(first: Front, second: Front) -> Front:
    product: Front = {}
    for (weight, mismatches), number in first.items():
        for (other_weight, other_mismatches), other_number in second.items():
            key = weight * other_weight, mismatches + other_mismatches
            product[key] = product.get(key, 0) + number * other_number
    return product


def _pruned(front: Front) -> Front:
    """Drop what another exceeds: by mismatches, then by weight, only growing weights stay."""
    pruned: Front = {}
    top = Fraction(0)
    # exceeded in both means less probable at every rate below 1/2
    for weight, mismatches in sorted(front, key=lambda key: (key[1], -key[0])):
        if weight > top:
            pruned[weight, mismatches] = front[weight, mismatches]
            top = weight
    return pruned
