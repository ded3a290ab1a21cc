"""Least formulas beyond a catalogue: an exact search over the operator at the root and its arguments.

To ask for a formula of size s that agrees with a partial table, s - 1 nodes are divided among the arguments. All but
the largest come from the catalogue, and what is left to the largest is again a partial table with more open rows
(see below). That question is a scan of the catalogue, or the same question for a smaller size.

The ways to write a function as an operator applied to arguments, all but the largest of them listed.

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

from collections.abc import Callable, Iterable, Iterator
from functools import partial

import numpy as np

from calibrant.dsl.formulas.table import full_mask
from calibrant.solvers.budget import Budget
from calibrant.solvers.formulas import _kernels_synthesis as kernels
from calibrant.solvers.formulas._kernels_functions import I64, Lists, iff_lists
from calibrant.solvers.formulas.catalogue import LISTING, Catalogue
from calibrant.solvers.formulas.goal import Decomposed, Goal, Listed, Part, split


class Decomposition:
    """Exact search in one catalogue; remembers what it has refuted.

    Questions are asked in ascending size: a search for size s relies on there being no smaller formula that agrees.
    A state of the budget is a listed function that is compared, or a pair of them.
    """

    def __init__(self, functions: Catalogue) -> None:
        self.functions = functions
        self.full = full_mask(functions.num_vars)
        self.budget = Budget()
        self._refuted: set[tuple[int, int, int]] = set()
        self._parity_pairs: dict[tuple[Goal, int], kernels.ParityPairs] = {}

    @property
    def max_size(self) -> int:
        """Largest size that can be searched: of two arguments one has to be listed."""
        return 2 * self.functions.max_size + 2

    def smallest(self, goal: Goal, size: int) -> Part | None:
        """The best function with a formula of that size that agrees, or None."""
        if size <= self.functions.max_size:
            return self._scan(goal, size)
        return self._search(goal, size, self.functions.operators)

    def rooted(self, goal: Goal, size: int, operator: str) -> Decomposed | None:
        """Find the best decomposition among formulas with the operator at their root."""
        return best(goal, self._candidates(goal, size, operator))

    def listed(self, position: int) -> Listed:
        return Listed(int(self.functions.words[position]), int(self.functions.sizes[position]), position)

    def parity_pairs(self, goal: Goal, total: int) -> kernels.ParityPairs:
        """The best two listed arguments of that total cost for `xor`, and for `iff`; one pass for both."""
        question = goal, total
        if question not in self._parity_pairs:
            functions = self.functions
            self.budget.spend(int(functions.ends[min(total, functions.max_size)]))
            self._parity_pairs[question] = kernels.parity_pairs(
                functions.words, functions.parity_costs, functions.ends, total, *map(np.uint64, goal)
            )
        return self._parity_pairs[question]

    def _scan(self, goal: Goal, size: int) -> Listed | None:
        start, end = (int(end) for end in self.functions.ends[size - 1 : size + 1])
        self.budget.spend(end - start)
        position = kernels.best_match(self.functions.words, start, end, *map(np.uint64, goal))
        return None if position < 0 else self.listed(position)

    def _search(self, goal: Goal, size: int, operators: Iterable[str]) -> Decomposed | None:
        question = goal.care, goal.value, size
        if question in self._refuted:
            return None
        found = best(goal, (part for name in operators for part in self._candidates(goal, size, name)))
        if found is None:
            self._refuted.add(question)
        return found

    def _candidates(self, goal: Goal, size: int, operator: str) -> Iterator[Decomposed]:
        match operator:
            case "not":
                yield from self._negations(goal, size)
            case "and" | "or":
                yield from junctions(self, goal, size, operator)
            case "xor":
                yield from parities(self, goal, size, operator)
            case "iff":
                yield from parities(self, goal, size, operator)
                yield from equalities(self, goal, size)
            case _:
                raise AssertionError(operator)

    def _negations(self, goal: Goal, size: int) -> Iterator[Decomposed]:
        inner = goal.shifted(self.full)
        part: Part | None
        if size - 1 <= self.functions.max_size:
            part = self._scan(inner, size - 1)
        else:  # no `not` below a `not`: without both the formula would be smaller
            part = self._search(inner, size - 1, (name for name in self.functions.operators if name != "not"))
        if part is not None:
            yield split("not", [part], size, self.full)


def best(goal: Goal, candidates: Iterable[Decomposed]) -> Decomposed | None:
    """The candidate of least score, of equals the first; stops when no later one can be better."""
    chosen = None
    for part in candidates:
        if chosen is None or goal.score(part.bits) < goal.score(chosen.bits):
            chosen = part
        if goal.score(chosen.bits) == goal.floor:
            break
    return chosen


# --- the ways to split -----------------------------------------------------------------------------------------------


def junctions(search: Decomposition, goal: Goal, size: int, operator: str) -> Iterator[Decomposed]:
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


def parities(search: Decomposition, goal: Goal, size: int, operator: str) -> Iterator[Decomposed]:
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


def equalities(search: Decomposition, goal: Goal, size: int) -> Iterator[Decomposed]:
    """`iff` of three or more arguments."""
    functions, total = search.functions, size - 1
    onset, offset = goal.value, goal.care ^ goal.value
    search.budget.spend(_num_list_pairs(functions.ends, total))
    words = functions.words[: functions.ends[min(total // 2, functions.max_size)]]
    lists = iff_lists(words, functions.sizes, functions.ends, total, np.uint64(onset), np.uint64(offset))
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
    """Return how many pairs of candidates have that total cost; an upper bound where both cost the same."""
    counts = np.diff(starts)
    return sum(int(counts[cost] * counts[total - cost]) for cost in range(1, total // 2 + 1))


def _num_list_pairs(ends: I64, total: int) -> int:
    """Return how many pairs of arguments an `iff` of three or more could begin with."""
    largest = len(ends) - 1
    layers = [(size, int(ends[size] - ends[size - 1])) for size in range(1, min(total // 3, largest) + 1)]
    return sum(count * int(ends[min((total - size) // 2, largest)]) for size, count in layers)
