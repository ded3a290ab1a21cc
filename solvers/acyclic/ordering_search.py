"""A small acyclic choice of parent sets for up to 63 variables, by a search over orders; not always least."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate

import numpy as np

from calibrant.solvers.acyclic.least_cost import Cost, Mask

MAX_VARIABLES = 63  # of a machine word


def good_choice(options: Mapping[int, Mapping[Mask, Cost]], roots: Mask) -> tuple[Cost, dict[int, Mask]] | None:
    """An acyclic choice of small total cost, for up to MAX_VARIABLES variables; None if there is none.

    The best order that is reached by moving one variable at a time, from one in which the cheapest comes first.
    """
    orders = Orders(options, roots)
    first = orders.cheapest_first()
    return None if first is None else orders.improve_order(first)


class Orders:
    """options: per variable its possible parent sets and what they cost; roots: available to everybody"""

    def __init__(self, options: Mapping[int, Mapping[Mask, Cost]], roots: Mask) -> None:
        if max(options, default=0) >= MAX_VARIABLES:
            raise ValueError(f"a search over orders is for up to {MAX_VARIABLES} variables")
        self.options = options
        self.roots = roots
        self.variables = sorted(options)
        self.ranked = {v: sorted(costs, key=costs.__getitem__) for v, costs in options.items()}
        self.masks = {v: np.array(ranked, np.int64) for v, ranked in self.ranked.items()}

    def cheapest_first(self) -> list[int] | None:
        """The order in which always the variable that costs least then comes next; None if none is possible."""
        order, placed = list[int](), self.roots
        while len(order) < len(self.variables):
            ready = [
                (self.options[v][mask], v)
                for v in self.variables
                if not placed >> v & 1 and (mask := self._within(v, placed)) is not None
            ]
            if not ready:
                return None
            order.append(min(ready)[1])
            placed |= 1 << order[-1]
        return order

    def improve_order(self, order: Sequence[int]) -> tuple[Cost, dict[int, Mask]]:
        """Return what a possible order comes to after moves of one variable, to the best place each, while they
        improve it.
        """
        order = list(order)
        best = int(sum(self._costs(order)))
        moved = True
        while moved:
            moved = False
            for v in self.variables:
                rest = [u for u in order if u != v]
                cost, place = self._best_place(v, rest)
                if cost < best:
                    order, best, moved = [*rest[:place], v, *rest[place:]], int(cost), True
        return best, self.choice(order)

    def choice(self, order: Sequence[int]) -> dict[int, Mask]:
        """The cheapest choice with a possible order."""
        found, placed = dict[int, Mask](), self.roots
        for v in order:
            mask = self._within(v, placed)
            assert mask is not None
            found[v] = mask
            placed |= 1 << v
        return found

    def _best_place(self, variable: int, rest: Sequence[int]) -> tuple[float, int]:
        """Return what an order costs with the variable in its best place, the first of several."""
        before = self._costs(rest)
        after = self._costs(rest, 1 << variable)
        placed = list(accumulate((1 << u for u in rest), lambda some, one: some | one, initial=self.roots))
        total = sum(after)
        best = (np.inf, 0)
        for place, known in enumerate(placed):
            cost = total + self._cost(variable, known)
            best = min(best, (cost, place))
            if place < len(rest):
                total = sum(before[: place + 1]) + sum(after[place + 1 :])
        return best

    def _costs(self, order: Sequence[int], more: Mask = 0) -> list[float]:
        """Return what each costs after those before it and `more`."""
        placed, found = self.roots | more, list[float]()
        for v in order:
            found.append(self._cost(v, placed))
            placed |= 1 << v
        return found

    def _cost(self, variable: int, placed: Mask) -> float:
        mask = self._within(variable, placed)
        return np.inf if mask is None else self.options[variable][mask]

    def _within(self, variable: int, placed: Mask) -> Mask | None:
        """The cheapest set of a variable whose members are placed."""
        fits = (self.masks[variable] & ~np.int64(placed)) == 0
        return self.ranked[variable][int(fits.argmax())] if fits.any() else None
