"""Unbiased draws from a posterior of extended items, from exact weights: rate, columns, DAG, then tables.

A table's bits are independent given its parents T, each pattern by its two terms; those that do not depend on all of T
are drawn again. A set is drawn in proportion to w(S), so on the mean no more tables are drawn than there are sets.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from fractions import Fraction
from functools import cached_property
from math import lcm
from random import Random

from calibrant.dsl.formulas.table import TruthTable, support
from calibrant.dsl.replayscm.extensions.extension import NoiseKind
from calibrant.dsl.replayscm.extensions.reference import Mechanisms
from calibrant.dsl.replayscm.scm import LocalFunction
from calibrant.solvers.acyclic.count import total
from calibrant.solvers.acyclic.draws import Draws, draw_below, draw_weighted
from calibrant.solvers.acyclic.least import Mask, members_of
from calibrant.solvers.replayscm.hidden.columns import HiddenColumn, hidden_columns
from calibrant.solvers.replayscm.members import sample_completion
from calibrant.solvers.replayscm.noise.local_weights import (
    Rate,
    VariableRows,
    clean_patterns,
    pattern_counts,
    scaled_rate,
    set_weights,
)
from calibrant.solvers.replayscm.noise.posterior import Posterior, Term, extend_rows


class PosteriorSampler:
    """Sampler for one posterior; what draws share is computed once. `ValueError` where the mass is 0."""

    def __init__(self, posterior: Posterior) -> None:
        self.posterior = posterior
        self._draws: dict[Hashable, Draws] = {}
        self._rows: dict[Hashable, dict[int, VariableRows]] = {}
        self._rates: dict[tuple[Hashable, int, Mask], list[tuple[Rate, int]]] = {}

    @cached_property
    def _terms(self) -> list[tuple[tuple[HiddenColumn, ...], Term, int]]:
        """Every summand of the mass with its weight as an integer, by a common denominator."""
        columns = hidden_columns(self.posterior.scm_class, self.posterior.words)
        listed = [(chosen, term) for chosen in columns for term in self.posterior.column_terms(chosen)]
        weights = [term.factor * total(term.weights) for _, term in listed]
        if not any(weights):
            raise ValueError("the posterior is empty")
        # draws are by integers below a total: exact, where doubles would lose small terms
        scale = lcm(*(weight.denominator for weight in weights))
        exact = [int(weight * scale) for weight in weights]
        return [(chosen, term, weight) for (chosen, term), weight in zip(listed, exact, strict=True) if weight]

    @cached_property
    def _whole(self) -> int:
        return sum(weight for _, _, weight in self._terms)

    def draw(self, rng: Random) -> Mechanisms:
        """Return one SCM with probability proportional to prior x P(rows | contexts)."""
        return self.draw_with_rates(rng)[0]

    def draw_with_rates(self, rng: Random) -> tuple[Mechanisms, dict[str, Fraction]]:
        """Return one SCM and the rate of each observed endogenous variable."""
        scm_class = self.posterior.scm_class
        place, columns, term = self.choose_term(rng)
        draws = self._draws.setdefault(place, Draws(term.weights))
        chosen = draws.draw(rng)
        names = scm_class.variables
        if place not in self._rows:
            self._rows[place] = {v: extend_rows(rows, columns) for v, rows in self.posterior.local_rows.items()}
        rates, mechanisms = dict[str, Fraction](), dict[str, LocalFunction]()
        for v, mask in sorted(chosen.items()):
            if names[v] in scm_class.hidden_parents:
                continue
            rate = self._rate(rng, place, v, mask, term.rate_index)
            rates[names[v]] = Fraction(rate.flip, rate.base)
            table = _draw_table(rng, self._rows[place][v], v, mask, rate)
            mechanisms[names[v]] = LocalFunction(tuple(names[u] for u in members_of(mask)), table)
        negated = set()
        for column in columns:
            values = _pattern_values(column)
            # a listed column stands for itself and its negation, which weigh the same
            if values and rng.getrandbits(1):
                values = {row: 1 - bit for row, bit in values.items()}
                negated.add(names[column.index])
            size = column.parents.bit_count()
            care, value = sum(1 << row for row in values), sum(bit << row for row, bit in values.items())
            function = TruthTable(size, sample_completion(rng, size, care, value))
            parents = tuple(names[u] for u in members_of(column.parents))
            mechanisms[names[column.index]] = LocalFunction(parents, function)
        return {v: negate_arguments(f, negated) for v, f in mechanisms.items()}, rates

    def choose_term(self, rng: Random) -> tuple[Hashable, tuple[HiddenColumn, ...], Term]:
        """Return a summand of the mass by its weight, with a key for what its draws share."""
        places = ((place, weight) for place, (_, _, weight) in enumerate(self._terms))
        place: int = draw_weighted(rng, places, self._whole)
        columns, term, _ = self._terms[place]
        return place, columns, term

    def _rate(self, rng: Random, place: Hashable, variable: int, mask: Mask, rate_index: int) -> Rate:
        grid = self.posterior.scm_class.noise.grid
        if self.posterior.scm_class.noise.kind is not NoiseKind.EACH:
            return scaled_rate(grid[rate_index][0])
        key = place, variable, mask
        if key not in self._rates:
            base = lcm(*(rate.denominator for rate, _ in grid))
            scale = lcm(*(prior.denominator for _, prior in grid))
            rows = self._rows[place][variable]
            options = []
            for rate, prior in grid:
                scaled = scaled_rate(rate, base)
                # given the parent set, a rate weighs p(e) w_e(S); its inversion needs subsets of S alone
                subsets = [subset for subset in self.posterior.masks[variable] if not subset & ~mask]
                options.append((scaled, int(prior * scale) * set_weights(rows, variable, subsets, scaled)[mask]))
            self._rates[key] = options
        options = self._rates[key]
        chosen: Rate = draw_weighted(rng, options, sum(weight for _, weight in options))
        return chosen


def _draw_table(rng: Random, rows: VariableRows, variable: int, mask: Mask, rate: Rate) -> TruthTable:
    """Return a function that depends on all of the parents, by the probability of its rows."""
    places = members_of(mask)
    counts, clean = pattern_counts(rows, variable, mask), clean_patterns(rows, variable, mask)
    assert clean is not None
    terms: list[tuple[int, int]] = []
    for row in range(1 << len(places)):
        pattern = sum((row >> i & 1) << place for i, place in enumerate(places))
        zeros, ones = counts.get(pattern, (0, 0))
        value = clean.get(pattern)
        as_zero = 0 if value == 1 else rate.flip**ones * rate.stay**zeros
        as_one = 0 if value == 0 else rate.flip**zeros * rate.stay**ones
        terms.append((as_zero, as_one))
    while True:
        bits = sum((draw_below(rng, zeros + ones) >= zeros) << row for row, (zeros, ones) in enumerate(terms))
        # g(S) / w(S) trials on the mean; g(S) is at most the sum of all w, so over sets drawn by w at most their number
        table = TruthTable(len(places), bits)
        if len(support(table)) == len(places):
            return table


def _pattern_values(column: HiddenColumn) -> dict[int, int]:
    places = members_of(column.parents)
    return {sum((word >> u & 1) << i for i, u in enumerate(places)): bit for word, bit in column.values.items()}


def negate_arguments(function: LocalFunction, negated: Mapping[str, object] | set[str]) -> LocalFunction:
    """Return a function of the negations of some arguments."""
    shift = sum(1 << i for i, parent in enumerate(function.parents) if parent in negated)
    if not shift:
        return function
    bits = sum((function.table.bits >> (row ^ shift) & 1) << row for row in range(1 << len(function.parents)))
    return LocalFunction(function.parents, TruthTable(len(function.parents), bits))
