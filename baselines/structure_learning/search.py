"""Greedy structure learning, as bnlearn performs it, arc strengths from resampled rows, averaged networks.

Hill climbing and tabu search add, delete or reverse one arc at a time. They scan the candidates in a fixed order and
keep the first among those whose gain is the same within a tolerance, so one data set gives one DAG, and the order of
the columns matters. What exactly is done is described in docs/structure_learning.md.

A resampled row keeps the interventions of the row it is a copy of. (bnlearn's boot.strength does not: see
tests.support.bnlearn.) Friedman, Goldszmidt and Wyner 1999 is the method.

The rule for what is strong is that of Scutari and Nagarajan 2013 (Identifying significant edges in graphical models of
molecular networks): the strengths of a perfectly certain structure are all 0 or 1, so take the share p of zeros for
which such a step function is closest to the observed distribution of strengths, in L1.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from math import ceil
from random import Random
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from calibrant.baselines.structure_learning._kernels_graphs import ADD, DROP, climb, compelled_arcs, count_arcs, wander
from calibrant.baselines.structure_learning._kernels_scores import EMPTY, pack_rows
from calibrant.baselines.structure_learning.constraints import Constraints, Dag, Frame, is_acyclic
from calibrant.baselines.structure_learning.scores import LocalScores, NetworkScore, scoring

# --- Greedy structure learning: hill climbing and tabu search, as the R package bnlearn performs them -----------------
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


# --- Arc strengths, and the network that is made of the strong ones ---------------------------------------------------
F64 = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class ArcStrengths:
    """Confidence in each arc and in its direction.

    variables: names, in column order
    strength: [v, v] probability that two variables are adjacent; symmetric, 0 on the diagonal
    direction: [v, v] probability that the arc goes from the row's to the column's variable if there is one
    """

    variables: tuple[str, ...]
    strength: F64
    direction: F64

    def frequency(self) -> F64:
        """[v, v] probability of the arc from the row's to the column's variable."""
        return self.strength * self.direction

    def sorted_strengths(self) -> F64:
        """Return the strengths of all ordered pairs, ascending; every pair of variables is there twice."""
        pairs = ~np.eye(len(self.variables), dtype=np.bool_)
        return np.sort(self.strength[pairs])


class AveragedNetwork(NamedTuple):
    """arcs: (from, to) as indices, both ways where the direction is undecided; refused: strong but closed a cycle."""

    arcs: tuple[tuple[int, int], ...]
    refused: tuple[tuple[int, int], ...]


def strengths_from_frequencies(variables: tuple[str, ...], frequency: F64) -> ArcStrengths:
    """From the probability of each arc, [from, to]."""
    strength = frequency + frequency.T
    direction = np.divide(frequency, strength, out=np.zeros_like(frequency), where=strength > 0)
    return ArcStrengths(variables, strength, direction)


def step_areas(strengths: F64) -> tuple[F64, F64]:
    """Return the distribution function F of sorted strengths as steps between 0 and 1: widths and heights."""
    points = np.unique(np.concatenate(([0.0], strengths, [1.0])))
    heights = np.searchsorted(strengths, points[:-1], side="right") / len(strengths)
    return np.diff(points), heights


def quantile_at(strengths: F64, share: float) -> float:
    """Return the strength below or at which a share of the sorted strengths lies (a type 1 quantile)."""
    position = len(strengths) * share
    nearest = round(position)
    rank = nearest if abs(position - nearest) < 1e-9 else ceil(position)
    return float(strengths[max(rank, 1) - 1])


def inclusion_threshold(strengths: ArcStrengths) -> float:
    """Return the strength above which an arc is significant: the exact minimum of the L1 distance.

    The distance is least at the median of F over the unit interval; where an interval of values is optimal the lowest
    is taken, which includes most arcs.
    """
    ordered = strengths.sorted_strengths()
    if not len(ordered):
        return 0.0
    widths, heights = step_areas(ordered)
    by_height = np.argsort(heights, kind="stable")
    covered = np.cumsum(widths[by_height])
    return quantile_at(ordered, float(heights[by_height][np.searchsorted(covered, covered[-1] / 2 - 1e-12)]))


def averaged_network(strengths: ArcStrengths, *, threshold: float | None = None) -> AveragedNetwork:
    """Return the significant arcs in their likelier direction, strongest first, without those that would close a cycle.

    An arc of strength 1 is always significant. Equally strong arcs are taken by column order. An undecided arc stays
    undirected unless one of its directions closes a cycle.
    """
    chosen = significant_arcs(strengths, inclusion_threshold(strengths) if threshold is None else threshold)
    return without_cycles(len(strengths.variables), sorted(chosen, key=lambda arc: -strengths.strength[arc]))


def significant_arcs(strengths: ArcStrengths, threshold: float) -> list[tuple[int, int]]:
    """Arcs stronger than the threshold that point at least as likely this way as the other, by column order."""
    is_strong = (strengths.strength > threshold) | (strengths.strength >= 1)
    chosen = is_strong & (strengths.direction >= 0.5)
    return [(int(i), int(j)) for i, j in np.argwhere(chosen)]


def without_cycles(num_vars: int, arcs: Iterable[tuple[int, int]]) -> AveragedNetwork:
    """Add arcs one by one; an arc is refused if it closes a cycle with others than its own reverse."""
    parents = [0] * num_vars
    accepted, refused = [], []
    for i, j in arcs:
        if _leads(parents, j, i):
            refused.append((i, j))
        else:
            parents[j] |= 1 << i
            accepted.append((i, j))
    return AveragedNetwork(tuple(sorted(accepted)), tuple(refused))


def _leads(parents: list[int], start: int, end: int) -> bool:
    """Return whether a directed path of at least two arcs leads from `start` to `end`."""
    visited = 1 << end
    frontier = parents[end] & ~(1 << start)
    while frontier:
        visited |= frontier
        reached = 0
        for v in range(len(parents)):
            if frontier >> v & 1:
                reached |= parents[v]
        if reached >> start & 1:
            return True
        frontier = reached & ~visited
    return False


# --- Bootstrap: how often an arc is learned when the rows are drawn again ---------------------------------------------
I64 = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]


class Resamples(NamedTuple):
    """rows: [replicates, rows] positions drawn; orders: [replicates, variables] the variable in each column."""

    rows: I64
    orders: I64


class CountedAs(Enum):
    """Graph that stands for a learned DAG when arcs are counted.

    DAG: itself
    CPDAG: its observational equivalence class, arcs that the class leaves open counting half each way
    CLASS: the DAGs its score cannot tell from it: for an interventional score an arc is also directed if somewhere
        exactly one of its ends was set (Hauser and Buehlmann 2012); for others the same as CPDAG
    Forbidden and required arcs direct theirs in both classes. Only the score-equivalent scores (BDe, mbde, BIC, AIC,
    log-likelihood) are constant on a class.
    """

    DAG = "dag"
    CPDAG = "cpdag"
    CLASS = "class"


def draw_resamples(
    rng: np.random.Generator, num_rows: int, num_vars: int, *, replicates: int = 200, shuffle_columns: bool = True
) -> Resamples:
    """Rows with replacement, as many as there are; and orders of the columns, to break a search's ties at random."""
    rows = rng.integers(num_rows, size=(replicates, num_rows))
    orders = np.tile(np.arange(num_vars), (replicates, 1))
    return Resamples(rows, rng.permuted(orders, axis=1) if shuffle_columns else orders)


def bootstrap_dags(
    frame: Frame, score: NetworkScore, constraints: Constraints, method: Method, resamples: Resamples
) -> list[Dag]:
    """Return the DAG learned from each resample."""
    clamped = resampled_interventions(frame, resamples)
    return [tuple(dag) for dag in learn_resampled(frame, score, constraints, method, resamples, clamped).tolist()]


def arc_strengths(
    frame: Frame,
    score: NetworkScore,
    constraints: Constraints,
    method: Method,
    resamples: Resamples,
    *,
    counted_as: CountedAs = CountedAs.CLASS,
) -> ArcStrengths:
    """Count how often each arc is learned from the resamples."""
    clamped = resampled_interventions(frame, resamples)
    dags = learn_resampled(frame, score, constraints, method, resamples, clamped)
    return strengths_of(frame, dags, protected_arcs(frame, score, constraints, counted_as))


def resampled_interventions(frame: Frame, resamples: Resamples) -> U64:
    """Per resampled row the variables that were set in its source, [replicates, rows] masks."""
    _check_resamples(frame, resamples)
    return frame.clamped[resamples.rows]


def learn_resampled(
    frame: Frame, score: NetworkScore, constraints: Constraints, method: Method, resamples: Resamples, clamped: U64
) -> I64:
    """Return the DAG of each resample as parent masks [replicates, variables].

    clamped: [replicates, rows] per resampled row the variables that count as set in it, as a mask
    """
    if constraints.num_vars != frame.num_vars:
        raise ValueError(f"constraints on {constraints.num_vars} variables, a frame of {frame.num_vars}")
    num_rows, orders = resamples.rows.shape[1], resamples.orders
    sized = Frame(frame.variables, *np.zeros((2, num_rows), np.uint64))
    room = scoring(sized, score.terms(num_rows, frame.num_vars), sized.clamped)
    columns, masks = np.empty_like(room.columns), np.empty_like(room.counted_rows)
    everything = np.full(clamped.shape, (1 << frame.num_vars) - 1, np.uint64)
    counted_rows = everything & ~clamped if score.interventional else everything
    allowed, required = (
        _reorder_masks(np.tile(masks_of_kind, (len(orders), 1)), orders) for masks_of_kind in constraints.arrays()
    )
    learned = required.copy()
    for rows, rows_counted, order, may, must, parents in zip(
        frame.values[resamples.rows], counted_rows, orders, allowed, required, learned, strict=True
    ):
        pack_rows(rows, columns)
        pack_rows(rows_counted, masks)
        columns.take(order, 0, room.columns)
        masks.take(order, 0, room.counted_rows)
        room.keys.fill(EMPTY)
        if isinstance(method, Tabu):
            wander(room, may, must, constraints.max_parents, method.length, method.max_iterations, parents)
        else:
            climb(room, may, must, constraints.max_parents, method.max_moves, parents)
    return _reorder_masks(learned, orders.argsort(axis=1))


def _reorder_masks(dags: I64, orders: I64) -> I64:
    """Parent masks [replicates, variables] with orders[r, c] as variable c of replicate r."""
    variables = np.arange(orders.shape[1])
    members = dags[..., None] >> variables & 1
    moved = members[np.arange(len(orders))[:, None, None], orders[:, :, None], orders[:, None, :]]
    return moved @ (np.int64(1) << variables)


def strengths_of(frame: Frame, dags: I64, protected: I64) -> ArcStrengths:
    """Arc frequencies over DAGs [replicates, variables]; see `protected_arcs`."""
    counts = np.zeros((frame.num_vars, frame.num_vars), np.int64)
    count_arcs(dags, protected, counts)
    return strengths_from_frequencies(frame.variables, counts / (2 * max(1, len(dags))))


def protected_arcs(frame: Frame, score: NetworkScore, constraints: Constraints, counted_as: CountedAs) -> I64:
    """[variables] per variable the parents whose arcs are never counted both ways."""
    full = (1 << frame.num_vars) - 1
    if counted_as is CountedAs.DAG:
        return np.full(frame.num_vars, full, np.int64)
    protected = list(constraints.required)
    for child in range(frame.num_vars):
        for parent in range(frame.num_vars):
            if parent != child and not constraints.allowed[parent] >> child & 1:
                protected[child] |= 1 << parent
    if counted_as is CountedAs.CLASS and score.interventional:
        for targets in np.unique(frame.clamped).tolist():
            for child in range(frame.num_vars):
                protected[child] |= full & ~targets if targets >> child & 1 else targets
    return np.array(protected, np.int64)


def essential_arcs(dag: Dag, protected: I64) -> Dag:
    """Return the arcs of a DAG that all DAGs of its class have; the others can be turned without leaving the class."""
    compelled = np.empty(len(dag), np.int64)
    compelled_arcs(np.array(dag, np.int64), protected, compelled)
    return tuple(compelled.tolist())


def _check_resamples(frame: Frame, resamples: Resamples) -> None:
    replicates = len(resamples.rows)
    columns = np.broadcast_to(np.arange(frame.num_vars), (replicates, frame.num_vars))
    if not np.array_equal(np.sort(resamples.orders, axis=1), columns):
        raise ValueError(f"the orders are not {replicates} permutations of {frame.num_vars} columns")
    if resamples.rows.size and not 0 <= resamples.rows.min() <= resamples.rows.max() < frame.num_rows:
        raise ValueError(f"resampled rows are not all among the {frame.num_rows} of the frame")
