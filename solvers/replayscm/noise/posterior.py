"""The exact posterior over SCMs of an extended class, weighted by prior and by noisy rows, and unbiased draws from it.

Noise is in mechanisms, and a flipped value is the value that children read. So the probability of the rows is a product
over variables of terms that depend on observed parents. `subset_tables` sums it over all functions of each parent set,
by Moebius inversion; solvers.acyclic sums over acyclic parent-set assignments. The values of a hidden variable in all
rows are a *column*; the posterior sums over columns (solvers.replayscm.hidden). All is exact but `ApproximateMasses`:
weights are integers over a common denominator.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import lcm, prod
from random import Random
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from calibrant.dsl.formulas.table import TruthTable, support
from calibrant.dsl.replayscm.extensions.extension import NOISE_FREE, MechanismClass, NoiseKind, Prior
from calibrant.dsl.replayscm.extensions.reference import EvidenceWorld, Mechanisms
from calibrant.dsl.replayscm.scm import LocalFunction
from calibrant.solvers.acyclic.count import Weights, total
from calibrant.solvers.acyclic.draws import Draws, Marginals, draw_below, draw_weighted
from calibrant.solvers.acyclic.least import Mask, members_of
from calibrant.solvers.outcome import BudgetSpent
from calibrant.solvers.replayscm._kernels_worlds import find_subsets
from calibrant.solvers.replayscm.hidden.columns import HiddenColumn, hidden_columns
from calibrant.solvers.replayscm.members import sample_completion
from calibrant.solvers.replayscm.noise._kernels_masses import count_patterns, log_masses
from calibrant.solvers.replayscm.noise.subset_tables import (
    EvidenceRow,
    Rate,
    VariableRows,
    clean_patterns,
    evidence_rows,
    exact_mass_by_tables,
    parent_masks,
    pattern_counts,
    scaled_rate,
    set_weights,
    variable_rows,
)

# --- The posterior over SCMs of an extended class: masses, edges, noise rates; plain sums over columns and rates ------


class Term(NamedTuple):
    """One summand of the mass: weights of parent sets under one combination of columns and one rate.

    factor: factor of the sum over `weights`: prior of the rate x functions of the columns / common denominators
    rate_index: index of the rate in the grid; 0 where rates are summed out for each variable
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
        """Return the posterior after more rows, given as words."""
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
        noise_free = replace(self.scm_class, prior=Prior.UNIFORM, noise=NOISE_FREE)
        is_noisy = self.scm_class.noise.max_rate > 0
        rows = tuple(row for row in self.rows if row.is_clean or not is_noisy)
        return int(Posterior(noise_free, rows).mass)

    @cached_property
    def edges(self) -> dict[tuple[str, str], Fraction]:
        """Return the posterior probability of each edge (parent, child); edges of probability 0 are left out."""
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
        """Return the posterior of each rate of the grid that all variables share."""
        sums = [Fraction(0)] * len(self.scm_class.noise.grid)
        for term in self.terms():
            sums[term.rate_index] += term.factor * total(term.weights)
        return tuple(weight / self.mass for weight in sums)

    def without_children(self, hidden: str) -> Fraction:
        """Return the posterior probability that a hidden variable has no child."""
        mass_without = Fraction(0)
        bit = 1 << self.scm_class.variables.index(hidden)
        for term in self.terms():
            # no child: the same sum over the sets that leave the variable out
            options = {
                v: {mask: weight for mask, weight in sets.items() if not mask & bit}
                for v, sets in zip(term.weights.endogenous, term.weights.options, strict=True)
            }
            mass_without += term.factor * total(Weights(options, self.root_mask))
        return mass_without / self.mass

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
        """Yield the summands for one combination of columns: one for each common rate, or a single one (EACH)."""
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
                options[v], divisor = self._mix_rates(v, local)
                factor /= divisor
            yield self._term(factor, options, prior, hidden, 0)
            return
        cells = sum(local.num_cells for local in rows.values())
        for index, (rate, rate_prior) in enumerate(scm_class.noise.grid):
            scaled = scaled_rate(rate)
            options = {v: set_weights(local, v, self.masks[v], scaled) for v, local in rows.items()}
            yield self._term(base * rate_prior / scaled.base**cells, options, prior, hidden, index)

    def _mix_rates(self, variable: int, rows: VariableRows) -> tuple[dict[Mask, int], int]:
        """Return the parent sets' weights with the rate summed out, times a scale, and the scale."""
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
    """Return the probability of one pattern of flips, with the rate summed out; cells, mismatches: by variable."""
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
    num_mismatches, num_cells = sum(mismatches.values()), sum(cells.values())
    return sum((p * e**num_mismatches * (1 - e) ** (num_cells - num_mismatches) for e, p in grid), start=Fraction(0))


def extend_rows(rows: VariableRows, columns: Sequence[HiddenColumn]) -> VariableRows:
    """Return the rows with the values of hidden variables added."""
    if not columns:
        return rows

    def extend(word: int) -> int:
        return word | sum(column.values[word & column.parents] << column.index for column in columns)

    # the hidden bit is a function of the word, so different words stay different and no counts merge
    noisy = {extend(word): count for word, count in rows.noisy.items()}
    return VariableRows(noisy, frozenset(map(extend, rows.clean)))


def _with_hidden(word: int, scm_class: MechanismClass, mechanisms: Mechanisms, index: Mapping[str, int]) -> int:
    """Return a row's word with the values of hidden variables added; their parents are observed."""
    for name in scm_class.hidden_parents:
        function = mechanisms[name]
        pattern = sum((word >> index[u] & 1) << i for i, u in enumerate(function.parents))
        word |= (function.table.bits >> pattern & 1) << index[name]
    return word


# --- Exact predictions of a posterior: readings (observed rows) of a world, and marginals of cells --------------------
DECIDED = Fraction(99, 100)  # posterior of a clean behaviour (rows without flips) from which it is decided under noise
MAX_LISTED_READINGS = 4_096  # all readings of 12 free cells
MAX_LISTED_CELLS = 7  # free cells of a row whose marginals are listed: 128 masses a row


def free_bits(posterior: Posterior, clamped: Mask) -> list[Mask]:
    """Return the bits of observed endogenous variables that an intervention leaves free."""
    indices = (posterior.scm_class.observed.index(v) for v in posterior.scm_class.endogenous)
    return [1 << i for i in indices if not clamped >> i & 1]


def completions(fixed: int, free: Sequence[Mask]) -> Iterator[int]:
    """Yield every word with these bits fixed; the free bits count up, the last listed slowest."""
    for pattern in range(1 << len(free)):
        yield fixed | sum(bit for i, bit in enumerate(free) if pattern >> i & 1)


def probability(posterior: Posterior, rows: Sequence[EvidenceRow]) -> Fraction:
    """Return the probability of rows given the evidence, their contexts and interventions."""
    return posterior.condition_rows(rows).mass / posterior.mass


def reading_probabilities(
    posterior: Posterior,
    rows: Sequence[tuple[int, Mask]],
    *,
    is_clean: bool = False,
    limit: int = MAX_LISTED_READINGS,
) -> dict[tuple[int, ...], Fraction]:
    """Return reading -> probability, for readings of positive probability; a reading has a word for each row.

    rows: pairs (fixed values, bits of intervention targets); is_clean: whether the rows are without noise

    `BudgetSpent` if the rows, or the first of them, have more than `limit` readings.
    """
    reached: dict[tuple[int, ...], Posterior] = {(): posterior}
    for fixed, clamped in rows:
        free = free_bits(posterior, clamped)
        extended: dict[tuple[int, ...], Posterior] = {}
        for words, before in reached.items():
            for word in completions(fixed, free):
                after = before.condition_rows([EvidenceRow(word, clamped, is_clean)])
                # row by row: a prefix of probability 0 has no continuation, which leaves few readings without noise
                if after.mass:
                    extended[(*words, word)] = after
                    if len(extended) > limit:
                        raise BudgetSpent(f"more than {limit:,} readings have positive probability")
        reached = extended
    return {words: after.mass / posterior.mass for words, after in reached.items()}


def cell_marginals(posterior: Posterior, fixed: int, clamped: Mask) -> dict[int, Fraction]:
    """Return, by variable, the exact probability that each free cell of a row reads 1, noise included.

    `BudgetSpent` for more than MAX_LISTED_CELLS free cells.
    """
    free = free_bits(posterior, clamped)
    if len(free) > MAX_LISTED_CELLS:
        raise BudgetSpent(f"{len(free)} free cells in a row; marginals are listed up to {MAX_LISTED_CELLS}")
    marginals = {bit.bit_length() - 1: Fraction(0) for bit in free}
    for word in completions(fixed, free):
        share = probability(posterior, [EvidenceRow(word, clamped)])
        for index in members_of(word & sum(free)):
            marginals[index] += share
    return marginals


# --- Masses in doubles under a common rate, many readings at a time: only to choose worlds, never reported ------------
F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]


class ApproximateMasses:
    """Masses in doubles of a posterior without hidden variables, whose evidence is stored as arrays."""

    def __init__(self, posterior: Posterior) -> None:
        """Raise `ValueError` for hidden variables, or for an independent rate of each variable."""
        scm_class = posterior.scm_class
        if scm_class.hidden_parents or scm_class.noise.kind is NoiseKind.EACH:
            raise ValueError("masses in doubles are for a common rate and no hidden variables")
        self.posterior = posterior
        order = list(posterior.masks)
        self.variables: I64 = np.array(order, np.int64)
        masks_of_each = [np.array(posterior.masks[v], np.int64) for v in order]
        self.starts: I64 = np.cumsum([0, *map(len, masks_of_each)])
        self.masks: I64 = np.concatenate(masks_of_each)
        self.owners: I64 = np.repeat(self.variables, [len(masks) for masks in masks_of_each])
        self.below: I64 = np.zeros((len(self.masks), max(1, scm_class.max_parents)), np.int64)
        # the sets are ordered by size; bisection needs them ascending as numbers
        for masks, start in zip(masks_of_each, self.starts.tolist(), strict=False):
            find_subsets(masks, np.argsort(masks), self.below[start : start + len(masks)])
        self.inside: I64 = np.zeros(len(self.masks), np.int64)
        for position, v in enumerate(order):
            self.inside |= (self.masks >> v & 1) << position
        weights = np.array([float(weight) for weight in scm_class.parent_weights])
        self.prior: F64 = weights[np.bitwise_count(self.masks)]
        words = np.array([row.word for row in posterior.rows], np.uint64)
        targets = np.array([row.clamped for row in posterior.rows], np.uint64)
        self.counts = np.empty((len(self.masks), 2, 1 << scm_class.max_parents), np.int32)
        count_patterns(self.masks, self.owners, words, targets, self.counts)

    def log_masses(self, words: U64, targets: U64, spans: I64) -> F64:
        """Return the logarithm of the mass with the rows from spans[b] to spans[b + 1] - 1 added, for each b; [b]."""
        grid = self.posterior.scm_class.noise.grid
        logs = np.empty((len(grid), len(spans) - 1))
        # powers are tabulated once for each rate; the largest exponent is the number of rows
        num_powers = len(self.posterior.rows) + int(np.diff(spans).max(initial=0)) + 1
        for (rate, prior), rate_logs in zip(grid, logs, strict=True):
            powers = np.arange(num_powers, dtype=np.float64)
            # 0.0**0 is 1, so that rate 0 is no special case
            flip: F64 = np.power(float(rate), powers)
            stay: F64 = np.power(float(1 - rate), powers)
            arrays = self.masks, self.starts, self.variables, self.below, self.inside, self.prior, self.counts
            log_masses(*arrays, flip, stay, words, targets, spans, rate_logs)
            rate_logs += np.log(float(prior))
        # rates of a grid differ by hundreds in logarithm: the largest is taken out before `exp`
        top = logs.max(axis=0)
        finite_top = np.where(np.isfinite(top), top, 0.0)
        with np.errstate(divide="ignore"):
            log_sums: F64 = finite_top + np.log(np.exp(logs - finite_top).sum(axis=0))
        return log_sums

    @cached_property
    def log_mass(self) -> float:
        """Return the logarithm of the mass of the evidence."""
        empty = np.empty(0, np.uint64)
        return float(self.log_masses(empty, empty, np.zeros(2, np.int64))[0])


# --- Unbiased draws from a posterior of extended items, from exact weights: rate, columns, DAG, then tables -----------
# Given its parents, a table's bits are independent, one for each pattern; a table that does not depend on all parents
# is drawn again. Sets are drawn in proportion to w(S), so the expected number of tables is at most the number of sets.
class PosteriorSampler:
    """Sampler for one posterior; sums that draws share are cached. Draws raise `ValueError` if the mass is 0."""

    def __init__(self, posterior: Posterior) -> None:
        self.posterior = posterior
        self._draws: dict[Hashable, Draws] = {}
        self._rows: dict[Hashable, dict[int, VariableRows]] = {}
        self._rates: dict[tuple[Hashable, int, Mask], list[tuple[Rate, int]]] = {}

    @cached_property
    def _terms(self) -> list[tuple[tuple[HiddenColumn, ...], Term, int]]:
        """Summands of the mass with their columns and weights, integers over a common denominator."""
        columns = hidden_columns(self.posterior.scm_class, self.posterior.words)
        listed = [(chosen, term) for chosen in columns for term in self.posterior.column_terms(chosen)]
        weights = [term.factor * total(term.weights) for _, term in listed]
        if not any(weights):
            raise ValueError("the posterior is empty")
        # integer weights: draws are exact, where doubles would lose small terms
        scale = lcm(*(weight.denominator for weight in weights))
        exact = [int(weight * scale) for weight in weights]
        return [(chosen, term, weight) for (chosen, term), weight in zip(listed, exact, strict=True) if weight]

    @cached_property
    def _total_weight(self) -> int:
        return sum(weight for _, _, weight in self._terms)

    def draw(self, rng: Random) -> Mechanisms:
        """Return one SCM with probability proportional to prior x P(rows | contexts)."""
        return self.draw_with_rates(rng)[0]

    def draw_with_rates(self, rng: Random) -> tuple[Mechanisms, dict[str, Fraction]]:
        """Return one SCM and the rate of each observed endogenous variable."""
        scm_class = self.posterior.scm_class
        term_key, columns, term = self.choose_term(rng)
        draws = self._draws.setdefault(term_key, Draws(term.weights))
        chosen = draws.draw(rng)
        names = scm_class.variables
        if term_key not in self._rows:
            self._rows[term_key] = {v: extend_rows(rows, columns) for v, rows in self.posterior.local_rows.items()}
        rates, mechanisms = dict[str, Fraction](), dict[str, LocalFunction]()
        for v, mask in sorted(chosen.items()):
            if names[v] in scm_class.hidden_parents:
                continue
            rate = self._rate(rng, term_key, v, mask, term.rate_index)
            rates[names[v]] = Fraction(rate.flip, rate.base)
            table = _draw_table(rng, self._rows[term_key][v], v, mask, rate)
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
        """Draw a summand of the mass by its weight; return a key for caches, its columns, and the summand."""
        weighted = ((index, weight) for index, (_, _, weight) in enumerate(self._terms))
        index: int = draw_weighted(rng, weighted, self._total_weight)
        columns, term, _ = self._terms[index]
        return index, columns, term

    def _rate(self, rng: Random, term_key: Hashable, variable: int, mask: Mask, rate_index: int) -> Rate:
        """Return the common rate, or draw the variable's own rate given its parent set."""
        grid = self.posterior.scm_class.noise.grid
        if self.posterior.scm_class.noise.kind is not NoiseKind.EACH:
            return scaled_rate(grid[rate_index][0])
        key = term_key, variable, mask
        if key not in self._rates:
            base = lcm(*(rate.denominator for rate, _ in grid))
            scale = lcm(*(prior.denominator for _, prior in grid))
            rows = self._rows[term_key][variable]
            options = []
            for rate, prior in grid:
                scaled = scaled_rate(rate, base)
                # given the parent set S, a rate e weighs p(e) w_e(S), whose inversion needs only subsets of S
                subsets = [subset for subset in self.posterior.masks[variable] if not subset & ~mask]
                options.append((scaled, int(prior * scale) * set_weights(rows, variable, subsets, scaled)[mask]))
            self._rates[key] = options
        options = self._rates[key]
        chosen: Rate = draw_weighted(rng, options, sum(weight for _, weight in options))
        return chosen


def _draw_table(rng: Random, rows: VariableRows, variable: int, mask: Mask, rate: Rate) -> TruthTable:
    """Draw a function that depends on all of the parents, in proportion to the probability of the rows."""
    parents = members_of(mask)
    counts, clean = pattern_counts(rows, variable, mask), clean_patterns(rows, variable, mask)
    assert clean is not None
    terms: list[tuple[int, int]] = []
    for row in range(1 << len(parents)):
        pattern = sum((row >> i & 1) << parent for i, parent in enumerate(parents))
        zeros, ones = counts.get(pattern, (0, 0))
        value = clean.get(pattern)
        as_zero = 0 if value == 1 else rate.flip**ones * rate.stay**zeros
        as_one = 0 if value == 0 else rate.flip**zeros * rate.stay**ones
        terms.append((as_zero, as_one))
    while True:
        bits = sum((draw_below(rng, zeros + ones) >= zeros) << row for row, (zeros, ones) in enumerate(terms))
        # g(S) / w(S) trials are expected: all tables over S weigh g(S), those that depend on all of S weigh w(S). Since
        # g(S) is at most the sum of all w, sets drawn by w take at most as many expected trials as there are sets
        table = TruthTable(len(parents), bits)
        if len(support(table)) == len(parents):
            return table


def _pattern_values(column: HiddenColumn) -> dict[int, int]:
    """Return the values of a column by row of its function's table."""
    parents = members_of(column.parents)
    return {sum((word >> u & 1) << i for i, u in enumerate(parents)): bit for word, bit in column.values.items()}


def negate_arguments(function: LocalFunction, negated: Mapping[str, object] | set[str]) -> LocalFunction:
    """Return the function with some of its arguments negated."""
    shift = sum(1 << i for i, parent in enumerate(function.parents) if parent in negated)
    if not shift:
        return function
    bits = sum((function.table.bits >> (row ^ shift) & 1) << row for row in range(1 << len(function.parents)))
    return LocalFunction(function.parents, TruthTable(len(function.parents), bits))
