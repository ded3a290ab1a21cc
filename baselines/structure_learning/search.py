"""Greedy structure learning: hill climbing and tabu search, as the R package bnlearn performs them.

Both add, delete or reverse one arc at a time. They scan the candidates in a fixed order and keep the first among those
whose gain is the same within a tolerance, so one data set gives one DAG, and the order of the columns matters. What
exactly is done is described in docs/structure_learning.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import TypeAlias

import numpy as np

from calibrant.baselines.structure_learning._kernels_search import ADD, DROP, climb, wander
from calibrant.baselines.structure_learning.frame import Dag
from calibrant.baselines.structure_learning.graph import Constraints, is_acyclic
from calibrant.baselines.structure_learning.scores import LocalScores

UNLIMITED = 1 << 62  # more steps than any search makes
ATTEMPTS_PER_CHANGE = 3  # bnlearn draws so many random operations for each change it wants
SCORE_TOLERANCE = 2.0**-26  # scores closer than this are the same


@dataclass(frozen=True, slots=True)
class HillClimbing:
    """Take the best move as long as one improves the score.

    max_moves: stop after so many
    """

    max_moves: int = UNLIMITED

    def __post_init__(self) -> None:
        if self.max_moves < 1:
            raise ValueError(f"max_moves is {self.max_moves}; at least 1")


@dataclass(frozen=True, slots=True)
class Tabu:
    """Take the best move to a network that is not among the last ones, downhill too if there is no better.

    length: how many networks are remembered, and how many steps may fail to beat the best network
    max_iterations: stop after so many moves
    """

    length: int = 10
    max_iterations: int = UNLIMITED

    def __post_init__(self) -> None:
        if self.length < 1 or self.max_iterations < 1:
            raise ValueError(f"length is {self.length}, max_iterations {self.max_iterations}; at least 1 each")


Method: TypeAlias = HillClimbing | Tabu


@dataclass(frozen=True, slots=True)
class ArcMove:
    """One step of a search; `kind` is add, drop or reverse, of the arc parent -> child as it was (or became)."""

    kind: str
    parent: int
    child: int


@dataclass(frozen=True, slots=True)
class Learned:
    """A learned structure, its score, and the moves that were made (for tabu, also those after the best network)."""

    dag: Dag
    score: float
    moves: tuple[ArcMove, ...]


def learn(scores: LocalScores, constraints: Constraints, method: Method, *, start: Dag | None = None) -> Learned:
    """Run a search from a DAG (without one, from the required arcs alone).

    Required arcs are added to `start`, forbidden ones taken out of it.
    """
    _check(scores, constraints)
    parents = np.array(_legal_start(constraints, start), np.int64)
    allowed, required = constraints.arrays()
    if isinstance(method, Tabu):
        moves, num_moves = wander(
            scores.scoring, allowed, required, constraints.max_parents, method.length, method.max_iterations, parents
        )
    else:
        moves, num_moves = climb(scores.scoring, allowed, required, constraints.max_parents, method.max_moves, parents)
    dag = tuple(parents.tolist())
    steps = tuple(ArcMove(("add", "drop", "reverse")[kind], i, j) for kind, i, j in moves[:num_moves].tolist())
    return Learned(dag, scores.total(dag), steps)


def learn_with_restarts(
    scores: LocalScores,
    constraints: Constraints,
    rng: Random,
    *,
    restarts: int,
    changes: int = 1,
    max_moves: int = UNLIMITED,
    start: Dag | None = None,
) -> Learned:
    """Hill climbing that goes on `restarts` times from a random disturbance of the best local optimum so far.

    changes: random additions, deletions and reversals per disturbance. The limit on moves is shared by all climbs.
    """
    if restarts < 0 or changes < 1:
        raise ValueError(f"restarts is {restarts}, changes {changes}; at least 0 and 1")
    best = learn(scores, constraints, HillClimbing(max_moves), start=start)
    moves = best.moves
    for _ in range(restarts):
        num_remaining = max_moves - len(moves)
        if num_remaining < 1:
            break
        disturbed = disturb(best.dag, constraints, rng, changes)
        improved = learn(scores, constraints, HillClimbing(num_remaining), start=disturbed)
        moves += improved.moves
        if improved.score - best.score > SCORE_TOLERANCE:
            best = improved
    return replace(best, moves=moves)


def disturb(dag: Dag, constraints: Constraints, rng: Random, changes: int) -> Dag:
    """Up to `changes` random legal operations; the kind is drawn first, then one of the arcs it may be applied to."""
    done = 0
    for _ in range(ATTEMPTS_PER_CHANGE * changes):
        options = _operations(dag, constraints, rng.randrange(3))
        if options:
            dag = rng.choice(options)
            done += 1
        if done == changes:
            break
    return dag


def _operations(dag: Dag, constraints: Constraints, kind: int) -> list[Dag]:
    """Every DAG that one legal operation of a kind leads to."""
    pairs = [(i, j) for j in range(len(dag)) for i in range(len(dag)) if i != j]
    present = [(i, j) for i, j in pairs if dag[j] >> i & 1]
    if kind == ADD:
        reached = [_toggle_arcs(dag, pair) for pair in pairs if pair not in present and pair[::-1] not in present]
    elif kind == DROP:
        reached = [_toggle_arcs(dag, arc) for arc in present]
    else:
        reached = [_toggle_arcs(dag, arc, arc[::-1]) for arc in present]
    return [after for after in reached if constraints.admits(after)]


def _toggle_arcs(dag: Dag, *arcs: tuple[int, int]) -> Dag:
    changed = list(dag)
    for i, j in arcs:
        changed[j] ^= 1 << i
    return tuple(changed)


def _check(scores: LocalScores, constraints: Constraints) -> None:
    if constraints.num_vars != scores.frame.num_vars:
        raise ValueError(f"constraints on {constraints.num_vars} variables, a frame of {scores.frame.num_vars}")


def _legal_start(constraints: Constraints, start: Sequence[int] | None) -> Dag:
    """Return the start with required arcs in it and forbidden ones taken out."""
    if start is None:
        return constraints.required
    legal = zip(start, constraints.allowed, constraints.required, strict=True)
    dag = tuple(parents & may | must for parents, may, must in legal)
    if not is_acyclic(dag):
        raise ValueError("the start has a cycle, or gets one from the required arcs")
    return dag
