"""Bootstrap: how often an arc is learned when the rows are drawn again.

A resampled row keeps the interventions of the row it is a copy of. (bnlearn's boot.strength does not: see
tests.support.bnlearn.compatible.) Friedman, Goldszmidt and Wyner 1999 is the method.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from calibrant.baselines.structure_learning._kernels_equivalence import compelled_arcs, count_arcs
from calibrant.baselines.structure_learning._kernels_scores import EMPTY, pack_rows
from calibrant.baselines.structure_learning._kernels_search import climb, wander
from calibrant.baselines.structure_learning.averaging import ArcStrengths, strengths_from_frequencies
from calibrant.baselines.structure_learning.constraints import Constraints
from calibrant.baselines.structure_learning.frame import Dag, Frame
from calibrant.baselines.structure_learning.scores import NetworkScore, scoring
from calibrant.baselines.structure_learning.search import Method, Tabu

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
    _check(frame, resamples)
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


def _check(frame: Frame, resamples: Resamples) -> None:
    replicates = len(resamples.rows)
    columns = np.broadcast_to(np.arange(frame.num_vars), (replicates, frame.num_vars))
    if not np.array_equal(np.sort(resamples.orders, axis=1), columns):
        raise ValueError(f"the orders are not {replicates} permutations of {frame.num_vars} columns")
    if resamples.rows.size and not 0 <= resamples.rows.min() <= resamples.rows.max() < frame.num_rows:
        raise ValueError(f"resampled rows are not all among the {frame.num_rows} of the frame")
