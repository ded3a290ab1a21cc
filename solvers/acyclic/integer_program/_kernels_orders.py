"""Kernels: a search over orders for an acyclic choice of parent sets of small total cost.

Dimension letters: m = variables (places from 0), x = parent sets, of each variable the cheapest first.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from calibrant.dsl._jit import kernel

U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]

IMPOSSIBLE = 1 << 56  # costs more than any choice, and a sum of 63 such costs is a word


@kernel
def _cost(v: int, placed: np.uint64, starts: I64, masks: U64, costs: I64) -> int:
    """Return the cost of the cheapest parent set of a variable among the variables placed before it."""
    for at in range(starts[v], starts[v + 1]):
        if not masks[at] & ~placed:
            return int(costs[at])
    return IMPOSSIBLE


@kernel
def improve(order: I64, starts: I64, masks: U64, costs: I64) -> int:
    """Return what an order comes to after moves of one variable, to the best place each, while they improve it."""
    num = len(order)
    total = np.int64(0)
    placed = np.uint64(0)
    for v in order:
        total += _cost(v, placed, starts, masks, costs)
        placed |= np.uint64(1) << np.uint64(v)
    moved = True
    while moved:
        moved = False
        for v in range(num):
            bit = np.uint64(1) << np.uint64(v)
            place = 0
            before = np.uint64(0)
            while order[place] != v:
                before |= np.uint64(1) << np.uint64(order[place])
                place += 1
            best, best_place = np.int64(0), place
            ours = _cost(v, before, starts, masks, costs)
            change, placed = np.int64(0), before
            for at in range(place - 1, -1, -1):  # others move behind it
                u = order[at]
                placed ^= np.uint64(1) << np.uint64(u)
                change += _cost(u, placed | bit, starts, masks, costs) - _cost(u, placed, starts, masks, costs)
                gain = change + _cost(v, placed, starts, masks, costs) - ours
                if gain < best:
                    best, best_place = gain, at
            change, placed = np.int64(0), before
            for at in range(place + 1, num):  # others move before it
                u = order[at]
                change += _cost(u, placed, starts, masks, costs) - _cost(u, placed | bit, starts, masks, costs)
                placed |= np.uint64(1) << np.uint64(u)
                gain = change + _cost(v, placed, starts, masks, costs) - ours
                if gain < best:
                    best, best_place = gain, at
            if best < 0:
                _move(order, place, best_place)
                total += best
                moved = True
    return int(total)


@kernel
def _move(order: I64, place: int, to: int) -> None:
    v = order[place]
    if to < place:
        for at in range(place, to, -1):
            order[at] = order[at - 1]
    else:
        for at in range(place, to):
            order[at] = order[at + 1]
    order[to] = v


@kernel
def stir(best: I64, moves: I64, starts: I64, masks: U64, costs: I64) -> int:
    """Return what the best order comes to that is met when it is disturbed by some moves and improved again.

    best: [m] an order, which becomes the best one; moves: [t, k, 2] from where to where, in each of t disturbances
    """
    total = improve(best, starts, masks, costs)
    order = np.empty_like(best)
    for some in moves:
        for at in range(len(best)):
            order[at] = best[at]
        for one in some:
            _move(order, one[0], one[1])
        found = improve(order, starts, masks, costs)
        if found <= total:
            total = found
            for at in range(len(best)):
                best[at] = order[at]
    return total
