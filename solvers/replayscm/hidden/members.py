"""Members with hidden variables: listed, drawn, and how many different meanings they have.

Two SCMs have one meaning if they show the same observed rows under every intervention on observed variables. Clamp all
observed variables but X: its value is X's mechanism with hidden variables replaced by their functions, as a function
of the other observed variables. These reduced functions fix every row, since the graph is acyclic; so two members have
one meaning iff all their reduced functions are equal.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import islice, product
from math import lcm
from random import Random
from typing import TypeAlias

import numpy as np

from calibrant.dsl.formulas.table import TruthTable, shrink, support
from calibrant.dsl.replayscm.disclosure import Names
from calibrant.dsl.replayscm.extensions.reference import Mechanisms, apply_function
from calibrant.dsl.replayscm.scm import LocalFunction
from calibrant.solvers.acyclic.draws import draw_below, draw_weighted
from calibrant.solvers.acyclic.least import Mask, members_of
from calibrant.solvers.outcome import Budget, BudgetSpent
from calibrant.solvers.replayscm.hidden.columns import HiddenColumn, hidden_columns
from calibrant.solvers.replayscm.hidden.mass import ColumnGroups, column_groups, count_members
from calibrant.solvers.replayscm.noise.local_weights import VariableRows
from calibrant.solvers.replayscm.noise.posterior import Posterior, Term, extend_rows
from calibrant.solvers.replayscm.noise.sampling import PosteriorSampler, negate_arguments

# --- Draws of members with hidden variables, noise-free: parents, group, column, DAG, tables; all by exact weights ----


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


# --- Members with hidden variables one by one, and how many different meanings they have ------------------------------
# listed to count meanings: 512 members were 28 meanings, so that one member left is no criterion
MAX_LISTED_MEMBERS = 3_000
MAX_COMPARED_ROWS = 20_000_000  # under all parent sets and columns; 15 to 20 s

Meaning: TypeAlias = tuple[tuple[tuple[str, ...], int], ...]
"""Of each observed endogenous variable its reduced function: functional parents, bits of the table over these."""


def reduced_function(
    function: LocalFunction, hidden: tuple[tuple[str, LocalFunction], ...]
) -> tuple[tuple[str, ...], int]:
    """Return a mechanism with hidden variables replaced: functional parents, sorted, and the table over these.

    hidden: the functions of its hidden parents
    """
    replaced = dict(hidden)
    observed = {u for u in function.parents if u not in replaced}
    names = sorted(observed.union(*(h.parents for h in replaced.values())))
    # hidden parents have observed parents only, so one substitution removes them all
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
    """Return how many meanings the members have; `BudgetSpent` for more than `limit` members. Noise-free."""
    hidden = tuple(posterior.scm_class.hidden_parents)
    return len({meaning(member, hidden) for member in list_members(posterior, limit)})


def list_members(posterior: Posterior, limit: int = MAX_LISTED_MEMBERS) -> list[Mechanisms]:
    """Return every SCM that agrees with all rows, in a fixed order; noise-free.

    `BudgetSpent` for more than `limit` members or MAX_COMPARED_ROWS rows; else each branch of the search has a member.
    """
    num_members = count_members(posterior)
    if num_members > limit:
        raise BudgetSpent(f"{num_members:,} members; listed are up to {limit:,}")
    return first_members(posterior, limit)


def first_members(posterior: Posterior, number: int) -> list[Mechanisms]:
    """Return so many SCMs that agree with all rows, all of them where there are fewer; the first of a fixed order.

    Noise-free. `BudgetSpent` for more than MAX_COMPARED_ROWS rows.
    """
    if not posterior.scm_class.noise.is_silent:
        raise ValueError("under noise every SCM of the class is a member")
    budget = Budget(MAX_COMPARED_ROWS)
    try:
        columns = hidden_columns(posterior.scm_class, posterior.words)
        members = (member for choice in columns for member in _column_members(posterior, choice, number, budget))
        return list(islice(members, number))
    except BudgetSpent as spent:
        if not budget.exhausted:
            raise
        raise BudgetSpent(f"columns of hidden variables compare more than {MAX_COMPARED_ROWS:,} rows") from spent


def _column_members(
    posterior: Posterior, columns: Sequence[HiddenColumn], number: int, budget: Budget
) -> Iterator[Mechanisms]:
    names = posterior.scm_class.variables
    tables: dict[int, dict[Mask, dict[int, int]]] = {}
    for v, local in posterior.local_rows.items():
        rows = extend_rows(local, columns)
        # a column without members is dropped at its first variable without a table, and charged up to there
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
    for observed in _acyclic_choices(tables, hidden_sets, names, number):
        for signed in product(*signs):
            flipped = {
                column.index for column, value in zip(columns, signed, strict=True) if value != dict(column.values)
            }
            children = {v: negate_arguments(f, {names[i] for i in flipped}) for v, f in observed.items()}
            hidden = [
                [(names[c.index], f) for f in _functions(_by_pattern(value, c.parents), c.parents, names, number)]
                for c, value in zip(columns, signed, strict=True)
            ]
            for pairs in product(*hidden):
                yield children | dict(pairs)


def _acyclic_choices(
    tables: Mapping[int, Mapping[Mask, Mapping[int, int]]],
    hidden_sets: Mapping[int, Sequence[Mask]],
    names: Names,
    number: int,
) -> Iterator[dict[str, LocalFunction]]:
    """Yield every acyclic choice of a function for each variable, by depth-first search.

    tables: of each variable, by parent set, the stated bits of the table; hidden_sets: parent sets of hidden variables
    number: functions that are tried at most of each table
    """
    order = list(tables)
    functions = lru_cache(maxsize=None)(lambda v, mask: _functions(tables[v][mask], mask, names, number))
    chosen: dict[str, LocalFunction] = {}
    sets = {**{v: list(options) for v, options in tables.items()}, **hidden_sets}

    def choose(position: int) -> Iterator[dict[str, LocalFunction]]:
        if position == len(order):
            yield dict(chosen)
            return
        v = order[position]
        every = sets[v]
        for mask in every:
            sets[v] = [mask]
            # a branch without an acyclic completion would cost time and yield nothing
            if _has_acyclic_choice(sets):
                for function in functions(v, mask):
                    chosen[names[v]] = function
                    yield from choose(position + 1)
        sets[v] = every

    return choose(0)


def _has_acyclic_choice(sets: Mapping[int, Sequence[Mask]]) -> bool:
    """Return whether one of the parent sets can be chosen for each variable without a cycle."""
    waiting = dict(sets)
    unplaced = sum(1 << v for v in waiting)
    # a variable with a parent set among the placed ones can come next, whatever comes later: no order has to be tried
    while ready := [v for v, options in waiting.items() if any(mask & unplaced == 0 for mask in options)]:
        for v in ready:
            del waiting[v]
            unplaced ^= 1 << v
    return not waiting


def _table_values(rows: VariableRows, variable: int, parents: Mask) -> dict[int, int] | None:
    """Return the bits of the table that the rows state, by row of the table; None if they contradict each other."""
    values: dict[int, int] = {}
    for pattern, bit in _rows_by_pattern(((w, w >> variable & 1) for w in (*rows.noisy, *rows.clean)), parents):
        if values.setdefault(pattern, bit) != bit:
            return None
    return values


def _rows_by_pattern(pairs: Iterable[tuple[int, int]], parents: Mask) -> Iterator[tuple[int, int]]:
    """Replace the word of each pair by its row of the table over these parents, bit i for the i-th parent."""
    indices = members_of(parents)
    for word, bit in pairs:
        yield sum((word >> u & 1) << i for i, u in enumerate(indices)), bit


def _by_pattern(values: Mapping[int, int], parents: Mask) -> dict[int, int]:
    return dict(_rows_by_pattern(values.items(), parents))


def _functions(values: Mapping[int, int], parents: Mask, names: Names, number: int) -> list[LocalFunction]:
    """Return the functions of exactly these parents with these bits of the table, the unseen ones counting up.

    number: at most; every table belongs to a member, so that nobody who lists so many members needs more
    """
    num_parents = parents.bit_count()
    unseen = [row for row in range(1 << num_parents) if row not in values]
    stated = sum(bit << row for row, bit in values.items())
    tables = (
        TruthTable(num_parents, stated | sum(bit << row for row, bit in zip(unseen, bits, strict=True)))
        for bits in product((0, 1), repeat=len(unseen))
    )
    names_of_parents = tuple(names[u] for u in members_of(parents))
    functions = (LocalFunction(names_of_parents, table) for table in tables if len(support(table)) == num_parents)
    return list(islice(functions, number))
