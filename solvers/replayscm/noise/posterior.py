"""The posterior over SCMs of an extended class: masses, edges, noise rates; plain sums over columns and rates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import lcm, prod
from typing import NamedTuple

from calibrant.dsl.replayscm.extensions.extension import NOISE_FREE, MechanismClass, NoiseKind, Prior
from calibrant.dsl.replayscm.extensions.reference import EvidenceWorld, Mechanisms
from calibrant.solvers.acyclic.count import Weights, total
from calibrant.solvers.acyclic.draws import Marginals
from calibrant.solvers.acyclic.least import Mask, members_of
from calibrant.solvers.replayscm.hidden.columns import HiddenColumn, hidden_columns
from calibrant.solvers.replayscm.noise.local_weights import parent_masks, scaled_rate, set_weights
from calibrant.solvers.replayscm.noise.rows import EvidenceRow, VariableRows, evidence_rows, variable_rows
from calibrant.solvers.replayscm.noise.subset_tables import exact_mass_by_tables


class Term(NamedTuple):
    """One summand of the mass: weights of parent sets under one column and one rate.

    factor: of the term: prior of the rate, functions of the columns, common denominators
    rate_index: place in the grid; 0 where rates are summed out for each variable
    """

    factor: Fraction
    weights: Weights
    rate_index: int


@dataclass(frozen=True)
class Posterior:
    """Every SCM of a class, weighted by prior and by the probability of rows."""

    scm_class: MechanismClass
    rows: tuple[EvidenceRow, ...] = ()

    def condition(self, *worlds: EvidenceWorld) -> Posterior:
        """Return the posterior after more rows."""
        return replace(self, rows=(*self.rows, *evidence_rows(self.scm_class, worlds)))

    def condition_rows(self, rows: Sequence[EvidenceRow]) -> Posterior:
        """Return the posterior after more rows, as words."""
        return replace(self, rows=(*self.rows, *rows))

    @cached_property
    def mass(self) -> Fraction:
        """Sum of prior x P(rows | contexts)."""
        by_tables = exact_mass_by_tables(self.scm_class, self.rows)
        if by_tables is not None:
            return by_tables
        return sum((term.factor * total(term.weights) for term in self.terms()), start=Fraction(0))

    @cached_property
    def num_members(self) -> int:
        """Return how many SCMs have positive posterior."""
        # a rate above 0 gives every table positive probability: only clean rows exclude SCMs
        silent = replace(self.scm_class, prior=Prior.UNIFORM, noise=NOISE_FREE)
        is_noisy = self.scm_class.noise.max_rate > 0
        rows = tuple(row for row in self.rows if row.is_clean or not is_noisy)
        return int(Posterior(silent, rows).mass)

    @cached_property
    def edges(self) -> dict[tuple[str, str], Fraction]:
        """Return the posterior probability of each functional parent and child; absent ones have none."""
        sums: Counter[tuple[int, int]] = Counter()
        for term in self.terms():
            marginals = Marginals(term.weights)
            for variable in term.weights.endogenous:
                for mask, weight in marginals.of(variable).items():
                    for parent in members_of(mask):
                        sums[parent, variable] += term.factor * weight  # type: ignore[assignment]
        names = self.scm_class.variables
        return {(names[u], names[v]): Fraction(weight) / self.mass for (u, v), weight in sums.items() if weight}

    @cached_property
    def noise_posterior(self) -> tuple[Fraction, ...]:
        """Return the posterior of each rate of a shared grid."""
        sums = [Fraction(0)] * len(self.scm_class.noise.grid)
        for term in self.terms():
            sums[term.rate_index] += term.factor * total(term.weights)
        return tuple(weight / self.mass for weight in sums)

    def without_children(self, hidden: str) -> Fraction:
        """Return the posterior probability that a hidden variable has no child."""
        sums = Fraction(0)
        bit = 1 << self.scm_class.variables.index(hidden)
        for term in self.terms():
            # no child: the same sum over the sets that leave the variable out
            options = {
                v: {mask: weight for mask, weight in sets.items() if not mask & bit}
                for v, sets in zip(term.weights.endogenous, term.weights.options, strict=True)
            }
            sums += term.factor * total(Weights(options, self.root_mask))
        return sums / self.mass

    def likelihood(self, mechanisms: Mechanisms) -> Fraction:
        """Return prior x P(rows | contexts) of one SCM of the class."""
        index = {variable: i for i, variable in enumerate(self.scm_class.variables)}
        words = [_with_hidden(row.word, self.scm_class, mechanisms, index) for row in self.rows]
        mismatches: Counter[str] = Counter()
        cells: Counter[str] = Counter()
        for row, word in zip(self.rows, words, strict=True):
            for variable in self.scm_class.endogenous:
                bit = index[variable]
                if row.clamped >> bit & 1:
                    continue
                function = mechanisms[variable]
                pattern = sum((word >> index[u] & 1) << i for i, u in enumerate(function.parents))
                is_wrong = (function.table.bits >> pattern ^ word >> bit) & 1
                if row.is_clean and is_wrong:
                    return Fraction(0)
                if not row.is_clean:
                    cells[variable] += 1
                    mismatches[variable] += is_wrong
        prior = prod(
            (self.scm_class.mechanism_weight(v, len(f.parents)) for v, f in mechanisms.items()), start=Fraction(1)
        )
        return prior * noise_likelihood(self.scm_class, cells, mismatches)

    @property
    def words(self) -> tuple[int, ...]:
        """Return the observed values of all rows."""
        return tuple(row.word for row in self.rows)

    @property
    def root_mask(self) -> Mask:
        """Return the roots as a mask of observed variables."""
        return sum(1 << self.scm_class.observed.index(root) for root in self.scm_class.roots)

    @cached_property
    def local_rows(self) -> dict[int, VariableRows]:
        """Return the evidence of each observed endogenous variable."""
        indices = (self.scm_class.observed.index(v) for v in self.scm_class.endogenous)
        return {i: variable_rows(self.rows, i) for i in indices}

    @cached_property
    def masks(self) -> dict[int, list[Mask]]:
        """Return the parent sets of each observed endogenous variable, hidden parents included."""
        index = {variable: i for i, variable in enumerate(self.scm_class.variables)}
        return {
            index[v]: parent_masks([index[u] for u in self.scm_class.admissible_parents(v)], self.scm_class.max_parents)
            for v in self.scm_class.endogenous
        }

    def terms(self) -> Iterator[Term]:
        """Yield the summands of the mass: columns of hidden variables x rates."""
        for columns in hidden_columns(self.scm_class, self.words):
            yield from self.column_terms(columns)

    def column_terms(self, columns: Sequence[HiddenColumn]) -> Iterator[Term]:
        """Yield the summands of one choice of columns, one for each rate that is common to all variables."""
        scm_class, names = self.scm_class, self.scm_class.variables
        rows = {v: extend_rows(local, columns) for v, local in self.local_rows.items()}
        # integers in the sum, all denominators in its factor: exact, and without a gcd at each addition
        scale = lcm(*(weight.denominator for weight in scm_class.parent_weights))
        prior = [int(weight * scale) for weight in scm_class.parent_weights]
        functions = prod(
            (c.num_functions * scm_class.mechanism_weight(names[c.index], c.num_parents) for c in columns),
            start=Fraction(1),
        )
        hidden = {column.index: {column.parents: 1} for column in columns}
        base = functions / scale ** len(rows)
        if scm_class.noise.kind is NoiseKind.EACH:
            options, factor = {}, base
            for v, local in rows.items():
                options[v], divisor = self._mixed(v, local)
                factor /= divisor
            yield self._term(factor, options, prior, hidden, 0)
            return
        cells = sum(local.num_cells for local in rows.values())
        for number, (rate, rate_prior) in enumerate(scm_class.noise.grid):
            scaled = scaled_rate(rate)
            options = {v: set_weights(local, v, self.masks[v], scaled) for v, local in rows.items()}
            yield self._term(base * rate_prior / scaled.base**cells, options, prior, hidden, number)

    def _mixed(self, variable: int, rows: VariableRows) -> tuple[dict[Mask, int], int]:
        """Return weights of parent sets with the rate summed out, and what they are to be divided by."""
        grid = self.scm_class.noise.grid
        base = lcm(*(rate.denominator for rate, _ in grid))
        scale = lcm(*(prior.denominator for _, prior in grid))
        mixed = dict.fromkeys(self.masks[variable], 0)
        # independent rates: a variable's weight is its mixture, so one sum over DAGs instead of |grid|**m
        for rate, prior in grid:
            weights = set_weights(rows, variable, self.masks[variable], scaled_rate(rate, base))
            for mask, weight in weights.items():
                mixed[mask] += int(prior * scale) * weight
        return mixed, scale * base**rows.num_cells

    def _term(
        self,
        factor: Fraction,
        options: Mapping[int, Mapping[Mask, int]],
        prior: Sequence[int],
        hidden: Mapping[int, Mapping[Mask, int]],
        rate_index: int,
    ) -> Term:
        weighted = {
            v: {mask: weight * prior[mask.bit_count()] for mask, weight in sets.items() if weight}
            for v, sets in options.items()
        }
        return Term(factor, Weights(weighted | dict(hidden), self.root_mask), rate_index)


def noise_likelihood(scm_class: MechanismClass, cells: Mapping[str, int], mismatches: Mapping[str, int]) -> Fraction:
    """Return the probability of so many mismatches in the cells of each variable, rates summed out."""
    grid = scm_class.noise.grid
    if scm_class.noise.kind is NoiseKind.EACH:
        return prod(
            (
                sum(
                    (p * e ** mismatches[v] * (1 - e) ** (cells[v] - mismatches[v]) for e, p in grid), start=Fraction(0)
                )
                for v in cells
            ),
            start=Fraction(1),
        )
    wrong, every = sum(mismatches.values()), sum(cells.values())
    return sum((p * e**wrong * (1 - e) ** (every - wrong) for e, p in grid), start=Fraction(0))


def extend_rows(rows: VariableRows, columns: Sequence[HiddenColumn]) -> VariableRows:
    """Return rows with the values of hidden variables."""
    if not columns:
        return rows

    def extend(word: int) -> int:
        return word | sum(column.values[word & column.parents] << column.index for column in columns)

    # the hidden bit is a function of the word, so different words stay different and no counts merge
    noisy = {extend(word): number for word, number in rows.noisy.items()}
    return VariableRows(noisy, frozenset(map(extend, rows.clean)))


def _with_hidden(word: int, scm_class: MechanismClass, mechanisms: Mechanisms, index: Mapping[str, int]) -> int:
    # parents of hidden variables are observed, so any order will do
    for name in scm_class.hidden_parents:
        function = mechanisms[name]
        pattern = sum((word >> index[u] & 1) << i for i, u in enumerate(function.parents))
        word |= (function.table.bits >> pattern & 1) << index[name]
    return word
