"""Kernels over DAGs: arcs that all equivalent DAGs share, and greedy search."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from calibrant.baselines.structure_learning._kernels_scores import Scoring, copy, lowest, remembered_score, set_size
from calibrant.dsl._jit import kernel

# --- Kernels: which arcs of a DAG every equivalent DAG has, and how often arcs occur in many DAGs ---------------------
# Dimension letters: v = variables, r = DAGs. A DAG is an array [v] of parent masks.
I64 = npt.NDArray[np.int64]


@kernel
def compelled_arcs(parents: I64, protected: I64, compelled: I64) -> None:
    """Fill in compelled, [v] masks: for each variable the parents whose arcs every DAG of the class has.

    protected: [v] parents whose arcs cannot be reversed, whatever the data

    These are the protected arcs, those of colliders, and those that the four rules of Meek 1995 (background knowledge)
    imply; each rule can only confirm an arc of the DAG.
    """
    num_vars = parents.shape[0]
    adjacent = parents.copy()
    for j in range(num_vars):
        unvisited = parents[j]
        while unvisited:
            adjacent[lowest(unvisited)] |= np.int64(1) << j
            unvisited &= unvisited - 1
    for j in range(num_vars):
        compelled[j] = parents[j] & protected[j]
        for i in range(num_vars):
            apart = parents[j] & ~adjacent[i] & ~(np.int64(1) << i)
            if parents[j] >> i & 1 and apart:
                compelled[j] |= np.int64(1) << i
    changed = True
    while changed:
        changed = False
        for j in range(num_vars):
            unvisited = parents[j] & ~compelled[j]
            while unvisited:
                i = lowest(unvisited)
                unvisited &= unvisited - 1
                if _follows(i, j, adjacent, compelled):
                    compelled[j] |= np.int64(1) << i
                    changed = True


@kernel
def _follows(i: int, j: int, adjacent: I64, compelled: I64) -> bool:
    """Return whether one of Meek's rules forces i -> j."""
    if compelled[i] & ~adjacent[j] & ~(np.int64(1) << j):  # 1: a -> i, a and j apart
        return True
    into = compelled[j]
    unvisited = into
    while unvisited:  # 2: i -> a -> j
        a = lowest(unvisited)
        unvisited &= unvisited - 1
        if compelled[a] >> i & 1:
            return True
    unvisited = into & adjacent[i]
    between = unvisited & ~compelled[i]
    while unvisited:
        a = lowest(unvisited)
        unvisited &= unvisited - 1
        if between >> a & 1 and between & ~adjacent[a] & ~(np.int64(1) << a):  # 3: i - a -> j, i - b -> j, a, b apart
            return True
        if compelled[a] & adjacent[i] & ~adjacent[j] & ~(np.int64(1) << j):  # 4: i - b -> a -> j, b and j apart
            return True
    return False


@kernel
def count_arcs(dags: I64, protected: I64, counts: I64) -> None:
    """Add the arcs of the classes of DAGs [r, v] to counts [from, to]: 2 for a compelled arc, else 1 each way.

    protected: [v] as for `compelled_arcs`; if every arc is protected, the arcs of the DAGs themselves are counted
    """
    compelled = np.empty(dags.shape[1], np.int64)
    for r in range(dags.shape[0]):
        compelled_arcs(dags[r], protected, compelled)
        for j in range(dags.shape[1]):
            unvisited = dags[r, j]
            while unvisited:
                i = lowest(unvisited)
                unvisited &= unvisited - 1
                if compelled[j] >> i & 1:
                    counts[i, j] += 2
                else:
                    counts[i, j] += 1
                    counts[j, i] += 1


@kernel
def essential_graphs(dags: I64, separated: I64, graphs: I64) -> None:
    """Fill in the essential graphs of DAGs [r, v]: graphs [r, 2 v], masks of directed parents, then of neighbours.

    separated: [v] columns u such that some intervention set exactly one of u and v, which directs their arc
    """
    num_vars = dags.shape[1]
    compelled = np.empty(num_vars, np.int64)
    for r in range(dags.shape[0]):
        compelled_arcs(dags[r], separated, compelled)
        for v in range(num_vars):
            graphs[r, v] = compelled[v]
            graphs[r, num_vars + v] = 0
        for v in range(num_vars):
            unvisited = dags[r, v] & ~compelled[v]
            while unvisited:
                u = lowest(unvisited)
                unvisited &= unvisited - 1
                graphs[r, num_vars + v] |= np.int64(1) << u
                graphs[r, num_vars + u] |= np.int64(1) << v


# --- Kernels: greedy search over DAGs, step for step as bnlearn does it -----------------------------------------------
# Dimension letters: v = variables, l = length of the tabu list.
# A DAG is an array [v] of parent masks. A move is (kind, from, to) with the arc from -> to as it was before the move.
F64 = npt.NDArray[np.float64]

NO_MOVE, ADD, DROP, REVERSE = -1, 0, 1, 2
TOLERANCE = 2.0**-26  # sqrt of the machine epsilon: bnlearn ignores smaller differences of scores


@kernel
def is_ancestor(parents: I64, start: int, end: int) -> bool:
    """Return whether a directed path of at least one arc leads from `start` to `end`."""
    visited = np.int64(0)
    frontier = parents[end]
    while frontier:
        if frontier >> start & 1:
            return True
        visited |= frontier
        further = np.int64(0)
        while frontier:
            further |= parents[lowest(frontier)]
            frontier &= frontier - 1
        frontier = further & ~visited
    return False


@kernel
def apply_move(parents: I64, kind: int, i: int, j: int) -> None:
    """Toggle i -> j, and for a reversal j -> i too. A second call reverts an addition or a deletion."""
    parents[j] ^= np.int64(1) << i
    if kind == REVERSE:
        parents[i] ^= np.int64(1) << j


@kernel
def closes_cycle(parents: I64, kind: int, i: int, j: int) -> bool:
    """Return whether an addition or a reversal would leave a directed cycle."""
    if kind == ADD:
        return is_ancestor(parents, j, i)
    if kind == DROP:
        return False
    parents[j] ^= np.int64(1) << i
    has_cycle = is_ancestor(parents, i, j)
    parents[j] ^= np.int64(1) << i
    return has_cycle


@kernel
def is_visited(parents: I64, kind: int, i: int, j: int, visited: I64, num_visited: int) -> bool:
    """Return whether the network after a move is in the list [l, v]."""
    for slot in range(num_visited):
        is_equal = True
        for v in range(parents.shape[0]):
            after = parents[v]
            if v == j:
                after ^= np.int64(1) << i
            if kind == REVERSE and v == i:
                after ^= np.int64(1) << j
            if after != visited[slot, v]:
                is_equal = False
                break
        if is_equal:
            return True
    return False


@kernel
def update_deltas(
    scoring: Scoring, allowed: I64, max_parents: int, parents: I64, child: int, reference: F64, deltas: F64
) -> None:
    """Compute the gain of every legal toggle of an arc into one child: deltas[i, child]; 0 below the tolerance."""
    current = parents[child]
    may_grow = set_size(current) < max_parents
    for i in range(
        -1, parents.shape[0]
    ):  # -1: no toggle; in a loop, because a second call of the score would be compiled twice
        bit = np.int64(1) << i if i >= 0 else np.int64(0)
        if i < 0 or current & bit or (may_grow and allowed[child] & bit):
            score = remembered_score(scoring, child, current ^ bit)
            if i < 0:
                reference[child] = score
            else:
                delta = score - reference[child]
                deltas[i, child] = 0.0 if abs(delta) < TOLERANCE else delta


@kernel
def best_move(
    allowed: I64,
    required: I64,
    max_parents: int,
    parents: I64,
    deltas: F64,
    threshold: float,  # a move has to gain more than this
    negligible: float,  # a reversal that gains less in absolute value counts as 0
    visited: I64,  # [l, v] networks that may not be entered
    num_visited: int,
    move: I64,  # [3] out
) -> None:
    """Write the best legal move to `move`, the first in scan order among those within the tolerance of each other.

    The order: additions, deletions, reversals; in each by `from`, then by `to`.
    """
    num_vars = parents.shape[0]
    best = threshold
    move[0] = NO_MOVE
    for kind in range(3):
        for i in range(num_vars):
            for j in range(num_vars):
                present = parents[j] >> i & 1
                if kind == ADD:
                    if i == j or present or parents[i] >> j & 1 or not allowed[j] >> i & 1:
                        continue
                    if set_size(parents[j]) >= max_parents:
                        continue
                elif not present or required[j] >> i & 1:
                    continue
                delta = deltas[i, j]
                if kind == REVERSE:
                    if not allowed[i] >> j & 1 or set_size(parents[i]) >= max_parents:
                        continue
                    delta += deltas[j, i]
                    if abs(delta) < negligible:
                        delta = 0.0
                if delta - best > TOLERANCE:
                    if closes_cycle(parents, kind, i, j) or is_visited(parents, kind, i, j, visited, num_visited):
                        continue
                    best = delta
                    move[0] = kind
                    move[1] = i
                    move[2] = j


@kernel
def total(scores: F64) -> float:
    """Return the sum, added from first to last."""
    total = 0.0
    for v in range(scores.shape[0]):
        total += scores[v]
    return total


@kernel
def append_move(moves: I64, count: int, move: I64) -> I64:
    """Return the log [moves, 3] with one more move; a larger array if it was full."""
    if count == moves.shape[0]:
        larger = np.empty((2 * count, 3), np.int64)
        for row in range(count):
            copy(moves[row], larger[row])
        moves = larger
    copy(move, moves[count])
    return moves


@kernel
def climb(
    scoring: Scoring, allowed: I64, required: I64, max_parents: int, max_moves: int, parents: I64
) -> tuple[I64, int]:
    """Climb from `parents`, in place; return the moves, in an array that may be longer, and their number."""
    num_vars = parents.shape[0]
    reference = np.zeros(num_vars)
    deltas = np.zeros((num_vars, num_vars))
    move = np.empty(3, np.int64)
    nothing = np.empty((0, num_vars), np.int64)
    moves = np.empty((64, 3), np.int64)
    count = 0
    for v in range(num_vars):
        update_deltas(scoring, allowed, max_parents, parents, v, reference, deltas)
    while count < max_moves:
        best_move(allowed, required, max_parents, parents, deltas, 0.0, TOLERANCE, nothing, 0, move)
        if move[0] == NO_MOVE:
            break
        moves = append_move(moves, count, move)
        count += 1
        apply_move(parents, move[0], move[1], move[2])
        update_deltas(scoring, allowed, max_parents, parents, move[2], reference, deltas)
        if move[0] == REVERSE:
            update_deltas(scoring, allowed, max_parents, parents, move[1], reference, deltas)
    return moves, count


@kernel
def wander(
    scoring: Scoring,
    allowed: I64,
    required: I64,
    max_parents: int,
    tabu_length: int,
    max_iterations: int,
    parents: I64,
) -> tuple[I64, int]:
    """Run a tabu search from `parents`, in place: they become the network that bnlearn returns.

    The tabu list holds the last `tabu_length` networks, which are never entered, however good. The search stops after
    `tabu_length` steps in a row that do not beat the best network.
    """
    num_vars = parents.shape[0]
    reference = np.zeros(num_vars)
    deltas = np.zeros((num_vars, num_vars))
    move = np.empty(3, np.int64)
    visited = np.empty((tabu_length, num_vars), np.int64)
    moves = np.empty((64, 3), np.int64)
    best = np.empty(num_vars, np.int64)
    best_score = -np.inf
    losses = 0
    iteration = 1
    for v in range(num_vars):
        update_deltas(scoring, allowed, max_parents, parents, v, reference, deltas)
    while True:
        score = total(reference)
        if iteration == 1 or score - best_score >= TOLERANCE:
            copy(parents, best)
            best_score = score
        copy(parents, visited[(iteration - 1) % tabu_length])
        num_tabu = min(iteration, tabu_length)
        best_move(allowed, required, max_parents, parents, deltas, 0.0, 0.0, visited, num_tabu, move)
        is_ascent = move[0] != NO_MOVE
        if not is_ascent:
            if losses >= tabu_length:
                break
            losses += 1
            best_move(allowed, required, max_parents, parents, deltas, -np.inf, 0.0, visited, num_tabu, move)
            if move[0] == NO_MOVE:
                break
        moves = append_move(moves, iteration - 1, move)
        apply_move(parents, move[0], move[1], move[2])
        update_deltas(scoring, allowed, max_parents, parents, move[2], reference, deltas)
        if move[0] == REVERSE:
            update_deltas(scoring, allowed, max_parents, parents, move[1], reference, deltas)
        if is_ascent and total(reference) - best_score >= TOLERANCE:
            losses = 0
        if iteration >= max_iterations:
            if losses == 0:
                copy(parents, best)
            iteration += 1
            break
        iteration += 1
    copy(best, parents)
    return moves, iteration - 1
