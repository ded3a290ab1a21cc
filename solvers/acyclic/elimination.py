"""Sums over acyclic assignments by separators, and the order ideals of their topological orders.

A term is a transitively closed relation "is an ancestor of" over a few variables, together with the total weight of the
assignments that induce it. At first, each variable with its candidate parents has a table of such terms. To eliminate a
variable, the tables with it in their scope are joined, cyclic unions are dropped, and the weights are summed over the
relations that agree on the other variables. Scopes are the bags of the tree decomposition that the elimination order
induces (R. Dechter, Bucket elimination: a unifying framework for reasoning, 1999; acyclicity along a tree
decomposition: J. Korhonen and P. Parviainen, Exact learning of bounded tree-width Bayesian networks, 2013, who bound
the treewidth of the network, not of the graph of candidates).

Positions are those of solvers.acyclic.count.Weights: bit i of a set is endogenous variable i, and roots are in no set.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import prod
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from calibrant.solvers.acyclic.least import Mask, members_of
from calibrant.solvers.outcome import Budget

# --- Sums over acyclic assignments by bucket elimination: cheap where small separators exist --------------------------
MAX_SCOPE = 6  # variables of a joined table: there are 4,231 partial orders of 5, 130,023 of 6
TERMS_PER_JOIN = 4  # budget units that one pair of joined terms costs

Rows: TypeAlias = tuple[Mask, ...]
"""Descendants of each variable of a scope, as masks of positions in the scope."""


class Table(NamedTuple):
    """Weights of closed relations over a scope.

    variable: the variable whose parent sets the table has; in a message the variable eliminated; -1 in a join
    scope: variables, ascending
    terms: closed relation over the scope -> weight, none 0
    eliminated: whether the table is the message of an eliminated variable
    """

    variable: int
    scope: tuple[int, ...]
    terms: Mapping[Rows, int]
    eliminated: bool


def elimination_order(options: Sequence[Iterable[Mask]], max_scope: int = MAX_SCOPE) -> list[int] | None:
    """Search for an elimination order by minimum degree; None if a joined scope would exceed `max_scope` variables.

    Ties go to the smallest variable. The heuristic may miss an order that exists.

    options: per variable its possible parent sets, as positions
    """
    neighbours = [0] * len(options)
    for v, candidates in enumerate(options):
        members = 1 << v
        for mask in candidates:
            members |= mask
        for u in members_of(members):
            neighbours[u] |= members & ~(1 << u)
    order, remaining = list[int](), set(range(len(options)))
    while remaining:
        v = min(remaining, key=lambda u: (neighbours[u].bit_count(), u))
        if neighbours[v].bit_count() >= max_scope:
            return None
        for u in members_of(neighbours[v]):
            neighbours[u] = (neighbours[u] | neighbours[v]) & ~(1 << u | 1 << v)
        order.append(v)
        remaining.remove(v)
    return order


def total_by_elimination(options: Sequence[Mapping[Mask, int]], order: Sequence[int], budget: Budget) -> int:
    """Sum the products of weights over all acyclic assignments; `BudgetSpent` for too many terms.

    options: per variable its possible parent sets, as positions, and their weights
    """
    return prod(
        elimination.message.terms.get((), 0)
        for elimination in eliminations(options, order, budget)
        if not elimination.message.scope
    )


class Elimination(NamedTuple):
    """An eliminated variable, the join of the tables with it in scope, and the message to the remaining tables."""

    variable: int
    join: Join
    message: Table


def eliminations(options: Sequence[Mapping[Mask, int]], order: Sequence[int], budget: Budget) -> Iterator[Elimination]:
    """Eliminate one variable after another in that order; arguments as for `total_by_elimination`."""
    tables = [family(v, candidates) for v, candidates in enumerate(options)]
    for v in order:
        join = Join([table for table in tables if v in table.scope], budget)
        message = _sum_out(v, join.table)
        tables = [table for table in tables if v not in table.scope]
        if message.scope:
            tables.append(message)
        yield Elimination(v, join, message)


def family(variable: int, options: Mapping[Mask, int]) -> Table:
    """Return the table of a variable's parent sets (positions) and their weights."""
    members = 1 << variable
    for mask in options:
        members |= mask
    scope = tuple(members_of(members))
    child = 1 << scope.index(variable)
    terms = {tuple(child if mask >> u & 1 else 0 for u in scope): weight for mask, weight in options.items() if weight}
    return Table(variable, scope, terms, eliminated=False)


class Join:
    """Join of tables, small ones first: the acyclic unions of one relation from each table.

    reached: at index i, the weights of the unions of the first i tables
    """

    def __init__(self, tables: Sequence[Table], budget: Budget) -> None:
        self.tables = sorted(tables, key=lambda table: (len(table.terms), table.scope))
        self.scope = tuple(sorted({v for table in tables for v in table.scope}))
        self.reached: list[dict[Rows, int]] = [{(0,) * len(self.scope): 1}]
        for index, table in enumerate(self.tables):
            # an upper bound before the work: cyclic unions are among the pairs
            budget.spend(TERMS_PER_JOIN * len(self.reached[-1]) * len(table.terms))
            terms: dict[Rows, int] = {}
            for union, _, _, weight in self.steps(index):
                terms[union] = terms.get(union, 0) + weight
            self.reached.append(terms)

    @property
    def table(self) -> Table:
        return Table(-1, self.scope, self.reached[-1], eliminated=False)

    def steps(self, index: int) -> Iterator[tuple[Rows, Rows, Rows, int]]:
        """Yield (closed union with the table, union before it, the table's relation, product of weights)."""
        table = self.tables[index]
        widened = [(_widen(rows, table.scope, self.scope), rows, weight) for rows, weight in table.terms.items()]
        for before, before_weight in self.reached[index].items():
            for wide_rows, rows, weight in widened:
                union = _close_union(before, wide_rows)
                if union is not None:
                    yield union, before, rows, before_weight * weight


def _widen(rows: Rows, scope: tuple[int, ...], wider: tuple[int, ...]) -> Rows:
    """Return a relation over `scope` as a relation over a wider scope."""
    positions = [wider.index(v) for v in scope]
    wide_rows = [0] * len(wider)
    for position, row in zip(positions, rows, strict=True):
        wide_rows[position] = sum(1 << positions[i] for i in members_of(row))
    return tuple(wide_rows)


def _close_union(first: Rows, second: Rows) -> Rows | None:
    """Return the transitive closure of the union of two closed relations; None if it has a cycle."""
    # Warshall's algorithm: at its turn, row `middle` has all paths through smaller numbers
    rows = [a | b for a, b in zip(first, second, strict=True)]
    for middle, from_middle in enumerate(rows):
        if from_middle:
            if from_middle >> middle & 1:
                return None
            for i, row in enumerate(rows):
                if row >> middle & 1:
                    rows[i] = row | from_middle
    return None if any(row >> i & 1 for i, row in enumerate(rows)) else tuple(rows)


def _sum_out(variable: int, table: Table) -> Table:
    """Sum the weights over the relations that agree on all other variables."""
    terms: dict[Rows, int] = {}
    for rows, weight in table.terms.items():
        separator = drop_variable(variable, table.scope, rows)
        terms[separator] = terms.get(separator, 0) + weight
    return Table(variable, tuple(v for v in table.scope if v != variable), terms, eliminated=True)


def drop_variable(variable: int, scope: Sequence[int], rows: Rows) -> Rows:
    """Restrict a relation to all variables but one; paths through it stay, since relations are closed."""
    position = scope.index(variable)
    low = (1 << position) - 1
    return tuple(row & low | row >> position + 1 << position for i, row in enumerate(rows) if i != position)


# --- Order ideals: sets of variables that a topological order of some acyclic assignment can begin with ---------------
I64 = npt.NDArray[np.int64]

MIN_TABLE_IDEALS = 1_000  # order ideals from which a table of all subsets is cheaper than enumerating ideals
MAX_POSITIONS = 62  # a set is a signed word


class OrderIdeals:
    """Enumeration of order ideals, with the parent sets of each variable as arrays.

    options: by variable, parent set (endogenous members only) -> weight, all positive
    """

    def __init__(self, options: Sequence[Mapping[Mask, int]]) -> None:
        if len(options) > MAX_POSITIONS:
            raise ValueError(f"{len(options)} variables; sets of at most {MAX_POSITIONS} are words")
        self._masks = [np.array(sorted(candidates), np.int64) for candidates in options]
        self._weights = [_weight_array([candidates[mask] for mask in sorted(candidates)]) for candidates in options]
        minimal = {i: minimal_sets(masks) for i, masks in enumerate(self._masks) if len(masks)}
        # a variable may come next if one of its minimal sets is placed: supersets need not be tested. All minimal sets
        # are in one array; `_starts` has where those of each variable begin. A variable without sets never comes next
        self._minimal = np.concatenate([*minimal.values(), np.empty(0, np.int64)])
        self._starts = np.cumsum([0, *map(len, minimal.values())])[:-1]
        self._bits = np.int64(1) << np.array([*minimal], np.int64)
        self._full = (1 << len(options)) - 1
        self._eligible: dict[Mask, Mask] = {}

    def weight(self, index: int, placed: Mask) -> int:
        """Return the total weight of a variable's parent sets within `placed`."""
        within = (self._masks[index] & np.int64(self._full & ~placed)) == 0
        return int(self._weights[index][within].sum())

    def eligible(self, placed: Mask) -> Mask:
        """Return the variables outside of `placed` that have a parent set within it."""
        if placed not in self._eligible:
            unplaced = self._full & ~placed
            within = (self._minimal & np.int64(unplaced)) == 0
            # `reduceat` refuses an empty array
            has_set = np.logical_or.reduceat(within, self._starts) if len(within) else within
            self._eligible[placed] = int(self._bits[has_set].sum()) & unplaced
        return self._eligible[placed]

    def count_ideals(self, limit: int) -> int:
        """Count the order ideals, by depth-first search; `limit` if there are more than that."""
        ideals, stack = {0}, [0]
        while stack:
            placed = stack.pop()
            eligible = self.eligible(placed)
            while eligible:
                low = eligible & -eligible
                eligible ^= low
                if placed | low not in ideals:
                    if len(ideals) >= limit:
                        return limit
                    ideals.add(placed | low)
                    stack.append(placed | low)
        return len(ideals)


def _weight_array(weights: Sequence[int]) -> npt.NDArray[np.int64] | npt.NDArray[np.object_]:
    """Convert weights to an array: of 64-bit words where no sum can overflow, else of Python integers."""
    if sum(weights) < 1 << 62:
        return np.array(weights, np.int64)
    integers = np.empty(len(weights), np.object_)
    integers[:] = weights
    return integers


def is_orderable(minimal: Mapping[int, I64], roots: Mask) -> bool:
    """Return whether the variables have an acyclic assignment if these roots come first.

    Greedy placement decides it: placing a variable never makes another one impossible.

    minimal: variable -> its minimal parent sets; roots need none
    """
    remaining = [i for i in minimal if not roots >> i & 1]
    placed, before = roots, -1
    while remaining and placed != before:
        before = placed
        ready = [i for i in remaining if ((minimal[i] & ~np.int64(placed)) == 0).any()]
        placed |= sum(1 << i for i in ready)
        remaining = [i for i in remaining if not placed >> i & 1]
    return not remaining


def minimal_sets(masks: I64) -> I64:
    """Return the sets that contain no other of the list."""
    sizes = np.bitwise_count(masks.astype(np.uint64))
    remaining = masks[np.argsort(sizes, kind="stable")]
    selected = []
    while len(remaining):
        selected.append(remaining[0])
        remaining = remaining[(remaining & remaining[0]) != remaining[0]]
    return np.array(selected, np.int64)
