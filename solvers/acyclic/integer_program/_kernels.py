"""Kernels of the integer program: groups of variables whose cut is violated, and local search over orders."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from calibrant.dsl._jit import inline_kernel, kernel

# --- Kernels: tabu search for groups of variables whose cluster cut a fractional solution violates --------------------
# Letters of shapes: m = variables, x = parent sets in the support. A group is a word, a bit for each position.
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
    """Return the sum of shares of the members' parent sets that have fewer than `level` parents in the group.

    A cluster cut of that level demands at least `level`.
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
    """Walk through groups, always by the best move of one variable; return how many groups had a violated cut.

    A variable that has joined or left is tabu for 3 to 7 steps; violation: a cut counts as violated beyond it.
    """
    free_from = np.zeros(num_vars, np.int64)
    change = np.empty(num_vars)
    num_groups = 0
    for step in range(steps):
        lacking = level - share_outside(group, level, owner, parents, share, change)
        size = _count_bits(group)
        # in a group of at most `level` members, every set has fewer than `level` parents: it has no cut
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


# --- Kernels: local search over orders for an acyclic assignment of small total cost ----------------------------------
# Letters of shapes: m = variables (numbered from 0), t = perturbations, k = moves. Parent sets lie variable by
# variable, those of each the cheapest first: starts [m + 1], masks and costs [parent sets]. A set is an index there; if
# no set of a variable is within its predecessors, the index is that of the next variable's first set. Work is counted
# in tests of a parent set.
WORK_PER_VARIABLE = 4  # work that a variable takes which a move passes
IMPOSSIBLE = 1 << 56  # cost without a set: more than any assignment costs; a sum of 63 such costs fits a word


@inline_kernel
def _first_within(index: int, end: int, masks: U64, placed: np.uint64) -> int:
    """Return the first set of `index` to `end` - 1 whose members are placed; `end` without one."""
    # cheapest first, so the first that fits is the best: a few tests on average instead of all
    while index < end and masks[index] & ~placed:
        index += 1
    return index


@inline_kernel
def _cost_at(index: int, end: int, costs: I64) -> int:
    return IMPOSSIBLE if index == end else int(costs[index])


@kernel
def _choose_sets(order: I64, starts: I64, masks: U64, costs: I64, chosen: I64) -> tuple[int, int]:
    """Fill in the cheapest set of each variable within its predecessors, [m]; return the total cost, and the work."""
    total = 0
    work = WORK_PER_VARIABLE * len(order)
    placed = np.uint64(0)
    for v in order:
        chosen[v] = _first_within(starts[v], starts[v + 1], masks, placed)
        work += int(chosen[v] - starts[v])
        total += _cost_at(chosen[v], starts[v + 1], costs)
        placed |= np.uint64(1) << np.uint64(v)
    return total, work


@kernel
def _choose_later(
    order: I64, position: int, chosen: int, others: np.uint64, starts: I64, masks: U64, later_sets: I64
) -> int:
    """Fill in the cheapest set of the variable at `position` at each later position, [m]; return the work.

    chosen: its set at its position; others: word of all other variables. Positions are visited from the last one, where
    most sets fit, so that its sets are walked through once.
    """
    first = starts[order[position]]
    fitting = _first_within(first, chosen, masks, others)
    work = int(fitting - first)
    for index in range(len(order) - 1, position, -1):
        later_sets[index] = fitting
        lost = np.uint64(1) << np.uint64(order[index])
        others ^= lost
        if fitting < chosen and masks[fitting] & lost:
            previous = fitting
            fitting = _first_within(fitting + 1, chosen, masks, others)
            work += int(fitting - previous)
    return work


@kernel
def improve_order(order: I64, starts: I64, masks: U64, costs: I64) -> tuple[int, int]:
    """Improve an order in place by insertion moves, each to the best position, until none improves.

    Return its cost and the work. If a variable loses a predecessor, its set changes only if it has the predecessor, to
    a more expensive one, after it in the list; if it gains a predecessor, only a cheaper set, before it, can replace
    it.
    """
    num = len(order)
    chosen = np.empty(num, np.int64)
    later_sets = np.empty(num, np.int64)  # cheapest set of variable v at each later position
    everything = np.uint64(0)
    for v in order:
        everything |= np.uint64(1) << np.uint64(v)
    total, work = _choose_sets(order, starts, masks, costs, chosen)
    v = last_moved = 0
    is_first = True  # whether `last_moved` has not been tried since it moved
    while is_first or v != last_moved:
        is_first = False
        bit = np.uint64(1) << np.uint64(v)
        position = 0
        earlier = np.uint64(0)
        while order[position] != v:
            earlier |= np.uint64(1) << np.uint64(order[position])
            position += 1
        work += WORK_PER_VARIABLE * num
        best_gain, best_position = np.int64(0), position
        end = starts[v + 1]
        current = _cost_at(chosen[v], end, costs)
        change, placed, fitting = np.int64(0), earlier, chosen[v]
        # swaps with neighbours give every position in O(m) costs; only the variables passed change theirs
        for index in range(position - 1, -1, -1):  # v moves before u
            u = order[index]
            placed ^= np.uint64(1) << np.uint64(u)
            if chosen[u] > starts[u]:
                gained = _first_within(starts[u], chosen[u], masks, placed | bit)
                work += int(gained - starts[u])
                change += costs[gained] - _cost_at(chosen[u], starts[u + 1], costs) if gained < chosen[u] else 0
            previous = fitting
            fitting = _first_within(fitting, end, masks, placed)
            work += int(fitting - previous)
            gain = change + _cost_at(fitting, end, costs) - current
            if gain < best_gain:
                best_gain, best_position = gain, index
        work += _choose_later(order, position, chosen[v], everything ^ bit, starts, masks, later_sets)
        change, placed = np.int64(0), earlier
        for index in range(position + 1, num):  # v moves after u
            u = order[index]
            if chosen[u] < starts[u + 1] and masks[chosen[u]] & bit:
                lost = _first_within(chosen[u] + 1, starts[u + 1], masks, placed)
                work += int(lost - chosen[u])
                change += _cost_at(lost, starts[u + 1], costs) - costs[chosen[u]]
            placed |= np.uint64(1) << np.uint64(u)
            gain = change + _cost_at(later_sets[index], end, costs) - current
            if gain < best_gain:
                best_gain, best_position = gain, index
        if best_gain < 0:
            _move(order, position, best_position)
            _, more = _choose_sets(order, starts, masks, costs, chosen)
            work += more
            total += int(best_gain)
            last_moved, is_first = v, True
        v = (v + 1) % num
    return total, work


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
def perturb(best: I64, moves: I64, starts: I64, masks: U64, costs: I64) -> tuple[int, int]:
    """Perturb the best order and improve it, [t] times; keep it if it is no worse. Return its cost and the work.

    best: [m] initial order, in place the best one; moves: [t, k, 2] source and target positions of each perturbation
    """
    total, work = improve_order(best, starts, masks, costs)
    order = np.empty_like(best)
    for moves_of_round in moves:
        for index in range(len(best)):
            order[index] = best[index]
        for move in moves_of_round:
            _move(order, move[0], move[1])
        changed_total, more = improve_order(order, starts, masks, costs)
        work += more
        # ties are accepted: the search drifts across plateaus of equal cost
        if changed_total <= total:
            total = changed_total
            for index in range(len(best)):
                best[index] = order[index]
    return total, work
