"""The DAG of highest score, exactly: also the k best, all that are as good, and what to believe about each arc.

Dynamic programming over subsets of variables, so for problems of the benchmark's size (6 to 10 variables) it takes
about a millisecond and replaces a greedy search that is not certain to get there. Silander and Myllymaki 2006 (the
best), Tian, He and Ram 2010 (the k best), Koivisto and Sood 2004, Koivisto 2006 (posteriors).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from math import fsum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from calibrant.baselines.structure_learning._kernels_optimum import (
    TIE,
    best_networks,
    best_within,
    k_best_networks,
    networks_within,
    parent_set_posteriors,
)
from calibrant.baselines.structure_learning.graph import Constraints, Dag, Mask
from calibrant.baselines.structure_learning.scores import LocalScores
from calibrant.baselines.structure_learning.search import ArcStrengths, strengths_from_frequencies

MAX_KEPT = 1 << 26  # parent masks that k_best may keep at once: 512 MB
MAX_STEPS = 200_000_000  # steps of the enumeration of networks: about a second

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]


class ScoredDag(NamedTuple):
    """A network and the sum of its local scores."""

    dag: Dag
    score: float


class ScoredDags(NamedTuple):
    """Networks by falling score; `is_complete` says whether no other belongs in the list."""

    dags: tuple[ScoredDag, ...]
    is_complete: bool


class ScoredParents(NamedTuple):
    """A parent set of some variable with its score or its probability."""

    parents: Mask
    value: float


@dataclass(frozen=True, slots=True, eq=False)
class Posteriors:
    """Posterior probabilities of arcs and parent sets, averaged over all orders and all consistent networks.

    The prior is order-modular: a network weighs as much as there are topological orders of it among those that are
    possible, so networks that leave the order open weigh more than under a uniform prior over networks. Where the
    order is known there is one, and every network that agrees with it weighs the same.

    parent_sets: [v, 2**v] probability of each parent set; log_evidence: log of the sum over orders and networks
    """

    variables: tuple[str, ...]
    parent_sets: F64
    log_evidence: float

    def arcs(self) -> ArcStrengths:
        """Exact arc strengths, in the place of bootstrap frequencies."""
        num_vars = len(self.variables)
        masks = np.arange(1 << num_vars)
        frequency = np.zeros((num_vars, num_vars))
        for parent in range(num_vars):
            frequency[parent] = self.parent_sets[:, masks >> parent & 1 == 1].sum(axis=1)
        return strengths_from_frequencies(self.variables, frequency)

    def likeliest_parent_sets(self, child: int, count: int) -> list[ScoredParents]:
        """Return the parent sets of one variable that are most probable, first the most."""
        return _highest(self.parent_sets[child], count)


class ScoreOptimum:
    """Exact answers about one frame under one score and one set of constraints."""

    def __init__(
        self,
        scores: LocalScores,
        constraints: Constraints,
        listen: Callable[[int, int], None] = lambda done, total: None,
    ) -> None:
        """Score all parent sets that the constraints admit; `listen` is told how many shares of how many are done."""
        if constraints.num_vars != scores.frame.num_vars:
            raise ValueError(f"constraints on {constraints.num_vars} variables, a frame of {scores.frame.num_vars}")
        self._adopt(scores.frame.variables, scores.table(constraints, listen), constraints.earlier)

    @classmethod
    def of_table(cls, variables: tuple[str, ...], table: F64, earlier: Iterable[Mask]) -> ScoreOptimum:
        """Return the answers about local scores, [v, 2**v], minus infinity for parent sets that are not admitted."""
        optimum = cls.__new__(cls)
        optimum._adopt(variables, table, tuple(earlier))
        return optimum

    def _adopt(self, variables: tuple[str, ...], table: F64, earlier: tuple[Mask, ...]) -> None:
        self.variables = variables
        self.table = table
        self.earlier = earlier

    def best(self, *, roots: Mask = 0) -> ScoredDag:
        """Return a network of highest score; with `roots`, of those in which these variables have no parents."""
        best, chosen = self._best_within
        num_vars = len(best)
        totals, sinks = self._totals(roots)
        dag = [0] * num_vars
        unplaced = (1 << num_vars) - 1
        if totals[unplaced] == -np.inf:
            raise ValueError("a root is required to have a parent")
        while unplaced:
            sink = int(sinks[unplaced])
            unplaced ^= 1 << sink
            dag[sink] = 0 if roots >> sink & 1 else int(chosen[sink, unplaced])
        return self._score_dag(dag)

    def best_by_roots(self, hypotheses: Iterable[Mask]) -> list[tuple[Mask, ScoredDag]]:
        """Return the best network under each set of roots, by falling score (equal ones in the order given)."""
        optima = [(roots, self.best(roots=roots)) for roots in hypotheses]
        return sorted(optima, key=lambda item: -item[1].score)

    def k_best(self, k: int) -> list[ScoredDag]:
        """Return the k networks of highest score, fewer if there are not so many.

        Which of equal ones comes last is open.
        """
        num_vars, num_sets = self.table.shape
        if k < 1 or num_sets * k * num_vars > MAX_KEPT:
            raise ValueError(
                f"k is {k}; 1 to {MAX_KEPT // (num_sets * num_vars)} are possible with {num_vars} variables"
            )
        counts = np.empty(num_sets, np.int64)
        totals = np.empty((num_sets, k))
        networks = np.empty((num_sets, k, num_vars), np.int64)
        k_best_networks(*self._ranked, k, counts, totals, networks)
        return [self._score_dag(networks[-1, i].tolist()) for i in range(counts[-1])]

    def co_optimal(self, *, limit: int = 10_000) -> ScoredDags:
        """All networks whose score is the best one, within 1e-9."""
        return self.within(TIE, limit=limit)

    def within(self, gap: float, *, limit: int = 10_000) -> ScoredDags:
        """All networks at most `gap` below the best, by falling score.

        If there are more than `limit`, or the enumeration takes too many steps, some of them, and the result says so.
        """
        networks, is_complete = self.list_within(gap, limit, MAX_STEPS)
        dags = sorted((self._score_dag(dag) for dag in networks.tolist()), key=lambda item: (-item.score, item.dag))
        return ScoredDags(tuple(dags), is_complete)

    def list_within(self, gap: float, limit: int, max_steps: int) -> tuple[I64, bool]:
        """Return networks at most `gap` below the best, [networks, v], unsorted, and whether they are all."""
        totals, _ = self._totals(0)
        networks = np.empty((limit, len(self.table)), np.int64)
        count, is_complete = networks_within(*self._ranked, totals, gap, max_steps, networks)
        return networks[:count], is_complete

    def totals_of(self, networks: I64) -> F64:
        """Return the scores of networks, [networks, v]."""
        totals: F64 = self.table[np.arange(len(self.table)), networks].sum(axis=1)
        return totals

    def posteriors(self) -> Posteriors:
        """Probabilities of all parent sets; local scores are taken for log marginal likelihoods, so use BDe or mbde."""
        posteriors = np.empty_like(self.table)
        log_evidence = parent_set_posteriors(self.table, np.array(self.earlier, np.int64), posteriors)
        if log_evidence == -np.inf:
            raise ValueError("no network that the constraints admit agrees with the known order")
        return Posteriors(self.variables, posteriors, log_evidence)

    def best_parent_sets(self, child: int, count: int) -> list[ScoredParents]:
        """Return the parent sets of one variable with the highest local scores, first the highest, acyclicity aside."""
        return _highest(self.table[child], count)

    def _totals(self, roots: Mask) -> tuple[F64, I64]:
        totals, sinks = np.empty(self.table.shape[1]), np.empty(self.table.shape[1], np.int64)
        best_networks(self._best_within[0], roots, np.ascontiguousarray(self.table[:, 0]), totals, sinks)
        return totals, sinks

    @cached_property
    def _best_within(self) -> tuple[F64, I64]:
        best, chosen = np.empty_like(self.table), np.empty(self.table.shape, np.int64)
        best_within(self.table, best, chosen)
        return best, chosen

    @cached_property
    def _ranked(self) -> tuple[I64, F64]:
        """Admitted parent sets and their scores by falling score, [v, e]; rows are padded with -1."""
        width = int(np.isfinite(self.table).sum(axis=1).max())
        order = np.argsort(-self.table, axis=1, kind="stable")[:, :width]
        scores = np.take_along_axis(self.table, order, axis=1)
        return np.where(np.isfinite(scores), order, -1), scores

    def _score_dag(self, dag: list[int]) -> ScoredDag:
        return ScoredDag(tuple(dag), fsum(self.table[v, parents] for v, parents in enumerate(dag)))


def _highest(values: F64, count: int) -> list[ScoredParents]:
    order = np.argsort(-values, kind="stable")[:count]
    return [ScoredParents(int(mask), float(values[mask])) for mask in order if values[mask] not in (0, -np.inf)]
