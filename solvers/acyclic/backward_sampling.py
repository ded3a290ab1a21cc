"""Draws of acyclic choices back through an elimination of variables: what was summed last is drawn first.

Of the relation that is drawn over what a table spoke of, the joins that led to it are gone back step by step, each
drawn by its weight; so every choice comes with probability proportional to its own (forward filtering and backward
sampling, along a tree decomposition instead of a chain).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from math import prod
from typing import Any, TypeAlias

from calibrant.solvers.acyclic.elimination import Elimination, Rows, beside, eliminations
from calibrant.solvers.acyclic.least_cost import Mask
from calibrant.solvers.budget import Budget

Weighted: TypeAlias = Callable[[Iterable[tuple[Any, int]], int], Any]
"""One of several things with their weights, which add up to the number."""


class BackwardSampler:
    """Backward sampler along an elimination; it stores as many pairs of relations as were joined."""

    def __init__(self, options: Sequence[Mapping[Mask, int]], order: Sequence[int], budget: Budget) -> None:
        """Arguments as for `solvers.acyclic.elimination.eliminated_total`."""
        found = list(eliminations(options, order, budget))
        self.total = prod(one.rest.terms.get((), 0) for one in found if not one.rest.scope)
        self._steps = {one.variable: _Step(one) for one in found}
        self._last = [one.variable for one in found if not one.rest.scope]

    def draw(self, weighted: Weighted) -> dict[int, Mask]:
        """Position -> parents, as positions; the total must be positive."""
        chosen: dict[int, Mask] = {}
        waiting: list[tuple[int, Rows]] = [(v, ()) for v in self._last]
        while waiting:
            variable, rest = waiting.pop()
            step = self._steps[variable]
            rows = weighted(*step.relations[rest])
            for number in reversed(range(len(step.tables))):
                rows, term = weighted(*step.ways[number][rows])
                table = step.tables[number]
                if table.eliminated:
                    waiting.append((table.variable, term))
                else:
                    chosen[table.variable] = sum(1 << u for u, after in zip(table.scope, term, strict=True) if after)
        return chosen


class _Step:
    """An eliminated variable.

    relations: those of the joined tables by what is left of them, and their weights together
    ways: of each table, by a relation: the relation before it and its own term, and the weights together
    """

    def __init__(self, one: Elimination) -> None:
        self.tables = one.join.tables
        self._one = one

    @cached_property
    def relations(self) -> Mapping[Rows, tuple[list[tuple[Rows, int]], int]]:
        join, grouped = self._one.join, dict[Rows, list[tuple[Rows, int]]]()
        for rows, weight in join.reached[-1].items():
            grouped.setdefault(beside(self._one.variable, join.scope, rows), []).append((rows, weight))
        return {rest: (pairs, sum(weight for _, weight in pairs)) for rest, pairs in grouped.items()}

    @cached_property
    def ways(self) -> Sequence[Mapping[Rows, tuple[list[tuple[tuple[Rows, Rows], int]], int]]]:
        ways = []
        for number in range(len(self.tables)):
            grouped: dict[Rows, list[tuple[tuple[Rows, Rows], int]]] = {}
            for both, before, term, weight in self._one.join.steps(number):
                grouped.setdefault(both, []).append(((before, term), weight))
            ways.append({both: (pairs, sum(weight for _, weight in pairs)) for both, pairs in grouped.items()})
        return ways
