"""Kernels: local search over orders for an acyclic assignment of small total cost.

Letters of shapes: m = variables (numbered from 0), t = perturbations, k = moves. Parent sets lie variable by variable,
those of each the cheapest first: starts [m + 1], masks and costs [parent sets].
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from calibrant.dsl._jit import kernel

U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]

IMPOSSIBLE = 1 << 56  # costs more than any choice, and a sum of 63 such costs is a word


@kernel
def _cheapest_cost(v: int, placed: np.uint64, starts: I64, masks: U64, costs: I64) -> int:
    """Return the cost of the cheapest parent set of a variable among the variables placed before it."""
    # cheapest first, so the first that fits is the best: a few tests on average instead of all
    for index in range(starts[v], starts[v + 1]):
        if not masks[index] & ~placed:
            return int(costs[index])
    return IMPOSSIBLE


@kernel
def improve_order(order: I64, starts: I64, masks: U64, costs: I64) -> int:
    """Improve an order in place by insertion moves, each to the best position, until none improves; return its cost."""
    num = len(order)
    total = np.int64(0)
    placed = np.uint64(0)
    for v in order:
        total += _cheapest_cost(v, placed, starts, masks, costs)
        placed |= np.uint64(1) << np.uint64(v)
    moved = True
    while moved:
        moved = False
        for v in range(num):
            bit = np.uint64(1) << np.uint64(v)
            position = 0
            earlier = np.uint64(0)
            while order[position] != v:
                earlier |= np.uint64(1) << np.uint64(order[position])
                position += 1
            best_gain, best_position = np.int64(0), position
            current = _cheapest_cost(v, earlier, starts, masks, costs)
            change, placed = np.int64(0), earlier
            # swaps with neighbours give every position in O(m) costs; only the variables passed change theirs
            for index in range(position - 1, -1, -1):  # others move behind it
                u = order[index]
                placed ^= np.uint64(1) << np.uint64(u)
                change += _cheapest_cost(u, placed | bit, starts, masks, costs) - _cheapest_cost(
                    u, placed, starts, masks, costs
                )
                gain = change + _cheapest_cost(v, placed, starts, masks, costs) - current
                if gain < best_gain:
                    best_gain, best_position = gain, index
            change, placed = np.int64(0), earlier
            for index in range(position + 1, num):  # others move before it
                u = order[index]
                change += _cheapest_cost(u, placed, starts, masks, costs) - _cheapest_cost(
                    u, placed | bit, starts, masks, costs
                )
                placed |= np.uint64(1) << np.uint64(u)
                gain = change + _cheapest_cost(v, placed, starts, masks, costs) - current
                if gain < best_gain:
                    best_gain, best_position = gain, index
            if best_gain < 0:
                _move(order, position, best_position)
                total += best_gain
                moved = True
    return int(total)


@kernel
def _move(order: I64, source: int, target: int) -> None:
    v = order[source]
    if target < source:
        for index in range(source, target, -1):
            order[index] = order[index - 1]
    else:
        for index in range(source, target):
            order[index] = order[index + 1]
    order[target] = v


@kernel
def perturb(best: I64, moves: I64, starts: I64, masks: U64, costs: I64) -> int:
    """Search by perturbing the best order, improving it and keeping it if it is no worse; return the best cost.

    best: [m] initial order, becomes the best one; moves: [t, k, 2] source and target positions
    """
    total = improve_order(best, starts, masks, costs)
    order = np.empty_like(best)
    for moves_of_round in moves:
        for index in range(len(best)):
            order[index] = best[index]
        for move in moves_of_round:
            _move(order, move[0], move[1])
        changed_total = improve_order(order, starts, masks, costs)
        # ties are accepted: the search drifts across plateaus of equal cost
        if changed_total <= total:
            total = changed_total
            for index in range(len(best)):
                best[index] = order[index]
    return total
