"""Backward sampling of acyclic assignments through an elimination of variables: what was summed last is drawn first.

A relation over a table's scope is drawn by its weight; then the joins that led to it are reversed step by step, each
drawn by weight. So an assignment's probability is proportional to its weight (forward filtering and backward sampling,
along a tree decomposition instead of a chain).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from math import prod
from typing import Any, TypeAlias

from calibrant.solvers.acyclic.elimination import Elimination, Rows, drop_variable, eliminations
from calibrant.solvers.acyclic.least_cost import Mask
from calibrant.solvers.budget import Budget

Weighted: TypeAlias = Callable[[Iterable[tuple[Any, int]], int], Any]
"""Draws one of several options by its weight; the weights add up to the number."""


class BackwardSampler:
    """Backward sampler along an elimination; it stores as many pairs of relations as were joined."""

    def __init__(self, options: Sequence[Mapping[Mask, int]], order: Sequence[int], budget: Budget) -> None:
        """Arguments as for `solvers.acyclic.elimination.eliminated_total`."""
        solved = list(eliminations(options, order, budget))
        self.total = prod(
            elimination.message.terms.get((), 0) for elimination in solved if not elimination.message.scope
        )
        self._steps = {elimination.variable: _Step(elimination) for elimination in solved}
        self._last = [elimination.variable for elimination in solved if not elimination.message.scope]

    def draw(self, weighted: Weighted) -> dict[int, Mask]:
        """Draw an assignment: position -> parents, as positions. The total must be positive."""
        chosen: dict[int, Mask] = {}
        stack: list[tuple[int, Rows]] = [(v, ()) for v in self._last]
        while stack:
            variable, separator = stack.pop()
            step = self._steps[variable]
            rows = weighted(*step.relations[separator])
            # tables in reverse: ways[i] is grouped by the union of the first i + 1 tables, which is known from the last
            for number in reversed(range(len(step.tables))):
                rows, term = weighted(*step.ways[number][rows])
                table = step.tables[number]
                if table.eliminated:
                    stack.append((table.variable, term))
                else:
                    chosen[table.variable] = sum(1 << u for u, after in zip(table.scope, term, strict=True) if after)
        return chosen


class _Step:
    """One eliminated variable, reversed.

    relations: relations of the joined tables, grouped by what remains without the variable; and the sum of weights
    ways: for each table, by a union: the union before the table and the table's term; and the sum of weights
    """

    def __init__(self, elimination: Elimination) -> None:
        self.tables = elimination.join.tables
        self._elimination = elimination

    @cached_property
    def relations(self) -> Mapping[Rows, tuple[list[tuple[Rows, int]], int]]:
        join, groups = self._elimination.join, dict[Rows, list[tuple[Rows, int]]]()
        for rows, weight in join.reached[-1].items():
            groups.setdefault(drop_variable(self._elimination.variable, join.scope, rows), []).append((rows, weight))
        return {separator: (pairs, sum(weight for _, weight in pairs)) for separator, pairs in groups.items()}

    @cached_property
    def ways(self) -> Sequence[Mapping[Rows, tuple[list[tuple[tuple[Rows, Rows], int]], int]]]:
        ways = []
        for number in range(len(self.tables)):
            groups: dict[Rows, list[tuple[tuple[Rows, Rows], int]]] = {}
            for union, before, term, weight in self._elimination.join.steps(number):
                groups.setdefault(union, []).append(((before, term), weight))
            ways.append({union: (pairs, sum(weight for _, weight in pairs)) for union, pairs in groups.items()})
        return ways
