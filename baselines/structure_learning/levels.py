"""The DAG of highest score, exactly, level by level of the lattice of subsets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import comb, fsum, lgamma, log, prod
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from calibrant.baselines.structure_learning import _kernels_levels as kernels
from calibrant.baselines.structure_learning import _kernels_optimum as kernels_optimum
from calibrant.baselines.structure_learning.constraints import MAX_VARIABLES, Constraints, Dag, Mask, is_acyclic
from calibrant.baselines.structure_learning.scores import LocalScores
from calibrant.baselines.structure_learning.search import ArcStrengths, strengths_from_frequencies
from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.knowledge import CheckedKnowledge

# --- Local scores of columns with any number of values, posteriors over all DAGs, and networks as masks ---------------
# A frame counts rows by pattern, so a million rows of few columns cost as much as their patterns. Scores are those of
# `scores`, with r values of the child and q configurations of its parents: rows in which the child was set do not
# count.
MAX_DENSE_VARIABLES = 18  # 18 x 2**18 scores are 38 MB
MAX_LAYERED_VARIABLES = 12  # 4**12 layers take 3 s
MAX_SETS = 5_000_000  # parent sets of all columns together
SERIES_TERMS = 12  # of lgamma around whole numbers
TABLE_ENTRIES = 4_000_000  # terms remembered: 32 MB
MAX_CELLS = 1 << 22  # of a table of counts: 32 MB with those that are summed from it
CELLS_PER_ROW = 4  # cells of tables of counts that cost as much as a row that is refined
MAX_REMEMBERED_COUNT = 1_024  # larger counts are few: at most rows / 1,024 configurations have one

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class LevelFrame:
    """Rows of columns with several values, by pattern.

    variables: names; levels: number of values of each column, at least 1
    codes: [columns, patterns] values from 0
    clamped: [patterns] mask of the columns that were set; weights: [patterns] number of rows
    """

    variables: tuple[str, ...]
    levels: tuple[int, ...]
    codes: npt.NDArray[np.int32]
    clamped: npt.NDArray[np.uint64]
    weights: I64

    def __post_init__(self) -> None:
        if not 1 <= len(self.variables) <= MAX_VARIABLES:
            raise CalibrantError(f"{len(self.variables)} columns; networks are learned of 1 to {MAX_VARIABLES}")

    @property
    def num_vars(self) -> int:
        return len(self.variables)

    @property
    def num_rows(self) -> int:
        return int(self.weights.sum())

    @cached_property
    def targets(self) -> tuple[Mask, ...]:
        """Sets of columns that were set together in some row."""
        return tuple(sorted(set(self.clamped.tolist())))


def frame_of_codes(
    variables: Sequence[str],
    levels: Sequence[int],
    codes: npt.NDArray[np.int32],
    clamped: npt.NDArray[np.uint64],
    weights: I64 | None = None,
) -> LevelFrame:
    """Return a frame with equal rows put together. codes: [columns, rows]; clamped, weights: [rows]."""
    num_rows = len(clamped)
    weights = np.ones(num_rows, np.int64) if weights is None else weights
    if num_rows:
        table = np.vstack([codes.astype(np.int64), clamped.astype(np.int64)[None]])
        patterns, inverse = np.unique(table, axis=1, return_inverse=True)
        totals = np.bincount(inverse.ravel(), weights=weights, minlength=patterns.shape[1]).astype(np.int64)
        codes, clamped, weights = patterns[:-1].astype(np.int32), patterns[-1].astype(np.uint64), totals
    return LevelFrame(tuple(variables), tuple(levels), np.ascontiguousarray(codes), clamped, weights)


@dataclass(frozen=True)
class LevelScore:
    """A score of columns with several values.

    name: bde, bds, k2, bdj, bic or aic; iss: imaginary rows of bde and bds
    """

    name: str
    iss: float = 1.0

    @property
    def is_bayesian(self) -> bool:
        return self.name in ("bde", "bds", "k2", "bdj")

    @property
    def is_equivalent(self) -> bool:
        """Whether equivalent networks have equal scores."""
        return self.name in ("bde", "bic", "aic")

    def cell(self, num_values: int, num_all: int, num_occupied: int) -> float:
        """Return the imaginary rows of a cell. num_all, num_occupied: configurations of the parents, and that occur."""
        if self.name == "k2":
            return 1.0
        if self.name == "bdj":
            return 0.5
        return self.iss / (num_all if self.name == "bde" else max(num_occupied, 1)) / num_values

    def price(self, num_rows: int) -> float:
        """Return the price of a free parameter."""
        return {"bic": log(num_rows) / 2 if num_rows else 0.0, "aic": 1.0}.get(self.name, 0.0)


Listen = Callable[[int, int], None]


@dataclass
class _Steps:
    """Counts steps and reports their number and that of all."""

    listen: Listen
    number: int
    done: int = 0

    def __post_init__(self) -> None:
        self.listen(0, self.number)

    def take(self) -> None:
        """Count one more."""
        self.done += 1
        self.listen(self.done, self.number)


class LevelScores:
    """Local scores of one frame under one score and knowledge, all of them at once.

    num_cells: rows and configurations that were refined and summed for them
    """

    def __init__(self, frame: LevelFrame, score: LevelScore, knowledge: CheckedKnowledge) -> None:
        self.frame = frame
        self.score = score
        self.knowledge = knowledge
        self.max_size = max(knowledge.limits)
        if frame.num_vars > MAX_DENSE_VARIABLES:
            sets = sum(comb(frame.num_vars - 1, k) for k in range(self.max_size + 1)) * frame.num_vars
            if sets > MAX_SETS:
                raise CalibrantError(
                    f"{frame.num_vars} columns have {sets:,} parent sets of at most {self.max_size} columns; at most"
                    f" {MAX_SETS:,} are scored: lower --max-parents (max_parents)"
                )
        self._levels = self._make_levels()
        self.num_cells = 0

    def _make_levels(self) -> kernels.Levels:
        frame = self.frame
        bits = frame.clamped >> np.arange(frame.num_vars, dtype=np.uint64)[:, None] & np.uint64(1)
        counted_weights = (1 - bits.astype(np.int64)) * frame.weights
        by_group, group = np.unique(counted_weights, axis=0, return_inverse=True)
        group = group.ravel().astype(np.int64)
        weights = counted_weights.max(axis=0)  # 0 where every column was set
        set_groups, set_rows = np.nonzero(by_group != weights)
        levels = np.array(frame.levels, np.int64)
        is_dense = frame.num_vars <= MAX_DENSE_VARIABLES
        strides = np.zeros(frame.num_vars, np.int64)
        num_rows, kind, priors = 1, kernels.BY_LIKELIHOOD, np.ones(1)
        terms = [[0] for _ in by_group]  # of each group
        child_sum = parent_sum = group
        if self.score.name == "bde":
            kind, priors = kernels.BY_CONFIGURATIONS, np.array([self.score.iss])
            for value in sorted(set(frame.levels)):
                columns = np.flatnonzero(levels == value)
                strides[columns] = num_rows
                # `marginal_sums` goes through sets of all columns, larger than those that are scored
                num_rows *= (len(columns) if is_dense else min(len(columns), self.max_size + 1)) + 1
        elif self.score.name == "bds":
            kind, priors = kernels.BY_OCCUPIED, np.array([self.score.iss])
            num_rows = len(frame.weights) * max(frame.levels, default=1) + 1
            terms = [[0, *(1 + np.flatnonzero(group == g)).tolist()] for g in range(len(by_group))]
            before = np.cumsum([0, *map(len, terms)])
            parent_sum = before[group]
            child_sum = np.array([before[g] + terms[g].index(v + 1) for v, g in enumerate(group)])
        elif self.score.is_bayesian:
            kind, distinct = kernels.BY_CELL, sorted(set(frame.levels))
            cell = self.score.cell(1, 1, 1)
            priors = np.array([cell, *(cell * value for value in distinct)])
            num_rows = len(priors)
            terms = [list(range(num_rows)) for _ in by_group]
            child_sum = group * num_rows
            parent_sum = child_sum + [1 + distinct.index(value) for value in frame.levels]
        self._child_sum, self._parent_sum = child_sum, parent_sum
        counts = min(MAX_REMEMBERED_COUNT, self.frame.num_rows + 1, TABLE_ENTRIES // num_rows)
        if counts == 0:  # too many kinds of sets: strides could overflow
            strides[:] = 0
        table = np.full((num_rows if counts else 0, counts), np.nan)
        binomials = np.array([[comb(n, k) for k in range(self.max_size + 2)] for n in range(frame.num_vars + 1)])
        codes = np.ascontiguousarray(frame.codes, np.int32)
        pairs = [int((np.bincount(row, minlength=1) ** 2).sum()) for row in codes]  # of patterns of one value
        order = np.argsort(pairs, kind="stable")
        return kernels.Levels(
            codes,
            levels,
            np.ascontiguousarray(weights),
            np.ascontiguousarray(set_rows),  # strided, it would be another type: 11 s to compile
            weights[set_rows],
            np.searchsorted(set_groups, np.arange(len(by_group) + 1)),
            np.concatenate(terms).astype(np.int64),
            np.cumsum([0, *map(len, terms)]),
            kind,
            priors,
            order,
            strides,
            table,
            binomials,
            is_dense,
            np.zeros((0, 0)),
            _series_of_lgamma(counts if self.score.name == "bds" else 0),
        )

    def _num_sets(self, size: int) -> int:
        num_vars = self.frame.num_vars
        return 1 << num_vars if self._levels.is_dense else sum(comb(num_vars, k) for k in range(size + 1))

    def scored_sets(self, listen: Listen = lambda done, total: None) -> tuple[I64, F64]:
        """Return the sets, [sets], and the scores of each column's admitted ones, [columns, sets]; minus infinity else.

        Up to MAX_DENSE_VARIABLES columns a set stands at its mask, beyond after all its subsets.
        listen: called with the number of columns whose sets are summed, and of all
        """
        num_vars = self.frame.num_vars
        size = min(self.max_size, num_vars - 1)
        num_sets = self._num_sets(size)
        masks = np.zeros(num_sets, np.int64)
        scores = np.full((num_vars, num_sets), -np.inf)
        self.num_cells = 0
        knowledge, price = self.knowledge, self.score.price(self.frame.num_rows)
        stated = (knowledge.allowed, knowledge.required, knowledge.limits)
        allowed, required, limits = (np.array(values, np.int64) for values in stated)
        sums, sum_indices = self._all_sums(size + 1, listen), (self._child_sum, self._parent_sum)
        kernels.local_scores(self._levels, sums, *sum_indices, price, allowed, required, limits, size, masks, scores)
        return masks, scores

    def _all_sums(self, size: int, listen: Listen) -> F64:
        levels, num_vars = self._levels, self.frame.num_vars
        if levels.kind != kernels.BY_OCCUPIED:
            return self._sums(levels, size, _Steps(listen, num_vars))
        steps = _Steps(listen, 2 * num_vars)
        one_each = np.arange(len(levels.starts))
        counting = levels._replace(
            kind=kernels.BY_OCCURRENCE,
            table=np.ones((1, levels.table.shape[1])),
            powers=levels.powers[:0],
            terms=np.zeros(len(one_each) - 1, np.int64),
            sum_starts=one_each,
        )
        return self._sums(levels._replace(occupied=self._sums(counting, size, steps)), size, steps)

    def _sums(self, levels: kernels.Levels, size: int, steps: _Steps) -> F64:
        """Return sums over the configurations of each set of at most `size`, [sets, sums]."""
        num_vars = self.frame.num_vars
        sums = np.zeros((self._num_sets(size), len(levels.terms)))
        self.num_cells += kernels.configuration_sums(levels, -1, size, sums)
        has_dense_counts = self._has_dense_counts(size)
        for first in range(num_vars - 1, -1, -1):
            if has_dense_counts:
                kernels.marginal_sums(levels, first, sums)
            else:
                self.num_cells += kernels.configuration_sums(levels, first, size, sums)
            steps.take()
        return sums

    def _has_dense_counts(self, size: int) -> bool:
        """Return whether counts of all sets cost less than those of the rows that each set of that size refines."""
        levels = self._levels
        num_cells = prod(self.frame.levels)
        if not levels.is_dense or not levels.table.size or num_cells > MAX_CELLS:
            return False
        num_sets = sum(comb(self.frame.num_vars, k) for k in range(size + 1))
        return prod(value + 1 for value in self.frame.levels) < CELLS_PER_ROW * num_sets * len(self.frame.weights)

    def undominated(self, masks: I64, scores: F64) -> list[dict[Mask, float]]:
        """Return, per column, the scores of the sets that score more than each of their admitted subsets."""
        best = np.empty_like(scores)
        kernels.best_of_subsets(self._levels, masks, scores, best)
        return [
            dict(zip(masks[better].tolist(), scores[v, better].tolist(), strict=True))
            for v, better in enumerate((scores > best) & np.isfinite(scores))
        ]


def _series_of_lgamma(counts: int) -> F64:
    """Return the coefficients of a**j in lgamma(n + a) for n from 0 (zeros) to counts - 1, [n, j]; none of no counts.

    Those from j = 2 are (-1)**j zeta(j, n) / j, with the tail of Hurwitz' zeta by Euler and Maclaurin.
    """
    if not counts:
        return np.zeros((0, 0))
    series = np.zeros((SERIES_TERMS, counts))
    series[0, 1:] = [lgamma(n) for n in range(1, counts)]
    series[1, 1:] = np.append(0.0, np.cumsum(1 / np.arange(1.0, counts - 1)))[: counts - 1] - np.euler_gamma
    last = counts + 32.0
    terms = np.arange(1.0, last)
    for j in range(2, SERIES_TERMS):
        tail = last ** (1 - j) / (j - 1) + last**-j / 2 + j * last ** (-j - 1) / 12
        series[j, 1:] = (-1) ** j / j * (tail + np.cumsum(terms[::-1] ** -j)[::-1])[: counts - 1]
    return np.ascontiguousarray(series.T)


def family_score(frame: LevelFrame, score: LevelScore, child: int, parents: Mask) -> float:
    """Return one local score from its definition, whatever the knowledge."""
    is_free = (frame.clamped >> np.uint64(child) & np.uint64(1)) == 0
    configuration = np.zeros(int(is_free.sum()), np.int64)
    for u in range(frame.num_vars):
        if parents >> u & 1:
            _, configuration = np.unique(configuration * frame.levels[u] + frame.codes[u, is_free], return_inverse=True)
    num_levels = frame.levels[child]
    num_configurations = int(configuration.max(initial=-1)) + 1
    cells = np.zeros((num_configurations, num_levels))
    np.add.at(cells, (configuration.ravel(), frame.codes[child, is_free]), frame.weights[is_free])
    totals = cells.sum(axis=1)
    q = prod(frame.levels[u] for u in range(frame.num_vars) if parents >> u & 1)
    if score.is_bayesian:
        cell = score.cell(num_levels, q, num_configurations)
        row = cell * num_levels
        rows = fsum(lgamma(row) - lgamma(row + total) for total in totals.tolist())
        return rows + fsum(lgamma(cell + count) - lgamma(cell) for count in cells.ravel().tolist() if count)
    entropy = (cells * np.log(np.maximum(cells, 1))).sum() - (totals * np.log(np.maximum(totals, 1))).sum()
    return float(entropy - score.price(frame.num_rows) * q * (num_levels - 1))


class DagSum:
    """Sum over all DAGs of the product of their local weights: every DAG alike a priori.

    log_sum: natural logarithm of the sum
    """

    def __init__(self, table: F64) -> None:
        """Add up. table: [columns, 2**columns] logarithms of weights, minus infinity where not admitted."""
        self.table = table
        num_vars = len(table)
        if num_vars > MAX_LAYERED_VARIABLES:
            raise ValueError(f"{num_vars} columns; sums over all DAGs are for at most {MAX_LAYERED_VARIABLES}")
        self.ternary: I64 = np.array([sum(3**i for i in range(num_vars) if s >> i & 1) for s in range(1 << num_vars)])
        self._inside = np.empty_like(table)
        self._forward, self._backward = np.empty((2, 3**num_vars))
        self.log_sum = kernels_optimum.layered_sums(table, self.ternary, self._inside, self._forward, self._backward)

    def arcs(self) -> F64:
        """Return the probability of each arc, [from, to]."""
        arcs = np.zeros((len(self.table), len(self.table)))
        state = (self.table, self.ternary, self._inside, self._forward, self._backward)
        kernels_optimum.arc_probabilities(*state, self.log_sum, arcs)
        return arcs

    def sample(self, number: int, rng: np.random.Generator) -> list[Dag]:
        """Draw DAGs independently, with probabilities proportional to their weights."""
        num_vars = len(self.table)
        dags = np.zeros((number, num_vars), np.int64)
        state = (self.table, self.ternary, self._inside, self._forward, self._backward)
        kernels_optimum.sample_dags(*state, rng.random((number, (num_vars + 1) ** 2)), dags)
        return [tuple(dag) for dag in dags.tolist()]


def draw_by_orders(table: F64, earlier: Sequence[Mask], number: int, rng: np.random.Generator) -> list[Dag]:
    """Draw DAGs weighted by their number of topological orders, independently."""
    dags = np.zeros((number, len(table)), np.int64)
    kernels_optimum.sample_by_orders(table, np.array(earlier, np.int64), rng.random((number, 2 * len(table))), dags)
    return [tuple(dag) for dag in dags.tolist()]


def changes_of(dag: Dag, knowledge: CheckedKnowledge) -> Iterator[tuple[str, int, int, Dag]]:
    """Yield the single additions, deletions and reversals of arcs to acyclic networks that the knowledge admits."""
    for child in range(len(dag)):
        for parent in range(len(dag)):
            if parent == child:
                continue
            if dag[child] >> parent & 1:
                options = [("delete", False), ("reverse", True)]
            elif dag[parent] >> child & 1:
                continue
            else:
                options = [("add", False)]
            for kind, turns in options:
                changed = list(dag)
                changed[child] ^= 1 << parent
                if turns:
                    changed[parent] |= 1 << child
                touched = (child, parent) if turns else (child,)
                if all(knowledge.admits(v, changed[v]) for v in touched) and is_acyclic(tuple(changed)):
                    yield kind, parent, child, tuple(changed)


def num_changes(first: Dag, second: Dag) -> int:
    """Return the fewest additions, deletions and reversals between two networks."""
    count = 0
    for v in range(len(first)):
        for u in range(v):
            ways = [(dag[v] >> u & 1, dag[u] >> v & 1) for dag in (first, second)]
            count += ways[0] != ways[1]
    return count


# --- The DAG of highest score, exactly: also the k best, all that are as good, and what to believe about each arc -----
# Dynamic programming over subsets of variables, so for problems of the benchmark's size (6 to 10 variables) it takes
# about a millisecond and replaces a greedy search that is not certain to get there. Silander and Myllymaki 2006 (the
# best), Tian, He and Ram 2010 (the k best), Koivisto and Sood 2004, Koivisto 2006 (posteriors).
MAX_KEPT = 1 << 26  # parent masks that k_best may keep at once: 512 MB
MAX_STEPS = 200_000_000  # steps of the enumeration of networks: about a second


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
        kernels_optimum.k_best_networks(*self._ranked, k, counts, totals, networks)
        return [self._score_dag(networks[-1, i].tolist()) for i in range(counts[-1])]

    def co_optimal(self, *, limit: int = 10_000) -> ScoredDags:
        """All networks whose score is the best one, within 1e-9."""
        return self.within(kernels_optimum.TIE, limit=limit)

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
        count, is_complete = kernels_optimum.networks_within(*self._ranked, totals, gap, max_steps, networks)
        return networks[:count], is_complete

    def totals_of(self, networks: I64) -> F64:
        """Return the scores of networks, [networks, v]."""
        totals: F64 = self.table[np.arange(len(self.table)), networks].sum(axis=1)
        return totals

    def posteriors(self) -> Posteriors:
        """Probabilities of all parent sets; local scores are taken for log marginal likelihoods, so use BDe or mbde."""
        posteriors = np.empty_like(self.table)
        log_evidence = kernels_optimum.parent_set_posteriors(self.table, np.array(self.earlier, np.int64), posteriors)
        if log_evidence == -np.inf:
            raise ValueError("no network that the constraints admit agrees with the known order")
        return Posteriors(self.variables, posteriors, log_evidence)

    def best_parent_sets(self, child: int, count: int) -> list[ScoredParents]:
        """Return the parent sets of one variable with the highest local scores, first the highest, acyclicity aside."""
        return _highest(self.table[child], count)

    def _totals(self, roots: Mask) -> tuple[F64, I64]:
        totals, sinks = np.empty(self.table.shape[1]), np.empty(self.table.shape[1], np.int64)
        kernels_optimum.best_networks(
            self._best_within[0], roots, np.ascontiguousarray(self.table[:, 0]), totals, sinks
        )
        return totals, sinks

    @cached_property
    def _best_within(self) -> tuple[F64, I64]:
        best, chosen = np.empty_like(self.table), np.empty(self.table.shape, np.int64)
        kernels_optimum.best_within(self.table, best, chosen)
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
