"""Kernels that build catalogues of small functions.

A function of k <= 6 variables is one word of 2**k bits. A catalogue lists functions by size: those of size s are the
positions ends[s - 1] to ends[s] - 1. The *list cost* of a function under `and`, `or` or `xor` is the least total size
of one or more arguments that the operator combines to it: its size, or one less if a formula of least size has that
operator at its root, because an n-ary node takes over the arguments of such an argument.

Dimension letters: f = functions, h = hash slots, v = variables, l = lists.
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

# Codes of dsl.formulas.operators; numba compiles these numbers into the kernels of this file.
AND, OR, XOR, IFF = 1, 2, 3, 4

MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # 2**64 / golden ratio: Knuth's multiplicative hashing


class Pool(NamedTuple):
    """A set of functions that grows by whole orbits under permutation of the variables.

    words: [f] the functions, by size, an orbit in one piece
    sizes: [f]
    rooted: [f] bit op - 1 is set if a formula of least size can have and, or, xor at its root
    leads: [f] 1 for the first function of each orbit
    slots: [h] open addressing; position of a word, or -1; h is a power of two, at least 2 f
    length: [1] how many functions there are
    swaps: [v! - 1] exchanging variables w and w + 1, for w in this order, runs through all permutations
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
    """The slot that holds the word, or the empty one where it belongs."""
    last = slots.size - 1
    mixed = (word ^ (word >> np.uint64(32))) * MULTIPLIER
    slot = np.int64(mixed >> np.uint64(32)) & last
    while slots[slot] >= 0 and words[slots[slot]] != word:
        slot = (slot + 1) & last
    return slot


@kernel
def fill_slots(words: U64, slots: I32, count: int) -> None:
    """Enter the first `count` words into empty slots."""
    for position in range(count):
        slots[_slot(words, slots, words[position])] = position


@kernel
def _add_orbit(pool: Pool, word: np.uint64, size: int, roots: int) -> bool:
    """Add a function and its images under all permutations of variables; False if they do not fit any more.

    A function that is known with a smaller size stays as it is; one of the same size learns its further roots.
    """
    known = pool.slots[_slot(pool.words, pool.slots, word)]
    if known >= 0 and (pool.sizes[known] < size or pool.rooted[known] & roots == roots):
        return True
    if pool.length[0] + pool.swaps.size >= pool.words.size:
        return False
    lead = 1
    for step in range(pool.swaps.size + 1):
        slot = _slot(pool.words, pool.slots, word)
        known = pool.slots[slot]
        if known < 0:
            known = np.int32(pool.length[0])
            pool.slots[slot] = known
            pool.words[known] = word
            pool.sizes[known] = size
            pool.leads[known] = lead
            pool.length[0] += 1
            lead = 0
        pool.rooted[known] |= np.uint8(roots)
        if step < pool.swaps.size:
            variable = pool.swaps[step]
            shift = np.uint64(1) << np.uint64(variable)
            changed = (word ^ (word >> shift)) & pool.moving[variable]
            word ^= changed | (changed << shift)
    return True


@kernel
def add_variable(pool: Pool, word: np.uint64) -> bool:
    """Add the variables; `word` is one of them."""
    return _add_orbit(pool, word, 1, 0)


@kernel
def add_negations(pool: Pool, ends: I64, size: int, full: np.uint64) -> bool:
    """Add `not` of every function of size - 1."""
    for position in range(ends[size - 2], ends[size - 1]):
        if pool.leads[position] and not _add_orbit(pool, pool.words[position] ^ full, size, 0):
            return False
    return True


@kernel
def _of_cost(pool: Pool, ends: I64, cost: int, root: int, leads_only: bool) -> U64:
    """The functions of that list cost; root 0 asks for those of that size."""
    chosen = np.empty(ends[cost + 1] - ends[cost - 1], np.uint64)
    count = 0
    for position in range(ends[cost - 1], ends[cost + 1]):
        if pool.sizes[position] - (pool.rooted[position] & root != 0) == cost and pool.leads[position] >= leads_only:
            chosen[count] = pool.words[position]
            count += 1
    return chosen[:count]


@kernel
def add_pairs(pool: Pool, ends: I64, size: int, operator: int, full: np.uint64) -> bool:
    """Add `operator` of two lists of arguments (iff: of two arguments) of total size - 1.

    One of the two runs over orbits only: any formula becomes one of these by permuting its variables.
    """
    root = 0 if operator == IFF else 1 << (operator - 1)
    for left_cost in range(1, (size - 1) // 2 + 1):
        left = _of_cost(pool, ends, left_cost, root, False)
        for b in _of_cost(pool, ends, size - 1 - left_cost, root, True):
            for a in left:
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

    both, neither: [l] rows in which all members are 1, are 0
    cost: [l] total size
    member: [l] position of the last member
    parent: [l] the list without its last member, or -1
    first: lists before this one have a single member
    """

    both: U64
    neither: U64
    cost: I64
    member: I64
    parent: I64
    first: int


@kernel
def _longer(array, length):  # type: ignore[no-untyped-def]  # any array
    copy = np.empty(length, array.dtype)
    for index in range(array.size):  # assigning a slice would compile an error message too
        copy[index] = array[index]
    return copy


@kernel
def iff_lists(words: U64, sizes: U8, ends: I64, total: int, required: np.uint64, open_rows: np.uint64) -> Lists:
    """All lists of ascending members that agree on the rows `required` and leave room for one more argument.

    Room: the cost and once more the size of the last member are at most `total`. Every member of two or more
    separates rows of `open_rows` in which those before it agree; one that does not could be left out.
    """
    largest = ends.size - 1
    count = first = ends[min(total // 3, largest)]
    both, neither = np.empty(count, np.uint64), np.empty(count, np.uint64)
    cost, member, parent = np.empty(count, np.int64), np.empty(count, np.int64), np.empty(count, np.int64)
    for position in range(count):  # one loop compiles in less time than a function of numpy for each array
        both[position], neither[position] = words[position], ~words[position]
        cost[position], member[position], parent[position] = sizes[position], position, -1
    index = 0
    while index < count:
        for position in range(member[index] + 1, ends[min((total - cost[index]) // 2, largest)]):
            ones = both[index] & words[position]
            zeros = neither[index] & ~words[position]
            agreed, before = ones | zeros, both[index] | neither[index]
            left = agreed & open_rows
            if agreed & required != required or left == 0 or left == before & open_rows:
                continue
            if count == both.size:
                both, neither = _longer(both, 2 * count + 64), _longer(neither, 2 * count + 64)
                cost, member = _longer(cost, 2 * count + 64), _longer(member, 2 * count + 64)
                parent = _longer(parent, 2 * count + 64)
            both[count], neither[count] = ones, zeros
            cost[count], member[count] = cost[index] + sizes[position], position
            parent[count] = index
            count += 1
        index += 1
    return Lists(both[:count], neither[:count], cost[:count], member[:count], parent[:count], first)


@kernel
def add_iffs(pool: Pool, ends: I64, size: int, full: np.uint64) -> bool:
    """Add `iff` of three or more arguments of total size - 1."""
    count = pool.length[0]
    lists = iff_lists(pool.words[:count], pool.sizes[:count], ends[:size], size - 1, np.uint64(0), full)
    for last in range(1, size - 2):
        arguments = _of_cost(pool, ends, last, 0, True)
        for index in range(lists.first, lists.cost.size):
            if lists.cost[index] + last == size - 1 and pool.sizes[lists.member[index]] <= last:
                for word in arguments:
                    agreed = (lists.both[index] & word) | (lists.neither[index] & (word ^ full))
                    if not _add_orbit(pool, agreed, size, 0):
                        return False
    return True
