"""Kernels that search catalogues of small functions (see solvers.formulas._kernels_functions) under a partial table.

care, value: rows that are determined, and their values there (0 elsewhere). keep, flip: of several answers the one
with the least (bits & keep) ^ flip is wanted. Order is part of every answer: of equally good ones the first in the
stated order is returned.

Dimension letters: f = functions, s = sizes, l = lists, u = selected functions.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from calibrant.dsl._jit import kernel
from calibrant.solvers.formulas._kernels_functions import I64, U8, U64, Lists

BLOCK = 128  # functions that are tested together; long enough for vector instructions, short enough to stop early
UNUSED = 255  # a list cost that no search reaches
MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # 2**64 / golden ratio: Knuth's multiplicative hashing


@kernel
def first_match(words: U64, care: np.uint64, value: np.uint64, limit: int) -> int:
    """Position of the first of words[:limit] that has `value` wherever `care` is set, or -1."""
    start = 0
    while start < limit:
        end = min(start + BLOCK, limit)
        hit = False
        for position in range(start, end):
            hit |= (words[position] ^ value) & care == 0
        if hit:
            break
        start = end
    for position in range(start, limit):
        if (words[position] ^ value) & care == 0:
            return position
    return -1


@kernel
def best_match(
    words: U64, start: int, limit: int, care: np.uint64, value: np.uint64, keep: np.uint64, flip: np.uint64
) -> int:
    """Position of the best of words[start:limit] that agree, or -1; of equals the first."""
    best = -1
    least = np.uint64(0)
    while start < limit:
        found = first_match(words[start:limit], care, value, limit - start)
        if found < 0:
            break
        start += found
        score = (words[start] & keep) ^ flip
        if best < 0 or score < least:
            best, least = start, score
        start += 1
    return best


class Selection(NamedTuple):
    """Candidate arguments of a conjunction, by list cost.

    words: [u] the functions, complemented for a disjunction
    positions: [u] where they are in the catalogue
    starts: [s] candidates of cost c are starts[c] to starts[c + 1] - 1, in the catalogue's order
    """

    words: U64
    positions: I64
    starts: I64


@kernel
def select(
    words: U64, costs: U8, limit: int, total: int, negate: np.uint64, onset: np.uint64, offset: np.uint64
) -> Selection:
    """Functions of words[:limit], complemented where `negate` is set, that are 1 on `onset` and not on all of `offset`.

    Only those of cost below `total` are selected.
    """
    found = np.empty(limit, np.int64)
    starts = np.empty(total + 2, np.int64)
    for cost in range(total + 2):
        starts[cost] = 0
    count = 0
    for start in range(0, limit, BLOCK):
        end = min(start + BLOCK, limit)
        hit = False
        for position in range(start, end):
            hit |= (words[position] ^ negate) & onset == onset
        if hit:
            for position in range(start, end):
                candidate = words[position] ^ negate
                if candidate & onset == onset and candidate & offset != offset and costs[position] < total:
                    found[count] = position
                    starts[costs[position] + 1] += 1
                    count += 1
    place = np.empty(total + 2, np.int64)
    for cost in range(total + 2):
        starts[cost] += starts[cost - 1] if cost else 0
        place[cost] = starts[cost]
    chosen = np.empty(count, np.uint64)
    positions = np.empty(count, np.int64)
    for index in range(count):
        cost = costs[found[index]]
        chosen[place[cost]] = words[found[index]] ^ negate
        positions[place[cost]] = found[index]
        place[cost] += 1
    return Selection(chosen, positions, starts)


@kernel
def cover_pair(
    selection: Selection, total: int, offset: np.uint64, keep: np.uint64, flip: np.uint64, floor: np.uint64
) -> tuple[int, int]:
    """Two candidates of total cost `total`, one of them 0 in every row of `offset`; (-1, -1) if there are none.

    Of equally good pairs that with the smallest first, then second candidate; a score of `floor` cannot be beaten.
    """
    words, starts = selection.words, selection.starts
    best_left = best_right = -1
    least = np.uint64(0)
    for cost in range(1, total // 2 + 1):
        for left in range(starts[cost], starts[cost + 1]):
            uncovered = words[left] & offset
            right = max(starts[total - cost], left + 1)
            limit = starts[total - cost + 1]
            while right < limit:
                end = min(right + BLOCK, limit)
                hit = False
                for index in range(right, end):
                    hit |= words[index] & uncovered == 0
                if hit:
                    for index in range(right, end):
                        score = (words[left] & words[index] & keep) ^ flip
                        if words[index] & uncovered == 0 and (best_left < 0 or score < least):
                            best_left, best_right, least = left, index, score
                            if least == floor:
                                return best_left, best_right
                right = end
    return best_left, best_right


class ParityPairs(NamedTuple):
    """Positions of two arguments of `xor`, and of two of `iff`; -1 where there are none."""

    xor_left: int
    xor_right: int
    iff_left: int
    iff_right: int


@kernel
def parity_pairs(
    words: U64,
    costs: U8,  # [2, f] list costs under `xor` and `iff`; UNUSED in the row of an operator that is not wanted
    ends: I64,
    total: int,
    care: np.uint64,
    value: np.uint64,
    keep: np.uint64,
    flip: np.uint64,
) -> ParityPairs:
    """Two functions of total cost `total` whose parity, or equality, has `value` on `care`.

    The cheaper ones are hashed by what the other one has to be on `care`, then all others are looked up. Of equally
    good pairs that with the smallest left, then right position.
    """
    largest = ends.size - 1
    num_left = ends[min(total // 2 + 1, largest)]
    bits = 10
    while 1 << bits < 32 * num_left:
        bits += 1
    shift = np.uint64(64 - bits)
    known = np.empty(1 << bits, np.bool_)
    for place in range(1 << bits):
        known[place] = False
    heads = np.empty(1 << bits, np.int32)  # 2 * left + operator
    following = np.empty(2 * num_left, np.int32)
    for entry in range(2 * num_left - 1, -1, -1):  # backwards, so that chains ascend
        if costs[entry & 1, entry >> 1] <= total // 2:
            key = (words[entry >> 1] ^ value ^ (care if entry & 1 else np.uint64(0))) & care
            slot = np.int64((key * MULTIPLIER) >> shift)
            following[entry] = heads[slot] if known[slot] else -1
            heads[slot] = entry
            known[slot] = True
    best = np.empty((2, 2), np.int64)
    best[0, 0] = best[0, 1] = best[1, 0] = best[1, 1] = -1
    least = np.empty(2, np.uint64)
    least[0] = least[1] = 0
    hits = np.empty(BLOCK, np.int64)
    limit = ends[min(total, largest)]
    for start in range(ends[total - total // 2 - 1], limit, BLOCK):
        num_hits = 0
        for right in range(start, min(start + BLOCK, limit)):
            hits[num_hits] = right
            num_hits += known[np.int64(((words[right] & care) * MULTIPLIER) >> shift)]
        for hit in range(num_hits):
            right = hits[hit]
            entry = heads[np.int64(((words[right] & care) * MULTIPLIER) >> shift)]
            while entry >= 0:
                left, operator = entry >> 1, entry & 1
                bits_of_pair = words[left] ^ words[right] ^ np.uint64(0 - operator)
                if (bits_of_pair ^ value) & care == 0 and costs[operator, left] + costs[operator, right] == total:
                    score = (bits_of_pair & keep) ^ flip
                    held = best[operator, 0]
                    if held < 0 or score < least[operator] or (score == least[operator] and left < held):
                        best[operator, 0], best[operator, 1], least[operator] = left, right, score
                entry = following[entry]
    return ParityPairs(best[0, 0], best[0, 1], best[1, 0], best[1, 1])


@kernel
def iff_last(
    words: U64,
    ends: I64,
    lists: Lists,
    total: int,
    onset: np.uint64,
    care: np.uint64,
    keep: np.uint64,
    flip: np.uint64,
) -> tuple[int, int]:
    """A list and a listed last argument of total size `total` that are all equal on `onset` and nowhere else on `care`.

    (-1, -1) if there are none; of equally good answers the first list, then the first argument.
    """
    offset = care ^ onset
    best_list = best_last = -1
    least = np.uint64(0)
    for index in range(lists.first, lists.cost.size):
        size = total - lists.cost[index]
        if size >= ends.size:
            continue
        both, neither = lists.both[index], lists.neither[index]
        agreed = both | neither
        last = best_match(
            words,
            ends[size - 1],
            ends[size],
            onset | (offset & agreed),
            (onset & both) | (offset & neither),
            keep & agreed,
            flip ^ (keep & neither),
        )
        if last >= 0:
            score = (((both & words[last]) | (neither & ~words[last])) & keep) ^ flip
            if best_list < 0 or score < least:
                best_list, best_last, least = index, last, score
    return best_list, best_last
