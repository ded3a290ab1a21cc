"""Kernels: groups of variables whose cluster cut a fractional choice of parent sets violates, by tabu search.

Dimension letters: m = variables, x = parent sets, g = groups. A group is a word, bit per place.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from calibrant.dsl._jit import kernel

U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]
F64 = npt.NDArray[np.float64]


@kernel
def _size(group: np.uint64) -> int:
    size = 0
    while group:
        group &= group - np.uint64(1)
        size += 1
    return size


@kernel
def _place(bit: np.uint64) -> int:
    """Return the index of the only set bit of a word."""
    place = 0
    while bit >> np.uint64(place) != np.uint64(1):
        place += 1
    return place


@kernel
def outside(
    group: np.uint64,
    level: int,
    owner: I64,  # [x]
    parents: U64,  # [x]
    share: F64,  # [x]
    change: F64,  # [m] becomes what `outside` changes by if a variable leaves or joins the group
) -> float:
    """The shares of sets with fewer than `level` parents in the group, of its members."""
    one = np.uint64(1)
    total = 0.0
    change[:] = 0.0
    for x in range(len(owner)):
        hits = _size(parents[x] & group)
        is_member = group >> np.uint64(owner[x]) & one
        if hits < level:
            total += share[x] * is_member
            change[owner[x]] += -share[x] if is_member else share[x]
        if is_member and (hits == level - 1 or hits == level):
            touched = parents[x] & (~group if hits < level else group)
            gained = -share[x] if hits < level else share[x]
            while touched:
                lowest = touched & (~touched + one)
                change[_place(lowest)] += gained
                touched ^= lowest
    return total


@kernel
def tabu_search(
    group: np.uint64,
    level: int,
    steps: int,
    violation: float,
    owner: I64,  # [x]
    parents: U64,  # [x]
    share: F64,  # [x]
    num: int,
    found: U64,  # [steps] becomes the groups met
    short: F64,  # [steps] and by how much each is violated
) -> int:
    """Return how many groups with a violated cut are met on a walk that always changes a group by the best variable.

    A variable that has joined or left stays so for a few steps.
    """
    free_from = np.zeros(num, np.int64)
    change = np.empty(num)
    number = 0
    for step in range(steps):
        lacking = level - outside(group, level, owner, parents, share, change)
        size = _size(group)
        if size > level and lacking > violation:
            found[number], short[number] = group, lacking
            number += 1
        best = -1
        for v in range(num):
            is_member = group >> np.uint64(v) & np.uint64(1)
            is_free = free_from[v] <= step and not (is_member and size <= level + 1)
            if is_free and (best < 0 or change[v] < change[best]):
                best = v
        if best < 0:
            break
        group ^= np.uint64(1) << np.uint64(best)
        free_from[best] = step + 4 + (7 * best + step) % 5
    return number
