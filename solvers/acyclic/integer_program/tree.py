"""Branch and cut for one criterion, and its primal heuristic, local search over orders."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from heapq import heappop, heappush
from itertools import accumulate, count
from math import ceil
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from calibrant.solvers.acyclic.integer_program._kernels import I64, IMPOSSIBLE, perturb
from calibrant.solvers.acyclic.integer_program.relaxation import (
    F64,
    MAX_LEVEL,
    TABU_STEPS,
    Bits,
    Cluster,
    Column,
    Incumbent,
    Indices,
    LimitReached,
    Limits,
    Proof,
    Relaxation,
    Row,
    Support,
    Value,
    find_most_violated_cut,
    find_violated_cuts,
)
from calibrant.solvers.acyclic.least import Cost, Mask
from calibrant.solvers.acyclic.maxsat import find_violated_clusters, place_greedily

# --- Iterated local search over orders: the primal heuristic of the branch and cut ------------------------------------
# Insertion moves (M. Scanagatta, G. Corani and M. Zaffalon, Improved local search in Bayesian networks structure
# learning, 2017) from randomly perturbed orders. An order's assignment is acyclic by construction, so every result is a
# valid upper bound.
MOVES_PER_PERTURBATION = 4  # variables moved
PERTURBATIONS_PER_CALL = 100  # perturbations between two checks of the limits
MAX_SEARCH_STEPS = 5_000_000  # steps of one search: a tenth of a second
WORK_PER_STEP = 32  # tests of a parent set in the time of a step (see `Limits`)


class OrderLocalSearch:
    """Iterated local search over orders; its random stream is seeded by the number of parent sets.

    options: variable -> parent set -> cost, a whole number; at most 63 variables, whose ranges of costs add up to less
        than 2**56
    limits: charged with the steps of each search, which returns its best order when they are reached
    listen: called every PERTURBATIONS_PER_CALL perturbations
    """

    def __init__(
        self,
        options: Mapping[int, Mapping[Mask, Cost]],
        limits: Limits | None = None,
        listen: Callable[[], None] = lambda: None,
    ) -> None:
        self.limits = limits or Limits()
        self.listen = listen
        self.variables = sorted(options)
        self.positions = {v: position for position, v in enumerate(self.variables)}
        self.ranked = [sorted(options[v], key=options[v].__getitem__) for v in self.variables]
        costs = [
            [options[v][parents] - options[v][ranked[0]] for parents in ranked]
            for v, ranked in zip(self.variables, self.ranked, strict=True)
        ]
        self.starts = np.array([0, *accumulate(map(len, costs))])
        self.masks = _words([parents for ranked in self.ranked for parents in ranked], self.variables)
        self.costs = np.array([cost for differences in costs for cost in differences], np.int64)
        self.rng = np.random.Generator(np.random.PCG64(len(self.costs)))

    def improve_from(self, order: Sequence[int], num_perturbations: int) -> dict[int, Mask]:
        """Return the best assignment of an iterated local search from a feasible order."""
        order_positions = np.array([self.positions[v] for v in order])
        self._perturb(order_positions, num_perturbations)
        return self._choice(order_positions)

    def restart(self, num_perturbations: int) -> dict[int, Mask] | None:
        """Search from a random order; None if no feasible order is reached."""
        order_positions = self.rng.permutation(len(self.variables))
        return self._choice(order_positions) if self._perturb(order_positions, num_perturbations) < IMPOSSIBLE else None

    def _perturb(self, order_positions: I64, num_perturbations: int) -> int:
        """Improve an order in place; return its cost, `IMPOSSIBLE` or more if it is not feasible."""
        moves = self.rng.integers(0, len(order_positions), (num_perturbations, MOVES_PER_PERTURBATION, 2))
        total, steps = IMPOSSIBLE, 0
        for first in range(0, num_perturbations + 1, PERTURBATIONS_PER_CALL):
            batch = moves[first : first + PERTURBATIONS_PER_CALL]
            total, work = perturb(order_positions, batch, self.starts, self.masks, self.costs)
            steps += work // WORK_PER_STEP
            self.limits.spend(work // WORK_PER_STEP)
            self.listen()
            if steps >= MAX_SEARCH_STEPS or self.limits.are_reached():
                break
        return total

    def _choice(self, order_positions: I64) -> dict[int, Mask]:
        chosen, placed = dict[int, Mask](), 0
        for position in order_positions.tolist():
            v = self.variables[position]
            chosen[v] = next(parents for parents in self.ranked[position] if not parents & ~placed)
            placed |= 1 << v
        return chosen


def _words(parents: Sequence[Mask], variables: Sequence[int]) -> npt.NDArray[np.uint64]:
    """Return sets of the variables (ascending) as words: bit i is variables[i]."""
    masks = np.array(parents, np.uint64)
    words = np.zeros_like(masks)
    for position, v in enumerate(variables):
        words |= (masks >> np.uint64(v) & np.uint64(1)) << np.uint64(position)
    return words


# --- Branch and cut for one criterion: minimum, and the columns that optimal assignments may take ---------------------
# At each node: linear relaxations with violated cuts, each warm-started from the last basis; safe bounds
# (solvers.acyclic.integer_program.relaxation); columns removed by reduced cost; and a primal heuristic, local search
# over orders that starts where the relaxation points. Branching is on whether one variable is a parent of another, by
# strong branching; nodes are explored best bound first (the method of GOBNILP: M. Bartlett and J. Cussens, Integer
# linear programming for the Bayesian network structure learning problem, 2017).
#
# Invariant: an assignment that is as good as the incumbent lies in an open node, or in an optimal one. So the search
# ends with all columns of all optima, from which the next criterion of the tie rule starts.
MIN_SHARE = 1e-6  # value of a column in the relaxation, up to which it counts as zero
MIN_PROGRESS = 0.02  # share of the gap by which the bound has to rise in a round of cuts
MAX_STALLED_ROUNDS = 3  # rounds with less progress; with 0 a dropped cut would not be separated again
MAX_UNPRICED_ROUNDS = 20  # rounds without a price, after which a cut is dropped
MIN_SHARE_DROPPED = 1 / 4  # cuts are dropped if more than this share is old: rebuilding the basis has to pay
NUM_RESTARTS = 8  # random orders before the first branch
RESTART_PERTURBATIONS = 40  # perturbations of each random order, per variable
NODE_PERTURBATIONS = 30  # perturbations of the order to which a relaxation points
COST_UNITS = 1024  # costs times shares are rounded to multiples of 1 / COST_UNITS
NUM_BRANCH_CANDIDATES = 20  # arcs tried for branching
PASSES_PER_STEP = 8  # passes over a column in the time of a step
STEPS_PER_COLUMN = 100  # steps in the time of setting up one column of a tree
TESTS_PER_STEP = 2  # tests of a parent set, by a tabu walk through groups, in the time of a step
STRONG_BRANCHING_STEPS = 50  # simplex steps for each child of a candidate


class _Node(NamedTuple):
    """Open node: lower bound over the assignments of allowed columns; `number`: how many nodes are older.

    Of nodes of equal bound the oldest comes first.
    """

    bound: float
    number: int
    allowed: Bits


class _Child(NamedTuple):
    """Child of a node after branching: inherited bound and allowed columns."""

    bound: float
    allowed: Bits


class Tree:
    """Branch and cut for one objective, in which every variable has a column that costs 0.

    upper_bound: cost of the incumbent
    optimal_nodes: closed nodes whose lower bound equalled `upper_bound` when they were closed: they may hold optima
    unpriced: for each cut, the number of successive rounds in which its dual price was 0
    """

    def __init__(self, incumbent: Incumbent, columns: Sequence[Column], value: Value) -> None:
        self.incumbent = incumbent
        self.columns = columns
        self.value = value
        self.variables = incumbent.variables
        position = {v: i for i, v in enumerate(self.variables)}
        self.owner = np.array([position[v] for v, _ in columns])
        self.words = _words([parents for _, parents in columns], self.variables)
        # variable by variable in memory, as greedy orders read it
        self.parents: Bits = np.array(
            [self.words >> np.uint64(i) & np.uint64(1) for i in range(len(self.variables))], np.bool_
        ).T
        self.owner_shifts = self.owner.astype(np.uint64)
        self.costs = np.array([value(v, parents) for v, parents in columns], np.float64)
        self.relaxation = Relaxation(self.owner.tolist(), self.costs)
        self.cuts: list[Cluster] = []  # the last rows of the relaxation
        self.unpriced: Indices = np.zeros(0, np.int64)
        self.upper_bound = self._sum(incumbent.chosen)
        self.optimal_nodes: list[_Node] = []
        self.queue: list[_Node] = []
        self.node_numbers = count()
        self.local_search = OrderLocalSearch(
            {
                v: {parents: parent_set.cost for parents, parent_set in sets.items()}
                for v, sets in incumbent.part.items()
            },
            incumbent.limits,
            self._report_bound,
        )
        self.bound = 0.0  # lower bound of the node that is processed
        incumbent.limits.spend(STEPS_PER_COLUMN * len(columns))
        # earlier criteria stay at their minimum: -sum >= -total, in the form of a row
        for settled, total in incumbent.settled:
            values = np.array([settled(v, parents) for v, parents in columns], np.float64)
            columns_used = np.flatnonzero(values)
            self.relaxation.add([Row(columns_used, -values[columns_used], -float(total))])
        self._add_cuts(incumbent.cuts)

    def grow(self, groups: Sequence[Bits]) -> list[Bits]:
        """Search these groups of columns to optimality; return the groups that may hold optima."""
        self.queue = [_Node(0.0, next(self.node_numbers), columns) for columns in groups]
        while self.queue and self.queue[0].bound < self.upper_bound:
            node = heappop(self.queue)
            for child in self._process(node):
                if child.bound <= self.upper_bound and self._is_feasible(child.allowed):
                    heappush(self.queue, _Node(child.bound, next(self.node_numbers), child.allowed))
        self.incumbent.cuts = set(self.cuts)
        return [node.allowed for node in [*self.optimal_nodes, *self.queue] if node.bound <= self.upper_bound]

    def _process(self, node: _Node) -> Sequence[_Child]:
        """Bound a node by rounds of cuts; return its children, none if it is closed."""
        allowed, bound, stalled_rounds = node.allowed, node.bound, 0
        while True:
            self._check_limits(bound)
            self.incumbent.limits.spend(len(self.columns) * len(self.variables) // PASSES_PER_STEP)
            column_values, proof = self.relaxation.solve(allowed, self.incumbent.limits)
            min_rise = max(1.0, MIN_PROGRESS * (self.upper_bound - bound))
            stalled_rounds = stalled_rounds + 1 if proof.bound - bound < min_rise else 0
            bound = max(bound, ceil(proof.bound))  # costs are whole
            if column_values is not None:
                self._improve_from_relaxation(column_values)
                self._drop_unpriced_cuts()
            allowed = self._fix_by_reduced_cost(allowed, proof)
            if bound > self.upper_bound or not self._is_feasible(allowed):
                return ()
            if bound == self.upper_bound:
                self.optimal_nodes.append(_Node(bound, next(self.node_numbers), allowed))
                return ()
            if np.count_nonzero(allowed) == len(self.variables):
                self._close_leaf(allowed)
                return ()
            if column_values is None:
                return [_Child(bound, columns) for columns in self._split_column(allowed)]
            cuts = (
                self._separate(column_values, not node.number) - set(self.cuts)
                if stalled_rounds <= MAX_STALLED_ROUNDS
                else set()
            )
            if not cuts:
                self._try_integral(column_values)
                if not node.number and bound < self.upper_bound:
                    self._restart_local_search()
                if bound < self.upper_bound:
                    return self._branch(column_values, allowed, bound)
                return [_Child(bound, self._fix_by_reduced_cost(allowed, proof))]
            self._add_cuts(cuts)

    def _separate(self, column_values: F64, is_root: bool) -> set[Cluster]:
        shares = [(column, share) for column, share in enumerate(column_values.tolist()) if share > MIN_SHARE]
        if len(shares) == len(self.variables):
            sets = {self.columns[column][0]: [self.columns[column][1]] for column, _ in shares}
            _, unplaced = place_greedily(sets)
            position = {v: i for i, v in enumerate(self.variables)}
            return {Cluster(tuple(position[v] for v in group)) for group in find_violated_clusters(sets, unplaced)}
        columns = [column for column, _ in shares]
        support = Support(self.owner[columns], self.parents[columns], np.array([share for _, share in shares]))
        limits = self.incumbent.limits
        limits.spend(MAX_LEVEL * TABU_STEPS * len(self.variables) * len(shares) // TESTS_PER_STEP)
        return find_violated_cuts(support) or (
            find_most_violated_cut(support, limits.seconds_left(), limits.spend) if is_root else set()
        )

    def _add_cuts(self, clusters: Collection[Cluster]) -> None:
        rows = []
        for cluster in sorted(clusters):
            cluster_word = np.uint64(sum(1 << position for position in cluster.members))
            hits = np.bitwise_count(self.words & cluster_word)
            few_parents = np.flatnonzero(
                (cluster_word >> self.owner_shifts & np.uint64(1)).astype(np.bool_) & (hits < cluster.level)
            )
            rows.append(Row(few_parents.astype(np.int32), np.broadcast_to(1.0, len(few_parents)), float(cluster.level)))
        self.relaxation.add(rows)
        self.cuts += sorted(clusters)
        self.unpriced = np.append(self.unpriced, np.zeros(len(clusters), np.int64))

    def _drop_unpriced_cuts(self) -> None:
        """Drop cuts whose price has been 0 for many rounds; if violated again they are separated again."""
        num_other_rows = len(self.relaxation.rows) - len(self.cuts)
        self.unpriced = np.where(self.relaxation.unpriced[num_other_rows:], self.unpriced + 1, 0)
        is_old = self.unpriced > MAX_UNPRICED_ROUNDS
        if np.count_nonzero(is_old) > MIN_SHARE_DROPPED * len(is_old):
            self.relaxation.drop(np.concatenate([np.zeros(num_other_rows, np.bool_), is_old]))
            self.cuts = [cut for cut, drop in zip(self.cuts, is_old.tolist(), strict=True) if not drop]
            self.unpriced = self.unpriced[~is_old]

    def _close_leaf(self, allowed: Bits) -> None:
        """Close a node that has one column left for each variable, without solving its relaxation."""
        chosen = dict(self.columns[column] for column in np.flatnonzero(allowed).tolist())
        if place_greedily({v: [parents] for v, parents in chosen.items()})[1]:
            return
        self._update_incumbent(chosen)
        if self._sum(chosen) == self.upper_bound:
            self.optimal_nodes.append(_Node(self.upper_bound, next(self.node_numbers), allowed))

    def _try_integral(self, column_values: F64) -> None:
        """Update the incumbent if the relaxation's solution is integral and acyclic."""
        columns = np.flatnonzero(column_values > MIN_SHARE)
        chosen = dict(self.columns[column] for column in columns.tolist())
        if len(columns) == len(chosen) and not place_greedily({v: [parents] for v, parents in chosen.items()})[1]:
            self._update_incumbent(chosen)

    def _update_incumbent(self, chosen: dict[int, Mask]) -> None:
        self.incumbent.update(chosen)
        self.upper_bound = self._sum(self.incumbent.chosen)

    def _improve_from_relaxation(self, column_values: F64) -> None:
        """Search from the greedy order by costs that are discounted by the columns' values in the relaxation."""
        if self.incumbent.settled:  # later criteria start from an optimum of the first
            return
        order = self._place_cheapest_first(np.rint(self.costs * (1 - column_values) * COST_UNITS))
        if order is not None:
            self._update_incumbent(self.local_search.improve_from(order, NODE_PERTURBATIONS))

    def _place_cheapest_first(self, costs: F64) -> list[int] | None:
        """Return the greedy order, in which the variable of least cost comes next; None if it ends before all.

        costs: shape (columns,)
        """
        num_missing = self.parents.sum(axis=1)  # parents of each column that are not placed
        is_placed = np.zeros(len(self.variables), np.bool_)
        order: list[int] = []
        for _ in self.variables:
            least = np.minimum.reduceat(np.where(num_missing == 0, costs, np.inf), self.relaxation.starts)
            least[is_placed] = np.inf
            position = int(least.argmin())  # the first of several
            if least[position] == np.inf:
                return None
            is_placed[position] = True
            num_missing -= self.parents[:, position]
            order.append(self.variables[position])
        return order

    def _restart_local_search(self) -> None:
        """Search from random orders."""
        num_perturbations = RESTART_PERTURBATIONS * len(self.variables)
        for _ in range(0 if self.incumbent.settled else NUM_RESTARTS):
            if self.incumbent.limits.are_reached():
                return
            if chosen := self.local_search.restart(num_perturbations):
                self._update_incumbent(chosen)

    def _branch(self, column_values: F64, allowed: Bits, bound: float) -> Sequence[_Child]:
        """Branch on an arc by strong branching: of the most undecided arcs, the largest product of rises of the bound.

        Return one child alone if the other holds no assignment as good as the incumbent.
        """
        arcs = np.zeros((len(self.variables),) * 2)
        np.add.at(arcs, self.owner, self.parents * column_values[:, None])
        undecided = np.minimum(arcs, 1 - arcs)
        # fallback if no arc is undecided beyond the tolerance: branch on one column
        best: Sequence[_Child] = [_Child(bound, columns) for columns in self._split_column(allowed)]
        highest = 0.0
        for arc in np.argsort(-undecided, axis=None, kind="stable")[:NUM_BRANCH_CANDIDATES]:
            if undecided.flat[arc] <= MIN_SHARE:
                break
            children = [
                self._strong_branch(columns, bound)
                for columns in self._split_arc(*divmod(int(arc), len(arcs)), allowed)
            ]
            open_children = [child for child in children if child.bound <= self.upper_bound]
            if len(open_children) < 2:
                return open_children
            # the product prefers two moderate rises to one large one (T. Achterberg, Constraint integer programming,
            # 2007); at least 1 each, or a child without any rise would hide the other
            rise = float(np.prod([min(max(child.bound - bound, 1.0), self.upper_bound - bound) for child in children]))
            if rise > highest:
                highest, best = rise, children
        return best

    def _split_arc(self, child: int, parent: int, allowed: Bits) -> tuple[Bits, Bits]:
        """Return the allowed columns with the arc parent -> child, and those without it."""
        is_child, has_parent = self.owner == child, self.parents[:, parent]
        has_reverse_arc = (self.owner == parent) & self.parents[:, child]  # excluded with the arc, by acyclicity
        return allowed & ~(is_child & ~has_parent) & ~has_reverse_arc, allowed & ~(is_child & has_parent)

    def _strong_branch(self, allowed: Bits, bound: float) -> _Child:
        """Bound a child by a few simplex steps; its bound is above `upper_bound` if it holds nothing as good."""
        if not self._is_feasible(allowed):
            return _Child(self.upper_bound + 1.0, allowed)
        self._check_limits(bound)
        proof = self.relaxation.improve_bound(allowed, STRONG_BRANCHING_STEPS, self.incumbent.limits)
        allowed = self._fix_by_reduced_cost(allowed, proof)
        return _Child(max(bound, ceil(proof.bound)) if self._is_feasible(allowed) else self.upper_bound + 1.0, allowed)

    def _fix_by_reduced_cost(self, allowed: Bits, proof: Proof) -> Bits:
        """Return the allowed columns that may be in an assignment as good as the incumbent."""
        return allowed & (np.ceil(proof.bound + proof.reduced_costs) <= self.upper_bound)

    def _split_column(self, allowed: Bits) -> tuple[Bits, Bits]:
        """Branch on the first column of a variable that has several: this column alone, or the others."""
        several = allowed & (np.bincount(self.owner[allowed])[self.owner] > 1)
        first = np.arange(len(allowed)) == several.argmax()
        return allowed & (first | (self.owner != self.owner[several.argmax()])), allowed & ~first

    def _is_feasible(self, allowed: Bits) -> bool:
        return bool(np.logical_or.reduceat(allowed, self.relaxation.starts).all())

    def _sum(self, chosen: dict[int, Mask]) -> int:
        return sum(self.value(v, parents) for v, parents in chosen.items())

    def _report_bound(self) -> None:
        minimum = self.incumbent.minimum
        self.incumbent.listen(self._lower_bound(self.bound) if minimum is None else minimum)

    def _check_limits(self, bound: float) -> None:
        self.bound = bound
        self._report_bound()
        if self.incumbent.limits.are_reached():
            raise LimitReached(self._lower_bound(bound))

    def _lower_bound(self, bound: float) -> int:
        """Return the proven bound while a node with this one is open."""
        return int(min([self.upper_bound, bound, *(node.bound for node in self.queue)]))
