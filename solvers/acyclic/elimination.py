"""Sums over acyclic parent choices by eliminating variables: cheap where few variables separate the others.

A term is a relation "comes before, by some path" over a few variables, closed under transitivity, and the weight of all
choices that lead to it. Each variable with its possible parents begins as one table of such terms; to eliminate a
variable the tables that speak of it are joined, what has a cycle is dropped, and the paths through it stay as pairs of
the others. The tables speak of as many variables as a bag of the tree decomposition that the order of elimination
stands for (bucket elimination: R. Dechter, Bucket elimination: a unifying framework for reasoning, 1999; acyclicity
along a tree decomposition: J. Korhonen and P. Parviainen, Exact learning of bounded tree-width Bayesian networks, 2013,
on the treewidth of the network, not of what is possible).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import prod
from typing import NamedTuple, TypeAlias

from calibrant.solvers.acyclic.least_cost import Mask, members_of
from calibrant.solvers.budget import Budget

MAX_SCOPE = 6  # variables of a table when it is joined: 4,231 partial orders of 5, 130,023 of 6
TERMS_PER_JOIN = 4  # of a budget for terms of sums

Rows: TypeAlias = tuple[Mask, ...]
"""Of each variable of a scope what comes after it, as positions in the scope."""


class Table(NamedTuple):
    """scope: variables, ascending; terms: closed relation over them -> weight, none 0

    variable: whose parent sets these are, or which was the last to be eliminated
    """

    variable: int
    scope: tuple[int, ...]
    terms: Mapping[Rows, int]
    eliminated: bool


def elimination_order(options: Sequence[Iterable[Mask]], largest: int = MAX_SCOPE) -> list[int] | None:
    """An order in which every table is of at most `largest` variables when it is joined; None if none was found.

    Next always the variable with the fewest neighbours, the first of several.

    options: per variable its possible parent sets, as positions
    """
    near = [0] * len(options)
    for v, candidates in enumerate(options):
        family = 1 << v
        for mask in candidates:
            family |= mask
        for u in members_of(family):
            near[u] |= family & ~(1 << u)
    order, left = list[int](), set(range(len(options)))
    while left:
        v = min(left, key=lambda u: (near[u].bit_count(), u))
        if near[v].bit_count() >= largest:
            return None
        for u in members_of(near[v]):
            near[u] = (near[u] | near[v]) & ~(1 << u | 1 << v)
        order.append(v)
        left.remove(v)
    return order


def eliminated_total(options: Sequence[Mapping[Mask, int]], order: Sequence[int], budget: Budget) -> int:
    """Sum over all acyclic choices of the product of weights; `BudgetSpent` for too many terms.

    options: per variable its possible parent sets, as positions, and their weights
    """
    return prod(one.rest.terms.get((), 0) for one in eliminations(options, order, budget) if not one.rest.scope)


class Elimination(NamedTuple):
    """A variable, the tables that spoke of it, joined, and what they come to without it."""

    variable: int
    join: Join
    rest: Table


def eliminations(options: Sequence[Mapping[Mask, int]], order: Sequence[int], budget: Budget) -> Iterator[Elimination]:
    """One after another in that order; arguments as for `eliminated_total`."""
    tables = [family(v, candidates) for v, candidates in enumerate(options)]
    for v in order:
        join = Join([table for table in tables if v in table.scope], budget)
        rest = _without(v, join.whole)
        tables = [table for table in tables if v not in table.scope]
        if rest.scope:
            tables.append(rest)
        yield Elimination(v, join, rest)


def family(variable: int, options: Mapping[Mask, int]) -> Table:
    """The parent sets of a variable."""
    together = 1 << variable
    for mask in options:
        together |= mask
    scope = tuple(members_of(together))
    after = 1 << scope.index(variable)
    terms = {tuple(after if mask >> u & 1 else 0 for u in scope): weight for mask, weight in options.items() if weight}
    return Table(variable, scope, terms, eliminated=False)


class Join:
    """Join of tables: acyclic unions of one relation from each, small tables first.

    reached: what the tables before each one come to, and all of them
    """

    def __init__(self, tables: Sequence[Table], budget: Budget) -> None:
        self.tables = sorted(tables, key=lambda table: (len(table.terms), table.scope))
        self.scope = tuple(sorted({v for table in tables for v in table.scope}))
        self.reached: list[dict[Rows, int]] = [{(0,) * len(self.scope): 1}]
        for number, table in enumerate(self.tables):
            budget.spend(TERMS_PER_JOIN * len(self.reached[-1]) * len(table.terms))
            after: dict[Rows, int] = {}
            for both, _, _, weight in self.steps(number):
                after[both] = after.get(both, 0) + weight
            self.reached.append(after)

    @property
    def whole(self) -> Table:
        return Table(-1, self.scope, self.reached[-1], eliminated=False)

    def steps(self, number: int) -> Iterator[tuple[Rows, Rows, Rows, int]]:
        """Return what a relation before a table and a term of the table come to, the two, and their weight."""
        table = self.tables[number]
        spread = [(_spread(rows, table.scope, self.scope), rows, weight) for rows, weight in table.terms.items()]
        for one, before in self.reached[number].items():
            for other, rows, weight in spread:
                both = _closed(one, other)
                if both is not None:
                    yield both, one, rows, before * weight


def _spread(rows: Rows, scope: tuple[int, ...], wider: tuple[int, ...]) -> Rows:
    """Return the relation over a larger scope."""
    places = [wider.index(v) for v in scope]
    spread = [0] * len(wider)
    for place, row in zip(places, rows, strict=True):
        spread[place] = sum(1 << places[i] for i in members_of(row))
    return tuple(spread)


def _closed(one: Rows, other: Rows) -> Rows | None:
    """The closure of two closed relations together; None if it has a cycle."""
    rows = [a | b for a, b in zip(one, other, strict=True)]
    for middle, beyond in enumerate(rows):
        if beyond:
            if beyond >> middle & 1:
                return None
            for i, row in enumerate(rows):
                if row >> middle & 1:
                    rows[i] = row | beyond
    return None if any(row >> i & 1 for i, row in enumerate(rows)) else tuple(rows)


def _without(variable: int, table: Table) -> Table:
    """Weights summed over the relations that are the same beside this variable."""
    terms: dict[Rows, int] = {}
    for rows, weight in table.terms.items():
        rest = beside(variable, table.scope, rows)
        terms[rest] = terms.get(rest, 0) + weight
    return Table(variable, tuple(v for v in table.scope if v != variable), terms, eliminated=True)


def beside(variable: int, scope: Sequence[int], rows: Rows) -> Rows:
    """A relation without one of its variables."""
    place = scope.index(variable)
    low = (1 << place) - 1
    return tuple(row & low | row >> place + 1 << place for i, row in enumerate(rows) if i != place)
