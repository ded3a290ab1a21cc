"""Small acyclic choices by orders that are disturbed and improved again, many a second; seldom not the least.

The moves are those of M. Scanagatta, G. Corani and M. Zaffalon (insertion, Improved local search in Bayesian networks
structure learning, 2017), the disturbances random ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate

import numpy as np

from calibrant.solvers.acyclic.integer_program._kernels_orders import I64, IMPOSSIBLE, stir
from calibrant.solvers.acyclic.least_cost import Cost, Mask, members_of

MOVED = 4  # variables at a time


class OrderLocalSearch:
    """Random moves are drawn from a stream that begins with the object.

    options: per variable its possible parent sets, of at most 63 variables in all, and what they cost: whole numbers
        that differ by less than 2**56 in all
    """

    def __init__(self, options: Mapping[int, Mapping[Mask, Cost]]) -> None:
        self.variables = sorted(options)
        self.places = {v: place for place, v in enumerate(self.variables)}
        self.ranked = [sorted(options[v], key=options[v].__getitem__) for v in self.variables]
        costs = [
            [options[v][parents] - options[v][ranked[0]] for parents in ranked]
            for v, ranked in zip(self.variables, self.ranked, strict=True)
        ]
        self.starts = np.array([0, *accumulate(map(len, costs))])
        self.masks = np.array([self._placed(parents) for ranked in self.ranked for parents in ranked], np.uint64)
        self.costs = np.array([cost for differences in costs for cost in differences], np.int64)
        self.random = np.random.Generator(np.random.PCG64(len(self.costs)))

    def best(self, order: Sequence[int], times: int) -> dict[int, Mask]:
        """The least choice that is met from a possible order on, if the best one is disturbed that often."""
        places = np.array([self.places[v] for v in order])
        self._stir(places, times)
        return self._choice(places)

    def restart(self, times: int) -> dict[int, Mask] | None:
        """Restart from a random order and improve it; None if no feasible order is met."""
        places = self.random.permutation(len(self.variables))
        return self._choice(places) if self._stir(places, times) < IMPOSSIBLE else None

    def _stir(self, places: I64, times: int) -> int:
        moves = self.random.integers(0, len(places), (times, MOVED, 2))
        return stir(places, moves, self.starts, self.masks, self.costs)

    def _choice(self, places: I64) -> dict[int, Mask]:
        found, placed = dict[int, Mask](), 0
        for place in places.tolist():
            v = self.variables[place]
            found[v] = next(parents for parents in self.ranked[place] if not parents & ~placed)
            placed |= 1 << v
        return found

    def _placed(self, own: Mask) -> int:
        return sum(1 << self.places[v] for v in members_of(own))
