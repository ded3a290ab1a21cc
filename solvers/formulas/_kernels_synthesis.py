"""Kernels that search catalogues of small functions (solvers.formulas._kernels_functions) under a partial table.

care, value: determined rows, and their values (0 elsewhere). keep, flip: an answer's score is (bits & keep) ^ flip; the
least score wins. Of equal scores the first in the stated order is returned, so that results do not depend on block
sizes or hashing.

Letters of shapes: f = functions, s = sizes, l = lists, u = selected functions.
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
def find_first_match(words: U64, care: np.uint64, value: np.uint64, limit: int) -> int:
    """Return the position of the first of words[:limit] that has `value` wherever `care` is set, or -1."""
    start = 0
    while start < limit:
        end = min(start + BLOCK, limit)
        has_match = False
        for position in range(start, end):
            has_match |= (words[position] ^ value) & care == 0
        if has_match:
            break
        start = end
    # at most BLOCK steps: the match is in this block
    for position in range(start, limit):
        if (words[position] ^ value) & care == 0:
            return position
    return -1


@kernel
def find_best_match(
    words: U64, start: int, limit: int, care: np.uint64, value: np.uint64, keep: np.uint64, flip: np.uint64
) -> int:
    """Return the position of the best of words[start:limit] that agree, or -1; of equals the first."""
    best = -1
    least_score = np.uint64(0)
    while start < limit:
        offset = find_first_match(words[start:limit], care, value, limit - start)
        if offset < 0:
            break
        start += offset
        score = (words[start] & keep) ^ flip
        if best < 0 or score < least_score:
            best, least_score = start, score
        start += 1
    return best


class Selection(NamedTuple):
    """Candidate arguments of a conjunction, by list cost.

    words: [u] the functions, complemented for a disjunction
    positions: [u] their positions in the catalogue
    starts: [s] candidates of cost c are starts[c] to starts[c + 1] - 1, in the catalogue's order
    """

    words: U64
    positions: I64
    starts: I64


@kernel
def select_candidates(
    words: U64, costs: U8, limit: int, total: int, negate: np.uint64, onset: np.uint64, offset: np.uint64
) -> Selection:
    """Select functions of words[:limit], complemented where `negate` is set, as arguments of a conjunction.

    A selected function is 1 on all of `onset`, not 1 on all of `offset`, and has a list cost below `total`.
    """
    positions_found = np.empty(limit, np.int64)
    starts = np.empty(total + 2, np.int64)
    for cost in range(total + 2):
        starts[cost] = 0
    count = 0
    for start in range(0, limit, BLOCK):
        end = min(start + BLOCK, limit)
        has_candidate = False
        for position in range(start, end):
            has_candidate |= (words[position] ^ negate) & onset == onset
        if has_candidate:
            for position in range(start, end):
                candidate = words[position] ^ negate
                if candidate & onset == onset and candidate & offset != offset and costs[position] < total:
                    positions_found[count] = position
                    starts[costs[position] + 1] += 1
                    count += 1
    # counting sort by cost: linear, and stable, so that the catalogue's order remains within a cost
    next_slot = np.empty(total + 2, np.int64)
    for cost in range(total + 2):
        starts[cost] += starts[cost - 1] if cost else 0
        next_slot[cost] = starts[cost]
    selected = np.empty(count, np.uint64)
    positions = np.empty(count, np.int64)
    for index in range(count):
        cost = costs[positions_found[index]]
        selected[next_slot[cost]] = words[positions_found[index]] ^ negate
        positions[next_slot[cost]] = positions_found[index]
        next_slot[cost] += 1
    return Selection(selected, positions, starts)


@kernel
def find_cover_pair(
    selection: Selection, total: int, offset: np.uint64, keep: np.uint64, flip: np.uint64, floor: np.uint64
) -> tuple[int, int]:
    """Find two candidates of total cost `total` such that in every row of `offset` one is 0; (-1, -1) without.

    Of equally good pairs that with the smallest first, then second candidate; a score of `floor` ends the search.
    """
    words, starts = selection.words, selection.starts
    best_first = best_second = -1
    least_score = np.uint64(0)
    for cost in range(1, total // 2 + 1):
        for first in range(starts[cost], starts[cost + 1]):
            uncovered = words[first] & offset
            # each unordered pair once: of two equal costs the second candidate comes after the first
            second = max(starts[total - cost], first + 1)
            limit = starts[total - cost + 1]
            while second < limit:
                end = min(second + BLOCK, limit)
                has_cover = False
                for index in range(second, end):
                    has_cover |= words[index] & uncovered == 0
                if has_cover:
                    for index in range(second, end):
                        score = (words[first] & words[index] & keep) ^ flip
                        if words[index] & uncovered == 0 and (best_first < 0 or score < least_score):
                            best_first, best_second, least_score = first, index, score
                            if least_score == floor:
                                return best_first, best_second
                second = end
    return best_first, best_second


class ParityPairs(NamedTuple):
    """Positions of two arguments of `xor`, and of two of `iff`; -1 where there are none."""

    xor_left: int
    xor_right: int
    iff_left: int
    iff_right: int


@kernel
def find_parity_pairs(
    words: U64,
    costs: U8,  # [2, f] list costs under `xor` and `iff`; UNUSED in the row of an operator that is not allowed
    ends: I64,
    total: int,
    care: np.uint64,
    value: np.uint64,
    keep: np.uint64,
    flip: np.uint64,
) -> ParityPairs:
    """Find two functions of total cost `total` whose parity, or equality, has `value` on `care`.

    Meet in the middle: on `care` the cheaper function determines the other one. The cheaper ones are hashed by these
    values, then the others are looked up: linear in the number of functions, not quadratic. Of equally good pairs, the
    one with the smallest first, then second position, is returned.
    """
    max_size = ends.size - 1
    # a list cost is the size or one less: cost total // 2 reaches one layer further
    num_left = ends[min(total // 2 + 1, max_size)]
    bits = 10
    # two entries a function, so at most 1 of 16 slots is filled: most look-ups end at `is_filled`
    while 1 << bits < 32 * num_left:
        bits += 1
    shift = np.uint64(64 - bits)
    is_filled = np.empty(1 << bits, np.bool_)
    for slot_index in range(1 << bits):
        is_filled[slot_index] = False
    heads = np.empty(1 << bits, np.int32)  # first entry of a slot; an entry is 2 * position + operator (0 xor, 1 iff)
    following = np.empty(2 * num_left, np.int32)
    for entry in range(2 * num_left - 1, -1, -1):  # backwards, so that chains ascend
        if costs[entry & 1, entry >> 1] <= total // 2:
            key = (words[entry >> 1] ^ value ^ (care if entry & 1 else np.uint64(0))) & care
            slot = np.int64((key * MULTIPLIER) >> shift)
            following[entry] = heads[slot] if is_filled[slot] else -1
            heads[slot] = entry
            is_filled[slot] = True
    best = np.empty((2, 2), np.int64)
    best[0, 0] = best[0, 1] = best[1, 0] = best[1, 1] = -1
    least_scores = np.empty(2, np.uint64)
    least_scores[0] = least_scores[1] = 0
    hits = np.empty(BLOCK, np.int64)
    limit = ends[min(total, max_size)]
    for start in range(ends[total - total // 2 - 1], limit, BLOCK):
        num_hits = 0
        for second in range(start, min(start + BLOCK, limit)):
            # always written, counted if its slot is filled: no branch in the loop
            hits[num_hits] = second
            num_hits += is_filled[np.int64(((words[second] & care) * MULTIPLIER) >> shift)]
        for hit in range(num_hits):
            second = hits[hit]
            entry = heads[np.int64(((words[second] & care) * MULTIPLIER) >> shift)]
            while entry >= 0:
                first, operator = entry >> 1, entry & 1
                bits_of_pair = words[first] ^ words[second] ^ np.uint64(0 - operator)
                if (bits_of_pair ^ value) & care == 0 and costs[operator, first] + costs[operator, second] == total:
                    score = (bits_of_pair & keep) ^ flip
                    best_first = best[operator, 0]
                    if (
                        best_first < 0
                        or score < least_scores[operator]
                        or (score == least_scores[operator] and first < best_first)
                    ):
                        best[operator, 0], best[operator, 1], least_scores[operator] = first, second, score
                entry = following[entry]
    return ParityPairs(best[0, 0], best[0, 1], best[1, 0], best[1, 1])


@kernel
def find_iff_last(
    words: U64,
    ends: I64,
    lists: Lists,
    total: int,
    onset: np.uint64,
    care: np.uint64,
    keep: np.uint64,
    flip: np.uint64,
) -> tuple[int, int]:
    """Find a list and a last argument of total size `total` that are all equal on `onset` and nowhere else on `care`.

    (-1, -1) if there are none; of equally good answers the first list, then the first argument.
    """
    offset = care ^ onset
    best_list = best_last = -1
    least_score = np.uint64(0)
    for index in range(lists.first, lists.cost.size):
        size = total - lists.cost[index]
        if size >= ends.size:
            continue
        all_ones, all_zeros = lists.all_ones[index], lists.all_zeros[index]
        agreed = all_ones | all_zeros
        last = find_best_match(
            words,
            ends[size - 1],
            ends[size],
            onset | (offset & agreed),
            (onset & all_ones) | (offset & all_zeros),
            keep & agreed,
            flip ^ (keep & all_zeros),
        )
        if last >= 0:
            score = (((all_ones & words[last]) | (all_zeros & ~words[last])) & keep) ^ flip
            if best_list < 0 or score < least_score:
                best_list, best_last, least_score = index, last, score
    return best_list, best_last
