"""Heuristic: an acyclic assignment of small total cost for up to 63 variables, by hill climbing over orders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate

import numpy as np

from calibrant.solvers.acyclic.least_cost import Cost, Mask

MAX_VARIABLES = 63  # sets are signed machine words


def find_good_choice(options: Mapping[int, Mapping[Mask, Cost]], roots: Mask) -> tuple[Cost, dict[int, Mask]] | None:
    """Search an acyclic assignment of small total cost for up to MAX_VARIABLES variables; None if there is none.

    Hill climbing by moves of one variable, from the order in which the cheapest always comes next.
    """
    orders = Orders(options, roots)
    first = orders.cheapest_first()
    return None if first is None else orders.improve_order(first)


class Orders:
    """Orders of variables, and the cheapest assignment that is compatible with each.

    options: per variable the costs of its possible parent sets; roots: variables that may be parents of all
    """

    def __init__(self, options: Mapping[int, Mapping[Mask, Cost]], roots: Mask) -> None:
        if max(options, default=0) >= MAX_VARIABLES:
            raise ValueError(f"a search over orders is for up to {MAX_VARIABLES} variables")
        self.options = options
        self.roots = roots
        self.variables = sorted(options)
        self.ranked = {v: sorted(costs, key=costs.__getitem__) for v, costs in options.items()}
        self.masks = {v: np.array(ranked, np.int64) for v, ranked in self.ranked.items()}

    def cheapest_first(self) -> list[int] | None:
        """Return the greedy order, in which the variable of least cost comes next; None if no order is feasible."""
        order, placed = list[int](), self.roots
        while len(order) < len(self.variables):
            ready = [
                (self.options[v][mask], v)
                for v in self.variables
                if not placed >> v & 1 and (mask := self._cheapest_within(v, placed)) is not None
            ]
            if not ready:
                return None
            order.append(min(ready)[1])
            placed |= 1 << order[-1]
        return order

    def improve_order(self, order: Sequence[int]) -> tuple[Cost, dict[int, Mask]]:
        """Improve a feasible order by moves of one variable to its best position; return cost and parent sets."""
        order = list(order)
        best = int(sum(self._costs(order)))
        moved = True
        while moved:
            moved = False
            for v in self.variables:
                remaining = [u for u in order if u != v]
                cost, position = self._best_position(v, remaining)
                if cost < best:
                    order, best, moved = [*remaining[:position], v, *remaining[position:]], int(cost), True
        return best, self.choice(order)

    def choice(self, order: Sequence[int]) -> dict[int, Mask]:
        """Return the cheapest assignment that is compatible with a feasible order."""
        chosen, placed = dict[int, Mask](), self.roots
        for v in order:
            mask = self._cheapest_within(v, placed)
            assert mask is not None
            chosen[v] = mask
            placed |= 1 << v
        return chosen

    def _best_position(self, variable: int, remaining: Sequence[int]) -> tuple[float, int]:
        """Return the cost of the order with the variable in its best position, and that position; the first of several.

        `before` and `after` are the others' costs if the variable comes behind or ahead of them.
        """
        before = self._costs(remaining)
        after = self._costs(remaining, 1 << variable)
        placed = list(
            accumulate((1 << u for u in remaining), lambda placed_so_far, bit: placed_so_far | bit, initial=self.roots)
        )
        total = sum(after)
        best = (np.inf, 0)
        for position, placed_before in enumerate(placed):
            cost = total + self._cost(variable, placed_before)
            best = min(best, (cost, position))
            if position < len(remaining):
                total = sum(before[: position + 1]) + sum(after[position + 1 :])
        return best

    def _costs(self, order: Sequence[int], also_placed: Mask = 0) -> list[float]:
        """Return the cost of each variable behind its predecessors and `also_placed`."""
        placed, costs = self.roots | also_placed, list[float]()
        for v in order:
            costs.append(self._cost(v, placed))
            placed |= 1 << v
        return costs

    def _cost(self, variable: int, placed: Mask) -> float:
        mask = self._cheapest_within(variable, placed)
        return np.inf if mask is None else self.options[variable][mask]

    def _cheapest_within(self, variable: int, placed: Mask) -> Mask | None:
        """Return the cheapest set of a variable whose members are placed; None without one."""
        fits = (self.masks[variable] & ~np.int64(placed)) == 0
        return self.ranked[variable][int(fits.argmax())] if fits.any() else None
