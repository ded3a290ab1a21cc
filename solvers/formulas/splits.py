"""The ways to write a function as an operator applied to arguments, all but the largest of them listed.

Each generator yields formulas of exactly the size asked for that agree with the goal, and among them one of least
score, if there is any formula of this operator and size at all and none smaller agrees with the goal. They yield first
what needs listed functions only, then what leaves the largest argument to a further search.

What an argument leaves to the others: under `and` nothing where it is 0, under `or` nothing where it is 1, under a
parity one value in every row, under `iff` one value where the arguments so far agree and nothing elsewhere.

Lists. The arguments of `and`, `or`, `xor` of total size n, all listed in a catalogue up to size t, fall into two parts
whose combinations are listed too (a single argument, or a list cost below t) whenever 2 (n - t) < t: either the largest
argument leaves less than t to the others, or no argument exceeds n - t, and then the shortest prefix that reaches
n - t + 1 stays below t. So pairs of listed functions suffice, up to size 17 for t = 11. Above, the smallest argument is
taken off first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from solvers.formulas import _kernels_synthesis as kernels
from solvers.formulas._kernels_functions import I64, Lists, iff_lists
from solvers.formulas.catalogue import LISTING
from solvers.formulas.goal import Goal, Listed, Part, Split, split

if TYPE_CHECKING:
    from solvers.formulas.decomposition import Decomposition


def junctions(search: Decomposition, goal: Goal, size: int, operator: str) -> Iterator[Split]:
    """`and` or `or`; a disjunction is the conjunction of the complements, complemented."""
    functions, total = search.functions, size - 1
    negate = search.full if operator == "or" else 0
    inner = goal.shifted(negate)
    onset, offset = inner.value, inner.care ^ inner.value
    limit = int(functions.ends[min(total, functions.max_size)])
    search.budget.spend(limit)
    chosen = kernels.select(
        functions.words, functions.costs(operator), limit, total, *map(np.uint64, (negate, onset, offset))
    )
    search.budget.spend(_num_pairs(chosen.starts, total))
    left, right = kernels.cover_pair(chosen, total, *map(np.uint64, (offset, inner.keep, inner.flip, goal.floor)))
    if left >= 0:
        pair = (search.listed(int(chosen.positions[index])) for index in (left, right))
        yield split(operator, pair, size, search.full)
    for cost, remainder in _remainders(search, total, operator):
        for index in range(chosen.starts[cost], chosen.starts[cost + 1]):
            word = int(chosen.words[index])
            rest = Goal(onset | (offset & word), onset, inner.keep & word, inner.flip)
            part = remainder(rest.shifted(negate))
            if part is not None:
                yield split(operator, (search.listed(int(chosen.positions[index])), part), size, search.full)


def parities(search: Decomposition, goal: Goal, size: int, operator: str) -> Iterator[Split]:
    """`xor`, and `iff` of two arguments, which is its complement."""
    functions, total = search.functions, size - 1
    pairs = search.parity_pairs(goal, total)
    xor, iff = (pairs.xor_left, pairs.xor_right), (pairs.iff_left, pairs.iff_right)
    left, right = xor if operator == "xor" else iff
    if left >= 0:
        yield split(operator, map(search.listed, (left, right)), size, search.full)
    inner = goal.shifted(search.full if operator == "iff" else 0)
    costs = functions.costs(operator)
    for cost, remainder in _remainders(search, total, operator):
        start, end = functions.ends[cost - 1], functions.ends[min(cost + 1, functions.max_size)]
        for position in start + np.flatnonzero(costs[start:end] == cost):
            argument = search.listed(int(position))
            part = remainder(inner.shifted(argument.bits))
            if part is not None:
                yield split(operator, (argument, part), size, search.full)


def equalities(search: Decomposition, goal: Goal, size: int) -> Iterator[Split]:
    """`iff` of three or more arguments."""
    functions, total = search.functions, size - 1
    onset, offset = goal.value, goal.care ^ goal.value
    search.budget.spend(_num_list_pairs(functions.ends, total))
    lists = iff_lists(functions.words, functions.sizes, functions.ends, total, np.uint64(onset), np.uint64(offset))
    sizes_left = total - lists.cost[lists.first :]
    layers = np.append(0, np.diff(functions.ends, append=functions.ends[-1]))  # an unlisted size counts nothing
    search.budget.spend(int(layers[np.minimum(sizes_left, len(layers) - 1)].sum()))
    chosen, last = kernels.iff_last(
        functions.words, functions.ends, lists, total, *map(np.uint64, (onset, goal.care, goal.keep, goal.flip))
    )
    if chosen >= 0:
        yield split("iff", (*_members(search, lists, chosen), search.listed(last)), size, search.full)
    for index in lists.first + np.flatnonzero(sizes_left > functions.max_size):
        both = int(lists.both[index])
        neither = int(lists.neither[index]) & search.full
        agreed = both | neither
        rest = Goal(
            onset | (offset & agreed),
            (onset & both) | (offset & neither),
            goal.keep & agreed,
            goal.flip ^ (goal.keep & neither),
        )
        part = search.smallest(rest, total - int(lists.cost[index]))
        if part is not None:
            yield split("iff", (*_members(search, lists, int(index)), part), size, search.full)


def _remainders(
    search: Decomposition, total: int, operator: str
) -> Iterator[tuple[int, Callable[[Goal], Part | None]]]:
    """List costs of what may be taken off, and the search for the rest: one unlisted argument, or two parts again."""
    listed = search.functions.max_size
    for cost in range(1, total - listed):
        yield cost, partial(search.smallest, size=total - cost)
    if operator in LISTING and 2 * (total - listed) >= listed:
        for cost in range(1, total // 3 + 1):
            yield cost, partial(search.rooted, size=total - cost + 1, operator=operator)


def _members(search: Decomposition, lists: Lists, index: int) -> Iterator[Listed]:
    while index >= 0:
        yield search.listed(int(lists.member[index]))
        index = int(lists.parent[index])


def _num_pairs(starts: I64, total: int) -> int:
    """How many pairs of candidates have that total cost; an upper bound where both cost the same."""
    counts = np.diff(starts)
    return sum(int(counts[cost] * counts[total - cost]) for cost in range(1, total // 2 + 1))


def _num_list_pairs(ends: I64, total: int) -> int:
    """How many pairs of arguments an `iff` of three or more could begin with."""
    largest = len(ends) - 1
    layers = [(size, int(ends[size] - ends[size - 1])) for size in range(1, min(total // 3, largest) + 1)]
    return sum(count * int(ends[min((total - size) // 2, largest)]) for size, count in layers)
