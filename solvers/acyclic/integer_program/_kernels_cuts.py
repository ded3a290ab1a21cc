"""Kernels: tabu search for groups of variables whose cluster cut a fractional solution violates.

Letters of shapes: m = variables, x = parent sets in the support. A group is a word, a bit for each position.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from calibrant.dsl._jit import kernel

U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]
F64 = npt.NDArray[np.float64]


@kernel
def _count_bits(group: np.uint64) -> int:
    size = 0
    while group:
        group &= group - np.uint64(1)
        size += 1
    return size


@kernel
def _bit_position(bit: np.uint64) -> int:
    """Return the index of the only set bit of a word."""
    position = 0
    while bit >> np.uint64(position) != np.uint64(1):
        position += 1
    return position


@kernel
def share_outside(
    group: np.uint64,
    level: int,
    owner: I64,  # [x]
    parents: U64,  # [x]
    share: F64,  # [x]
    change: F64,  # [m] out: by how much the result changes if a variable leaves or joins the group
) -> float:
    """Sum the shares of the members' parent sets that have fewer than `level` parents in the group.

    A cluster cut of that level demands a sum of at least `level`.
    """
    one_bit = np.uint64(1)
    total = 0.0
    change[:] = 0.0
    for x in range(len(owner)):
        hits = _count_bits(parents[x] & group)
        is_member = group >> np.uint64(owner[x]) & one_bit
        if hits < level:
            total += share[x] * is_member
            change[owner[x]] += -share[x] if is_member else share[x]
        # another variable's move matters only where it carries the number of hits across the level
        if is_member and (hits == level - 1 or hits == level):
            touched = parents[x] & (~group if hits < level else group)
            share_change = -share[x] if hits < level else share[x]
            while touched:
                lowest = touched & (~touched + one_bit)
                change[_bit_position(lowest)] += share_change
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
    num_vars: int,
    groups: U64,  # [steps] out: groups with a violated cut
    violations: F64,  # [steps] out: by how much each is violated
) -> int:
    """Walk through groups, always by the best single change; return how many had a violated cut.

    A variable that has joined or left is tabu for 3 to 7 steps.
    """
    free_from = np.zeros(num_vars, np.int64)
    change = np.empty(num_vars)
    num_groups = 0
    for step in range(steps):
        lacking = level - share_outside(group, level, owner, parents, share, change)
        size = _count_bits(group)
        # a group of at most `level` members has only sets of fewer than `level` parents in it: no cut
        if size > level and lacking > violation:
            groups[num_groups], violations[num_groups] = group, lacking
            num_groups += 1
        best = -1
        for v in range(num_vars):
            is_member = group >> np.uint64(v) & np.uint64(1)
            is_free = free_from[v] <= step and not (is_member and size <= level + 1)
            if is_free and (best < 0 or change[v] < change[best]):
                best = v
        if best < 0:
            break
        group ^= np.uint64(1) << np.uint64(best)
        # the tenure varies, without random numbers: with a fixed one walks may cycle
        free_from[best] = step + 4 + (7 * best + step) % 5
    return num_groups
