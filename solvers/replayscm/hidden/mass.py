"""Members with hidden variables, listed, drawn and counted, and their exact mass, summed over groups of columns.

*Column*, *signature*: see solvers.replayscm.hidden.columns. *Members* are the SCMs that agree with all rows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import islice, product
from math import lcm, prod
from random import Random
from typing import NamedTuple, TypeAlias

import numpy as np

from calibrant.dsl.formulas.table import TruthTable, shrink, support
from calibrant.dsl.replayscm.disclosure import Names
from calibrant.dsl.replayscm.extensions.extension import Prior
from calibrant.dsl.replayscm.extensions.reference import Mechanisms, apply_function
from calibrant.dsl.replayscm.scm import LocalFunction
from calibrant.solvers.acyclic.count import Weights, total
from calibrant.solvers.acyclic.draws import draw_below, draw_weighted
from calibrant.solvers.acyclic.least import Mask, members_of
from calibrant.solvers.outcome import Budget, BudgetSpent
from calibrant.solvers.replayscm.hidden.columns import (
    GroupSums,
    HiddenColumn,
    JointColumns,
    child_view,
    group_sums,
    hidden_columns,
    hidden_parent_sets,
    joint_columns,
    signature_weights,
    unique_rows,
)
from calibrant.solvers.replayscm.noise.posterior import Posterior, PosteriorSampler, Term, extend_rows, negate_arguments
from calibrant.solvers.replayscm.noise.subset_tables import VariableRows, scaled_rate, table_sum

# --- Draws of members with hidden variables, noise-free: parents, group, column, DAG, tables; all by exact weights ----


class GroupedSampler(PosteriorSampler):
    """Sampler for a noise-free posterior with hidden variables, which sums groups and not columns."""

    @cached_property
    def _parts(self) -> list[tuple[ColumnGroups, int]]:
        """Groups of columns for every assignment of hidden parents, each with its weight as an integer."""
        parts = list(column_groups(self.posterior))
        scale = lcm(*(part.factor.denominator for part in parts))
        weights = [int(part.mass * scale) for part in parts]
        if not any(weights):
            raise ValueError("the posterior is empty")
        return [(part, weight) for part, weight in zip(parts, weights, strict=True) if weight]

    @property
    def mass(self) -> Fraction:
        """Mass of the posterior: the sum over all assignments of hidden parents."""
        return sum((part.mass for part, _ in self._parts), start=Fraction(0))

    @cached_property
    def _row_totals(self) -> dict[tuple[int, tuple[int, ...]], list[tuple[int, int]]]:
        return {}

    @cached_property
    def _column_terms(self) -> dict[tuple[int, int], tuple[tuple[HiddenColumn, ...], Term]]:
        return {}

    def choose_term(self, rng: Random) -> tuple[Hashable, tuple[HiddenColumn, ...], Term]:
        """Draw a combination of columns through its group; return a key, the columns, and their summand of the mass."""
        total_weight = sum(weight for _, weight in self._parts)
        index: int = draw_weighted(rng, ((i, weight) for i, (_, weight) in enumerate(self._parts)), total_weight)
        part = self._parts[index][0]
        totals = part.group_totals
        key: tuple[int, ...] = draw_weighted(rng, totals.items(), sum(totals.values()))
        if (index, key) not in self._row_totals:
            # one sum over DAGs for each row, and only in groups that have been drawn
            self._row_totals[index, key] = part.row_totals(key)
        rows = self._row_totals[index, key]
        row: int = draw_weighted(rng, rows, sum(weight for _, weight in rows))
        # columns of a row differ only in their numbers of functions
        columns = np.flatnonzero(part.row_of_column == row)
        threshold = draw_below(rng, part.num_functions[row])
        column = int(columns[np.searchsorted(np.cumsum(part.columns.num_functions[columns]), threshold, side="right")])
        if (index, column) not in self._column_terms:
            # noise-free: a single rate, 0
            term = Term(part.factor, part.row_weights(row), 0)
            self._column_terms[index, column] = part.hidden_columns(column), term
        return (index, column), *self._column_terms[index, column]


def posterior_sampler(posterior: Posterior) -> PosteriorSampler:
    """Return the cheapest sampler for a posterior."""
    if posterior.scm_class.hidden_parents and posterior.scm_class.noise.is_noiseless:
        return GroupedSampler(posterior)
    return PosteriorSampler(posterior)


# --- Members with hidden variables one by one, and how many different meanings they have ------------------------------
# Two SCMs have one *meaning* if they have the same observed rows under every intervention on observed variables. If all
# observed variables but X are intervened on, the value of X is its mechanism with hidden variables replaced by their
# functions: a function of the other observed variables. These reduced functions determine every row, since the graph is
# acyclic; so two members have one meaning iff all their reduced functions are equal.
#
# Members are listed to count meanings: 512 members had 28 meanings, so a single remaining member is no criterion.
MAX_LISTED_MEMBERS = 3_000
MAX_COMPARED_ROWS = 20_000_000  # rows compared, over all parent sets and columns: 15 to 20 s

Meaning: TypeAlias = tuple[tuple[tuple[str, ...], int], ...]
"""Reduced function of each observed endogenous variable: functional parents, and bits of the table over these."""


def reduced_function(
    function: LocalFunction, hidden: tuple[tuple[str, LocalFunction], ...]
) -> tuple[tuple[str, ...], int]:
    """Return a mechanism with hidden variables replaced: its functional parents, sorted, and table bits over these.

    hidden: its hidden parents with their functions
    """
    replaced = dict(hidden)
    observed = {u for u in function.parents if u not in replaced}
    names = sorted(observed.union(*(h.parents for h in replaced.values())))
    # parents of hidden variables are observed, so one substitution removes all hidden ones
    bits = 0
    for row in range(1 << len(names)):
        values = {name: row >> i & 1 for i, name in enumerate(names)}
        values |= {name: apply_function(h, values) for name, h in hidden}
        bits |= apply_function(function, values) << row
    table, functional = shrink(TruthTable(len(names), bits))
    return tuple(names[i] for i in functional), table.bits


_reduced = lru_cache(maxsize=100_000)(reduced_function)  # members share most of their functions


def meaning(mechanisms: Mechanisms, hidden: Sequence[str]) -> Meaning:
    """Return the reduced functions of the observed endogenous variables, sorted by name."""
    return tuple(
        _reduced(mechanisms[v], tuple((h, mechanisms[h]) for h in mechanisms[v].parents if h in hidden))
        for v in sorted(mechanisms)
        if v not in hidden
    )


def count_meanings(posterior: Posterior, limit: int = MAX_LISTED_MEMBERS) -> int:
    """Count the meanings of the members, without noise; `BudgetSpent` for more than `limit` members."""
    hidden = tuple(posterior.scm_class.hidden_parents)
    return len({meaning(member, hidden) for member in list_members(posterior, limit)})


def list_members(posterior: Posterior, limit: int = MAX_LISTED_MEMBERS) -> list[Mechanisms]:
    """Return every member, without noise, in a fixed order.

    `BudgetSpent` for more than `limit` members, or beyond MAX_COMPARED_ROWS rows.
    """
    num_members = count_members(posterior)
    if num_members > limit:
        raise BudgetSpent(f"{num_members:,} members; listed are up to {limit:,}")
    return first_members(posterior, limit)


def first_members(posterior: Posterior, limit: int) -> list[Mechanisms]:
    """Return up to `limit` members, the first of a fixed order.

    `BudgetSpent` for more than MAX_COMPARED_ROWS rows; `ValueError` under noise.
    """
    if not posterior.scm_class.noise.is_noiseless:
        raise ValueError("under noise every SCM of the class is a member")
    budget = Budget(MAX_COMPARED_ROWS)
    try:
        columns = hidden_columns(posterior.scm_class, posterior.words)
        members = (member for chosen in columns for member in _column_members(posterior, chosen, limit, budget))
        return list(islice(members, limit))
    except BudgetSpent as spent:
        if not budget.exhausted:
            raise
        raise BudgetSpent(f"columns of hidden variables compare more than {MAX_COMPARED_ROWS:,} rows") from spent


def _column_members(
    posterior: Posterior, columns: Sequence[HiddenColumn], limit: int, budget: Budget
) -> Iterator[Mechanisms]:
    """Yield the members whose hidden variables have these columns or their negations."""
    names = posterior.scm_class.variables
    tables: dict[int, dict[Mask, dict[int, int]]] = {}
    for v, local in posterior.local_rows.items():
        rows = extend_rows(local, columns)
        # columns without members are dropped at the first variable without a table, and charged up to there
        budget.spend(len(posterior.masks[v]) * (len(rows.noisy) + len(rows.clean)))
        values = {mask: _table_values(rows, v, mask) for mask in posterior.masks[v]}
        tables[v] = {mask: bits for mask, bits in values.items() if bits is not None}
        if not tables[v]:
            return
    # one column of each pair of negations is listed; children of the other negate the argument
    signs: list[list[dict[int, int]]] = []
    for column in columns:
        negated = {word: 1 - bit for word, bit in column.values.items()}
        signs.append([dict(column.values), negated] if column.values else [{}])
    hidden_sets = {column.index: [column.parents] for column in columns}
    for observed in _acyclic_functions(tables, hidden_sets, names, limit):
        for signed in product(*signs):
            flipped = {
                column.index for column, value in zip(columns, signed, strict=True) if value != dict(column.values)
            }
            children = {v: negate_arguments(f, {names[i] for i in flipped}) for v, f in observed.items()}
            hidden = [
                [(names[c.index], f) for f in _functions(_by_pattern(value, c.parents), c.parents, names, limit)]
                for c, value in zip(columns, signed, strict=True)
            ]
            for pairs in product(*hidden):
                yield children | dict(pairs)


def _acyclic_functions(
    tables: Mapping[int, Mapping[Mask, Mapping[int, int]]],
    hidden_sets: Mapping[int, Sequence[Mask]],
    names: Names,
    limit: int,
) -> Iterator[dict[str, LocalFunction]]:
    """Yield a function for each variable, in every way without a cycle, by depth-first search.

    tables: variable -> parent set -> row of the table -> observed bit; hidden_sets: hidden variable -> parent sets
    limit: most functions tried for each parent set
    """
    order = list(tables)
    functions = lru_cache(maxsize=None)(lambda v, mask: _functions(tables[v][mask], mask, names, limit))
    chosen: dict[str, LocalFunction] = {}
    sets = {**{v: list(options) for v, options in tables.items()}, **hidden_sets}

    def extend(position: int) -> Iterator[dict[str, LocalFunction]]:
        if position == len(order):
            yield dict(chosen)
            return
        v = order[position]
        all_sets = sets[v]
        for mask in all_sets:
            sets[v] = [mask]
            # skip branches without an acyclic completion
            if _has_acyclic_assignment(sets):
                for function in functions(v, mask):
                    chosen[names[v]] = function
                    yield from extend(position + 1)
        sets[v] = all_sets

    return extend(0)


def _has_acyclic_assignment(sets: Mapping[int, Sequence[Mask]]) -> bool:
    """Return whether each variable can have one of its parent sets without a cycle."""
    waiting = dict(sets)
    unplaced = sum(1 << v for v in waiting)
    # a variable with a parent set among the placed variables can come next, whatever comes later: no backtracking
    while ready := [v for v, options in waiting.items() if any(mask & unplaced == 0 for mask in options)]:
        for v in ready:
            del waiting[v]
            unplaced ^= 1 << v
    return not waiting


def _table_values(rows: VariableRows, variable: int, parents: Mask) -> dict[int, int] | None:
    """Return row of the table -> bit, for the rows that occur; None if the evidence contradicts itself."""
    values: dict[int, int] = {}
    for pattern, bit in _rows_by_pattern(((w, w >> variable & 1) for w in (*rows.noisy, *rows.clean)), parents):
        if values.setdefault(pattern, bit) != bit:
            return None
    return values


def _rows_by_pattern(pairs: Iterable[tuple[int, int]], parents: Mask) -> Iterator[tuple[int, int]]:
    """Replace the word of each pair (word, bit) by its row of the table over these parents; bit i is parent i."""
    indices = members_of(parents)
    for word, bit in pairs:
        yield sum((word >> u & 1) << i for i, u in enumerate(indices)), bit


def _by_pattern(values: Mapping[int, int], parents: Mask) -> dict[int, int]:
    return dict(_rows_by_pattern(values.items(), parents))


def _functions(values: Mapping[int, int], parents: Mask, names: Names, limit: int) -> list[LocalFunction]:
    """Return the first `limit` functions that depend on all parents and have these bits; the other bits count up.

    Each function belongs to a member, so that a list of `limit` members needs no more.
    """
    num_parents = parents.bit_count()
    unseen = [row for row in range(1 << num_parents) if row not in values]
    seen_bits = sum(bit << row for row, bit in values.items())
    tables = (
        TruthTable(num_parents, seen_bits | sum(bit << row for row, bit in zip(unseen, bits, strict=True)))
        for bits in product((0, 1), repeat=len(unseen))
    )
    names_of_parents = tuple(names[u] for u in members_of(parents))
    functions = (LocalFunction(names_of_parents, table) for table in tables if len(support(table)) == num_parents)
    return list(islice(functions, limit))


# --- The mass with hidden variables, noise-free: columns grouped by the signatures of all children but one ------------
# The sum over acyclic assignments is linear in the weights of each child. So columns with equal signatures of all
# children but one are summed at once: the last child's weights are added up, each times the functions of its column.
MAX_CELLS = 1 << 30  # columns x parent sets, 2 bytes each: 2 GiB over all children, built child by child
# terms: sums x 3**m for m endogenous variables, hidden ones included
MAX_TERMS = (
    1 << 26
)  # in Python integers; measured: at most 1,024 sums (9 observed variables, a hidden one of 4 parents)
# in words, 3 ns each (6,335 sums of 3**9 in 0.34 s); two hidden variables of 3 parents have at most 11,881 columns
MAX_WORD_TERMS = 1 << 28

_NOISELESS = scaled_rate(Fraction(0))


@dataclass(frozen=True)
class GroupedMass:
    """A mass and the effort of computing it.

    num_columns: combinations of columns; num_signatures: different combinations of all children's signatures
    num_sums: number of groups, each of which takes one sum
    """

    mass: Fraction
    num_columns: int
    num_signatures: int
    num_sums: int


def grouped_mass(posterior: Posterior) -> GroupedMass:
    """Return the mass of a class with hidden variables; `ValueError` under noise, `BudgetSpent` beyond the limits."""
    if not posterior.scm_class.noise.is_noiseless:
        raise ValueError("columns weigh differently under noise; they are summed one by one")
    parts = list(column_groups(posterior))
    mass = sum((part.mass for part in parts), start=Fraction(0))
    return GroupedMass(
        mass,
        sum(len(part.columns) for part in parts),
        sum(part.num_signatures for part in parts),
        sum(len(part.groups) for part in parts),
    )


def column_groups(posterior: Posterior) -> Iterator[ColumnGroups]:
    """Yield the groups of columns for each assignment of parents to the hidden variables.

    `BudgetSpent` beyond MAX_CELLS, or MAX_TERMS and MAX_WORD_TERMS.
    """
    scm_class = posterior.scm_class
    names = list(scm_class.hidden_parents)
    for parents in product(*(hidden_parent_sets(scm_class, name) for name in names)):
        columns = joint_columns(parents, posterior.words)
        num_sets = sum(len(masks) for masks in posterior.masks.values())
        # checked before the exponents are built, which take the memory
        if len(columns) * num_sets > MAX_CELLS:
            raise BudgetSpent(f"{len(columns):,} columns x {num_sets:,} parent sets; budget {MAX_CELLS:,}")
        yield ColumnGroups(posterior, parents, columns)


def feasible_columns(posterior: Posterior) -> Iterator[tuple[HiddenColumn, ...]]:
    """Yield the columns under which some noise-free SCM fits, one of each pair of negations.

    `num_functions` of the columns is not counted: it is 1.
    """
    for part in column_groups(posterior):
        for key, whole in part.group_totals.items():
            for row, weight in part.row_totals(key) if whole else ():
                if weight:
                    yield from map(part.hidden_columns, np.flatnonzero(part.row_of_column == row).tolist())


class ColumnGroups:
    """Columns of hidden variables with given parents, grouped by the signatures of all children but the last.

    A *row* is the columns with equal signatures of all children.

    last: child with most signatures; groups: signatures of the other children -> rows
    num_functions: [rows] functions of the columns of a row together; row_of_column: [columns]
    """

    def __init__(self, posterior: Posterior, parents: Sequence[Mask], columns: JointColumns) -> None:
        scm_class = posterior.scm_class
        self.posterior = posterior
        self.parents = tuple(parents)
        self.columns = columns
        self.hidden = [scm_class.variables.index(name) for name in scm_class.hidden_parents]
        self._hidden_options = {h: {mask: 1} for h, mask in zip(self.hidden, parents, strict=True)}
        self._roots = posterior.root_mask
        scale = lcm(*(weight.denominator for weight in scm_class.parent_weights))
        self._prior = [int(weight * scale) for weight in scm_class.parent_weights]
        names = scm_class.hidden_parents
        weights = (scm_class.mechanism_weight(n, m.bit_count()) for n, m in zip(names, parents, strict=True))
        self.factor: Fraction = prod(weights, start=Fraction(1)) / scale ** len(posterior.local_rows)
        hidden_bits = sum(1 << h for h in self.hidden)
        # sets without a hidden variable have one weight under all columns
        self._visible = {
            v: {mask: table_sum(rows, v, mask, _NOISELESS) for mask in posterior.masks[v] if not mask & hidden_bits}
            for v, rows in posterior.local_rows.items()
        }
        self._group_columns()

    def _group_columns(self) -> None:
        """Group the columns by the signatures of all children but the last; one sum serves each group.

        Raise `BudgetSpent` if the sums have too many terms.
        """
        local, masks = self.posterior.local_rows, self.posterior.masks
        signatures, self.weights = {}, {}
        for v, rows in local.items():
            view = child_view(rows, v, masks[v], self.columns, self.hidden)
            # a child's weights depend on the exponents alone: columns with equal ones are interchangeable
            different, signatures[v] = unique_rows(view.exponents)
            self.weights[v] = signature_weights(masks[v], self._visible[v], view.masks, different, self._prior)
        # the sum is linear in any one child; leaving out the one with most signatures merges most groups
        self.last = max(self.weights, key=lambda v: len(self.weights[v]))
        self.others = [v for v in self.weights if v != self.last]
        keys = np.stack([signatures[v] for v in (*self.others, self.last)], axis=1)
        distinct, self.row_of_column = unique_rows(keys)
        num_functions = np.zeros(len(distinct), np.int64)
        # `np.add.at`, since `num_functions[rows] += ...` would count one of several columns of a row
        np.add.at(num_functions, self.row_of_column, self.columns.num_functions)
        self.num_signatures = len(distinct)
        self.num_functions: list[int] = num_functions.tolist()
        self.last_signatures: list[int] = distinct[:, -1].tolist()
        self.groups: dict[tuple[int, ...], list[int]] = {}
        self._keys = [tuple(key) for key in distinct[:, :-1].tolist()]
        for row, key in enumerate(self._keys):
            self.groups.setdefault(key, []).append(row)
        # hidden variables are in the sums too, each with its parent set
        num_vars = len(self.weights) + len(self.hidden)
        num_sums, budget = len(self.groups), MAX_TERMS if self._sums is None else MAX_WORD_TERMS
        if num_sums * 3**num_vars > budget:
            raise BudgetSpent(f"{num_sums:,} sums of 3**{num_vars} terms; budget {budget:,}")

    @cached_property
    def _sums(self) -> GroupSums | None:
        """Sums of many groups at a time in words; None if weights are too large for words."""
        hidden = dict(zip(self.hidden, self.parents, strict=True))
        return group_sums(self.posterior.masks, self.weights, hidden, self._roots, self.last, sum(self.num_functions))

    @cached_property
    def options(self) -> dict[int, list[dict[Mask, int]]]:
        """Return the weights of each child's parent sets, by signature; sets of weight 0 are left out."""
        return {v: [self._options(v, index) for index in range(len(rows))] for v, rows in self.weights.items()}

    def hidden_columns(self, column: int) -> tuple[HiddenColumn, ...]:
        """Return the column of each hidden variable in a combination; their functions are not counted."""
        columns = []
        for position, (index, parents) in enumerate(zip(self.hidden, self.parents, strict=True)):
            word = int(self.columns.words[position, column])
            values = {pattern & parents: word >> j & 1 for j, pattern in enumerate(self.columns.patterns)}
            columns.append(HiddenColumn(index, parents, values, 1))
        return tuple(columns)

    @cached_property
    def group_totals(self) -> dict[tuple[int, ...], int]:
        """Return the sum of each group, to be multiplied by `factor`."""
        return dict(zip(self.groups, self._totals(list(self.groups.items())), strict=True))

    @property
    def mass(self) -> Fraction:
        whole = sum(self.group_totals.values())
        return Fraction(whole) * self.factor

    def row_totals(self, key: tuple[int, ...]) -> list[tuple[int, int]]:
        """Return pairs (row of a group, its sum, to be multiplied by `factor`)."""
        rows = self.groups[key]
        return list(zip(rows, self._totals([(key, [row]) for row in rows]), strict=True))

    def _totals(self, parts: Sequence[tuple[tuple[int, ...], Sequence[int]]]) -> list[int]:
        """Return, for each pair (group, some of its rows), the sum over the columns of these rows."""
        if self._sums is None:
            return [self.partial_sum(key, rows) for key, rows in parts]
        chosen = {v: [key[index] for key, _ in parts] for index, v in enumerate(self.others)}
        added = [[(self.last_signatures[row], self.num_functions[row]) for row in rows] for _, rows in parts]
        return self._sums.totals(chosen, added)

    def partial_sum(self, key: tuple[int, ...], rows: Sequence[int]) -> int:
        """Return the sum over the columns of some rows of a group, in Python integers."""
        # measured: 1,587 signatures in 85 sums (6 observed variables, a hidden one of 4 parents)
        added: dict[Mask, int] = {}
        for row in rows:
            for mask, weight in self._options(self.last, self.last_signatures[row]).items():
                added[mask] = added.get(mask, 0) + self.num_functions[row] * weight
        return total(self._weights_of(key, added))

    def row_weights(self, row: int) -> Weights:
        """Return the weights of all parent sets under any column of a row."""
        return self._weights_of(self._keys[row], self._options(self.last, self.last_signatures[row]))

    def _weights_of(self, key: Sequence[int], last: Mapping[Mask, int]) -> Weights:
        """Return the weights of a group of columns; last: weights of the last child's parent sets."""
        chosen = {v: self._options(v, signature) for v, signature in zip(self.others, key, strict=True)}
        return Weights(chosen | {self.last: last} | self._hidden_options, self._roots)

    def _options(self, variable: int, signature: int) -> dict[Mask, int]:
        """Return the weights of a child's parent sets under one signature."""
        weights = self.weights[variable][signature].tolist()
        return {mask: weight for mask, weight in zip(self.posterior.masks[variable], weights, strict=True) if weight}


# --- The exact mass of any extended class, by the cheapest way: grouped columns where there is no noise ---------------


def exact_mass(posterior: Posterior) -> Fraction:
    """Return the mass of the posterior; `BudgetSpent` for too many hidden columns."""
    # groups need columns with equal weights, which are powers of 2 or 0 without noise; under noise nearly all differ
    if posterior.scm_class.hidden_parents and posterior.scm_class.noise.is_noiseless:
        return grouped_mass(posterior).mass
    return posterior.mass


def count_members(posterior: Posterior) -> int:
    """Count the SCMs of positive posterior; hidden columns are grouped if there is no noise."""
    if not posterior.scm_class.hidden_parents or not posterior.scm_class.noise.is_noiseless:
        return posterior.num_members
    # every SCM weighs 1 under the uniform prior, so that the mass is their number
    uniform = replace(posterior.scm_class, prior=Prior.UNIFORM)
    return int(exact_mass(replace(posterior, scm_class=uniform)))


# --- Columns of hidden variables under which the most probable SCM lies, noise-free: by kinds, best bounds first ------
# The posterior of the best SCM under a column depends only on the least parent sets that fit: under both priors a
# smaller set weighs as much or more. Columns with the same least sets are of one kind (`Fit`), and one of each kind is
# compared.


class Fit(NamedTuple):
    """Parent sets under a column: that of each hidden variable, and the least ones that fit for each observed one."""

    hidden: tuple[Mask, ...]
    children: frozenset[tuple[int, frozenset[Mask]]]


def best_fitting_columns(
    posterior: Posterior, best_value: Callable[[Sequence[HiddenColumn]], Fraction], max_kinds: int
) -> Iterator[tuple[HiddenColumn, ...]]:
    """Yield the columns under which the posterior has its maximum, one of each pair of negations.

    best_value: function of columns, the largest posterior weight of an SCM under them

    `BudgetSpent` beyond `max_kinds` kinds.
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
    """Yield (kind, groups, index of a column there) for every column, one of each pair of negations.

    The column itself is `groups.hidden_columns(index)`.
    """
    for part in column_groups(posterior):
        fits = {v: [_least_sets(options) for options in listed] for v, listed in part.options.items()}
        for key, rows in part.groups.items():
            others = [(v, fits[v][signature]) for v, signature in zip(part.others, key, strict=True)]
            for row in rows:
                fit = Fit(part.parents, frozenset([*others, (part.last, fits[part.last][part.last_signatures[row]])]))
                for column in np.flatnonzero(part.row_of_column == row).tolist():
                    yield fit, part, column


def _least_sets(masks: Collection[Mask]) -> frozenset[Mask]:
    """Return the sets without a proper subset among the others."""
    return frozenset(mask for mask in masks if not any(least & mask == least != mask for least in masks))


def _weight_bound(posterior: Posterior, fit: Fit, columns: Sequence[HiddenColumn]) -> Fraction:
    """Return the product of the largest prior weights of fitting parent sets, cyclic or not: an upper bound."""
    scm_class = posterior.scm_class
    hidden = (scm_class.mechanism_weight(scm_class.variables[c.index], c.num_parents) for c in columns)
    weights = (
        max((scm_class.parent_weights[mask.bit_count()] for mask in masks), default=Fraction(0))
        for _, masks in fit.children
    )
    return prod([*hidden, *weights], start=Fraction(1))
