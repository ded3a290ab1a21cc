"""Iterated local search over orders: the primal heuristic of the branch and cut.

Insertion moves (M. Scanagatta, G. Corani and M. Zaffalon, Improved local search in Bayesian networks structure
learning, 2017) from randomly perturbed orders. An order's assignment is acyclic by construction, so every result is a
valid upper bound.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate

import numpy as np

from calibrant.solvers.acyclic.integer_program._kernels_orders import I64, IMPOSSIBLE, perturb
from calibrant.solvers.acyclic.least import Cost, Mask, members_of

MOVES_PER_PERTURBATION = 4  # variables at a time


class OrderLocalSearch:
    """Local search with a random stream of its own, seeded by the number of parent sets.

    options: per variable the costs of its parent sets; at most 63 variables; the variables' ranges of costs (whole
        numbers) add up to less than 2**56
    """

    def __init__(self, options: Mapping[int, Mapping[Mask, Cost]]) -> None:
        self.variables = sorted(options)
        self.positions = {v: position for position, v in enumerate(self.variables)}
        self.ranked = [sorted(options[v], key=options[v].__getitem__) for v in self.variables]
        costs = [
            [options[v][parents] - options[v][ranked[0]] for parents in ranked]
            for v, ranked in zip(self.variables, self.ranked, strict=True)
        ]
        self.starts = np.array([0, *accumulate(map(len, costs))])
        self.masks = np.array([self._to_positions(parents) for ranked in self.ranked for parents in ranked], np.uint64)
        self.costs = np.array([cost for differences in costs for cost in differences], np.int64)
        self.rng = np.random.Generator(np.random.PCG64(len(self.costs)))

    def improve_from(self, order: Sequence[int], num_perturbations: int) -> dict[int, Mask]:
        """Return the best assignment of an iterated local search from a feasible order."""
        order_positions = np.array([self.positions[v] for v in order])
        self._perturb(order_positions, num_perturbations)
        return self._choice(order_positions)

    def restart(self, num_perturbations: int) -> dict[int, Mask] | None:
        """Restart from a random order and improve it; None if no feasible order is met."""
        order_positions = self.rng.permutation(len(self.variables))
        return self._choice(order_positions) if self._perturb(order_positions, num_perturbations) < IMPOSSIBLE else None

    def _perturb(self, order_positions: I64, num_perturbations: int) -> int:
        moves = self.rng.integers(0, len(order_positions), (num_perturbations, MOVES_PER_PERTURBATION, 2))
        return perturb(order_positions, moves, self.starts, self.masks, self.costs)

    def _choice(self, order_positions: I64) -> dict[int, Mask]:
        chosen, placed = dict[int, Mask](), 0
        for position in order_positions.tolist():
            v = self.variables[position]
            chosen[v] = next(parents for parents in self.ranked[position] if not parents & ~placed)
            placed |= 1 << v
        return chosen

    def _to_positions(self, parents: Mask) -> int:
        return sum(1 << self.positions[v] for v in members_of(parents))
