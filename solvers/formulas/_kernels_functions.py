"""Kernels that build catalogues of small Boolean functions, by exhaustive enumeration in order of formula size.

A function of k <= 6 variables is one word of 2**k bits. A catalogue lists functions by size: those of size s are the
positions ends[s - 1] to ends[s] - 1. The *list cost* of a function under `and`, `or` or `xor` is what it adds to the
size of a larger node of that operator: its size, or one less if a least formula has the operator at its root, because
the larger node then takes over the arguments and the root is saved.

Letters of shapes: f = functions, h = hash slots, v = variables, l = lists.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from calibrant.dsl._jit import kernel

U8 = npt.NDArray[np.uint8]
U64 = npt.NDArray[np.uint64]
I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]

# Codes of dsl.formulas.formula; numba compiles these numbers into the kernels of this file.
AND, OR, XOR, IFF = 1, 2, 3, 4

MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # 2**64 / golden ratio: Knuth's multiplicative hashing


class Pool(NamedTuple):
    """Hash set of functions that grows by whole orbits under permutation of the variables.

    words: [f] the functions, by size, an orbit in one piece
    sizes: [f]
    rooted: [f] bit op - 1 is set if a formula of least size can have and, or, xor at its root
    leads: [f] 1 for the first function of each orbit
    slots: [h] open addressing; position of a word, or -1; h is a power of two, at least 2 f
    length: [1] number of functions
    swaps: [v! - 1] exchanging variables w and w + 1, for w in this order, generates all permutations
    moving: [v] rows in which variable w is 1 and variable w + 1 is 0
    """

    words: U64
    sizes: U8
    rooted: U8
    leads: U8
    slots: I32
    length: I64
    swaps: I64
    moving: U64


@kernel
def _slot(words: U64, slots: I32, word: np.uint64) -> np.int64:
    """Return the slot that holds the word, or the empty one where it belongs, by linear probing."""
    # at most half of the slots are full, so a probe ends after a few steps
    mask = slots.size - 1
    mixed = (word ^ (word >> np.uint64(32))) * MULTIPLIER
    slot = np.int64(mixed >> np.uint64(32)) & mask
    while slots[slot] >= 0 and words[slots[slot]] != word:
        slot = (slot + 1) & mask
    return slot


@kernel
def fill_slots(words: U64, slots: I32, count: int) -> None:
    """Enter the first `count` words into empty slots."""
    for position in range(count):
        slots[_slot(words, slots, words[position])] = position


@kernel
def _add_orbit(pool: Pool, word: np.uint64, size: int, roots: int) -> bool:
    """Add a function and its images under all permutations of variables; False if the pool is full.

    A function that is listed with a smaller size stays unchanged; one of the same size gains the roots.

    roots: bits as in `Pool.rooted`
    """
    position = pool.slots[_slot(pool.words, pool.slots, word)]
    if position >= 0 and (pool.sizes[position] < size or pool.rooted[position] & roots == roots):
        return True
    # room for a largest orbit, v! = swaps + 1 functions: an orbit is added whole or not at all
    if pool.length[0] + pool.swaps.size >= pool.words.size:
        return False
    is_lead = 1
    for step in range(pool.swaps.size + 1):
        slot = _slot(pool.words, pool.slots, word)
        position = pool.slots[slot]
        if position < 0:
            position = np.int32(pool.length[0])
            pool.slots[slot] = position
            pool.words[position] = word
            pool.sizes[position] = size
            pool.leads[position] = is_lead
            pool.length[0] += 1
            is_lead = 0
        pool.rooted[position] |= np.uint8(roots)
        if step < pool.swaps.size:
            variable = pool.swaps[step]
            # exchanges the rows in which the two variables differ: a delta swap (H. S. Warren, Hacker's Delight)
            shift = np.uint64(1) << np.uint64(variable)
            changed = (word ^ (word >> shift)) & pool.moving[variable]
            word ^= changed | (changed << shift)
    return True


@kernel
def add_variable(pool: Pool, word: np.uint64) -> bool:
    """Add the variables, which are the orbit of any one of them, `word`."""
    return _add_orbit(pool, word, 1, 0)


@kernel
def add_negations(pool: Pool, ends: I64, size: int, full: np.uint64) -> bool:
    """Add `not` of every function of size - 1; `full` has a 1 in every row. False if the pool is full."""
    # one function of each orbit is enough: permuting commutes with `not`
    for position in range(ends[size - 2], ends[size - 1]):
        if pool.leads[position] and not _add_orbit(pool, pool.words[position] ^ full, size, 0):
            return False
    return True


@kernel
def _functions_of_cost(pool: Pool, ends: I64, cost: int, root: int, leads_only: bool) -> U64:
    """Return the functions of that list cost, for root 0 of that size; leads_only: the first of each orbit alone."""
    chosen = np.empty(ends[cost + 1] - ends[cost - 1], np.uint64)
    count = 0
    # list cost is the size or one less, so only two layers are searched
    for position in range(ends[cost - 1], ends[cost + 1]):
        list_cost = pool.sizes[position] - (pool.rooted[position] & root != 0)
        if list_cost == cost and (pool.leads[position] or not leads_only):
            chosen[count] = pool.words[position]
            count += 1
    return chosen[:count]


@kernel
def add_pairs(pool: Pool, ends: I64, size: int, operator: int, full: np.uint64) -> bool:
    """Add `operator` of two functions whose list costs (iff: sizes) add up to size - 1; False if the pool is full.

    One of the two runs over orbits only: any formula becomes one of these by permuting its variables.
    """
    root = 0 if operator == IFF else 1 << (operator - 1)
    for left_cost in range(1, (size - 1) // 2 + 1):
        left_functions = _functions_of_cost(pool, ends, left_cost, root, False)
        for b in _functions_of_cost(pool, ends, size - 1 - left_cost, root, True):
            for a in left_functions:
                if operator == AND:
                    word = a & b
                elif operator == OR:
                    word = a | b
                elif operator == XOR:
                    word = a ^ b
                else:
                    word = a ^ b ^ full
                if not _add_orbit(pool, word, size, root):
                    return False
    return True


class Lists(NamedTuple):
    """Arguments of an `iff`, all but the last and largest one, each list an extension of an earlier one.

    all_ones, all_zeros: [l] rows in which all members are 1, are 0
    cost: [l] total size
    member: [l] position of the last member
    parent: [l] the list without its last member, or -1
    first: lists before this one have a single member
    """

    all_ones: U64
    all_zeros: U64
    cost: I64
    member: I64
    parent: I64
    first: int


@kernel
def _grow_array(array, length):  # type: ignore[no-untyped-def]  # any array
    copy = np.empty(length, array.dtype)
    for index in range(array.size):  # assigning a slice would compile an error message too
        copy[index] = array[index]
    return copy


@kernel
def list_iff_arguments(
    words: U64, sizes: U8, ends: I64, total: int, required: np.uint64, open_rows: np.uint64
) -> Lists:
    """List ascending arguments that agree on the rows `required` and leave room for one more argument.

    Room: the cost and once more the size of the last member are at most `total`. Every member of two or more
    separates rows of `open_rows` in which those before it agree; one that does not could be left out.
    """
    max_size = ends.size - 1
    count = first = ends[min(total // 3, max_size)]  # the first of at least three ascending arguments
    all_ones, all_zeros = np.empty(count, np.uint64), np.empty(count, np.uint64)
    cost, member, parent = np.empty(count, np.int64), np.empty(count, np.int64), np.empty(count, np.int64)
    for position in range(count):  # one loop compiles in less time than a function of numpy for each array
        all_ones[position], all_zeros[position] = words[position], ~words[position]
        cost[position], member[position], parent[position] = sizes[position], position, -1
    index = 0
    while index < count:
        for position in range(member[index] + 1, ends[min((total - cost[index]) // 2, max_size)]):
            ones = all_ones[index] & words[position]
            zeros = all_zeros[index] & ~words[position]
            agreed, before = ones | zeros, all_ones[index] | all_zeros[index]
            open_agreed = agreed & open_rows
            separates_nothing = open_agreed == before & open_rows
            if agreed & required != required or open_agreed == 0 or separates_nothing:
                continue
            if count == all_ones.size:
                all_ones, all_zeros = _grow_array(all_ones, 2 * count + 64), _grow_array(all_zeros, 2 * count + 64)
                cost, member = _grow_array(cost, 2 * count + 64), _grow_array(member, 2 * count + 64)
                parent = _grow_array(parent, 2 * count + 64)
            all_ones[count], all_zeros[count] = ones, zeros
            cost[count], member[count] = cost[index] + sizes[position], position
            parent[count] = index
            count += 1
        index += 1
    return Lists(all_ones[:count], all_zeros[:count], cost[:count], member[:count], parent[:count], first)


@kernel
def add_iffs(pool: Pool, ends: I64, size: int, full: np.uint64) -> bool:
    """Add `iff` of three or more arguments of total size - 1; False if the pool is full."""
    count = pool.length[0]
    lists = list_iff_arguments(pool.words[:count], pool.sizes[:count], ends[:size], size - 1, np.uint64(0), full)
    for last_size in range(1, size - 2):  # at least two arguments of size 1 come before
        arguments = _functions_of_cost(pool, ends, last_size, 0, True)
        for index in range(lists.first, lists.cost.size):
            if lists.cost[index] + last_size == size - 1 and pool.sizes[lists.member[index]] <= last_size:
                for word in arguments:
                    agreed = (lists.all_ones[index] & word) | (lists.all_zeros[index] & (word ^ full))
                    if not _add_orbit(pool, agreed, size, 0):
                        return False
    return True
