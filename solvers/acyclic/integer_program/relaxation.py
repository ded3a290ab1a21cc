"""Linear relaxation of the program, its cuts, and the incumbent that its criteria share.

One column for each parent set of each variable, one equality for each variable (exactly one set); all other rows are
inequalities "at least". HiGHS holds the columns that were once cheap enough to enter, and the others are priced (M.
Lubbecke and J. Desrosiers, Selected topics in column generation, 2005). For any prices y >= 0 of those rows, weak
duality bounds the cost from below: y times their right sides plus, for each variable, the least reduced cost of its
columns. Prices come from HiGHS in floating point and are truncated to multiples of 1/SCALE. With whole costs and
entries, reduced costs are then exact below 2**53 / SCALE, and the bound is added up in integers. So bounds are proofs
(after A. Neumaier and O. Shcherbina, Safe bounds in linear and mixed-integer programming, 2004).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from time import monotonic
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from calibrant.solvers.acyclic.integer_program._kernels import tabu_search
from calibrant.solvers.acyclic.least import Mask, Part, members_of
from calibrant.solvers.acyclic.maxsat import CRITERIA
from calibrant.solvers.highs import empty_program, run

MIN_VIOLATION = 1e-4  # violation up to which a cut counts as satisfied
MAX_LEVEL = 3  # largest level of a `Cluster` that is separated
TABU_STEPS = 40  # steps of a walk
MAX_CUTS_PER_VARIABLE = 3  # a cluster is skipped if each of its members is in as many cuts of this round
MIP_GAP = 0.05  # absolute: a nearly most violated cut is good enough
MAX_MIP_NODES = 200  # branch-and-bound nodes of an integer program for a cut
ITERATIONS_PER_NODE = 1_000  # simplex iterations in the time of presolve and the heuristics

Indices: TypeAlias = npt.NDArray[np.int64]
F64: TypeAlias = npt.NDArray[np.float64]
Bits: TypeAlias = npt.NDArray[np.bool_]


class Cluster(NamedTuple):
    """Cluster cut: at least `level` members (positions, ascending) have fewer than `level` parents among them."""

    members: tuple[int, ...]
    level: int = 1


class Support(NamedTuple):
    """Parent sets of positive value (share) in a fractional solution.

    owner: shape (sets,): position of the set's variable, ascending, each at least once
    parents: shape (sets, variables); share: shape (sets,), above 0; the shares of each variable add up to one
    """

    owner: Indices
    parents: Bits
    share: F64

    @property
    def num_variables(self) -> int:
        return int(self.parents.shape[1])


def find_violated_cuts(support: Support) -> set[Cluster]:
    """Return violated cuts, by tabu search from every variable and along short cycles; may miss some."""
    tabu_cuts = {cluster for level in range(1, MAX_LEVEL + 1) for cluster in _search_by_tabu(support, level)}
    cycle_cuts = {Cluster(circle) for circle in _find_short_cycles(support)}
    return tabu_cuts | {cluster for cluster in cycle_cuts if _violation(support, cluster) > MIN_VIOLATION}


def find_most_violated_cut(
    support: Support, seconds: float | None = None, spend: Callable[[int], None] = lambda steps: None
) -> set[Cluster]:
    """Return a nearly most violated cut of level 1, by an integer program of few nodes; empty if it finds none.

    It may miss cuts that are violated by less than MIP_GAP or need more than MAX_MIP_NODES nodes.

    spend: called with the number of steps, as `Limits` counts them
    """
    members = _search_by_program(support, seconds, spend)
    if members is None:
        return set()
    cluster = Cluster(members)
    return {cluster} if _violation(support, cluster) > MIN_VIOLATION else set()


def _violation(support: Support, cluster: Cluster) -> float:
    """Return by how much the cut is violated; negative if it is satisfied."""
    is_member = np.zeros(support.num_variables, np.bool_)
    is_member[list(cluster.members)] = True
    few_parents = support.parents[:, is_member].sum(axis=1) < cluster.level
    return float(cluster.level - support.share[few_parents & is_member[support.owner]].sum())


def _search_by_tabu(support: Support, level: int) -> Iterable[Cluster]:
    """Yield violated clusters that tabu search visits from each variable, most violated first, with limited overlap."""
    num_vars = support.num_variables
    words = (support.parents.astype(np.uint64) << np.arange(num_vars, dtype=np.uint64)).sum(axis=1, dtype=np.uint64)
    groups_met, violations = np.empty(TABU_STEPS, np.uint64), np.empty(TABU_STEPS)
    groups = dict[int, float]()
    for start in range(num_vars):
        num_groups = tabu_search(
            np.uint64(1 << start),
            level,
            TABU_STEPS,
            MIN_VIOLATION,
            support.owner,
            words,
            support.share,
            num_vars,
            groups_met,
            violations,
        )
        groups |= zip(groups_met[:num_groups].tolist(), violations[:num_groups].tolist(), strict=True)
    cuts_per_variable = [0] * num_vars
    # similar cuts add little to the bound, and slow down every later relaxation
    for group in sorted(groups, key=lambda group: (-groups[group], group)):
        members = tuple(members_of(group))
        if min(cuts_per_variable[v] for v in members) < MAX_CUTS_PER_VARIABLE:
            for v in members:
                cuts_per_variable[v] += 1
            yield Cluster(members, level)


def _find_short_cycles(support: Support) -> Iterable[tuple[int, ...]]:
    """Yield shortest cycles through each variable whose arcs lack less than 1 in total: their cuts are violated.

    What an arc lacks is 1 minus the share of the child's sets with the parent. O(m**3), by Floyd and Warshall.
    """
    num_vars = support.num_variables
    lacking = np.ones((num_vars, num_vars))  # from parent to child
    np.subtract.at(lacking.T, support.owner, support.parents * support.share[:, None])
    distance = np.maximum(lacking, 0.0)
    np.fill_diagonal(distance, np.inf)
    successor = np.tile(np.arange(num_vars), (num_vars, 1))
    for via in range(num_vars):
        through = distance[:, via, None] + distance[None, via, :]
        # a margin above rounding, so that paths of equal length do not replace each other
        shorter = through < distance - 1e-12
        distance = np.where(shorter, through, distance)
        successor = np.where(shorter, successor[:, via, None], successor)
    for start in np.flatnonzero(distance.diagonal() < 1 - MIN_VIOLATION).tolist():
        cycle = [start]
        node = int(successor[start, start])
        while node != start and node not in cycle:
            cycle.append(node)
            node = int(successor[node, start])
        if node == start and len(cycle) > 1:
            yield tuple(sorted(cycle))


def _search_by_program(support: Support, seconds: float | None, spend: Callable[[int], None]) -> tuple[int, ...] | None:
    """Return the most violated group of level 1; None without a solution.

    Binary column for each variable: it is in the group. Continuous column for each parent set: its variable and one of
    its parents are in the group. Objective, minimised: size of the group minus the shares of such sets, which equals
    the share of the members' sets without a parent in the group. The cut is violated if that is below 1.
    """
    import highspy

    num_vars, num_sets = support.num_variables, len(support.owner)
    highs = empty_program(mip_rel_gap=0.0, mip_abs_gap=MIP_GAP, mip_max_nodes=MAX_MIP_NODES)
    if seconds is not None:
        highs.setOptionValue("time_limit", max(seconds, 0.01))
    highs.addVars(num_vars + num_sets, np.zeros(num_vars + num_sets), np.ones(num_vars + num_sets))
    costs = np.concatenate([np.ones(num_vars), -support.share])
    highs.changeColsCost(num_vars + num_sets, np.arange(num_vars + num_sets, dtype=np.int32), costs)
    highs.changeColsIntegrality(
        num_vars, np.arange(num_vars, dtype=np.int32), np.full(num_vars, highspy.HighsVarType.kInteger)
    )
    for index, (owner, parents) in enumerate(zip(support.owner.tolist(), support.parents, strict=True)):
        highs.addRow(-np.inf, 0.0, 2, np.array([num_vars + index, owner], np.int32), np.array([1.0, -1.0]))
        parent_indices = np.flatnonzero(parents)
        columns = np.array([num_vars + index, *parent_indices], np.int32)
        highs.addRow(-np.inf, 0.0, len(columns), columns, np.concatenate([[1.0], -np.ones(len(parent_indices))]))
    highs.addRow(2.0, np.inf, num_vars, np.arange(num_vars, dtype=np.int32), np.ones(num_vars))
    run(highs)  # an unfinished run may have an incumbent too, and any violated cut will do
    spend((highs.getInfo().simplex_iteration_count + ITERATIONS_PER_NODE) * 2 * (num_vars + num_sets))
    solution = highs.getSolution().col_value
    members = tuple(index for index in range(num_vars) if solution and solution[index] > 1 / 2)
    return members if len(members) > 1 else None


# --- Linear relaxation of the program, by HiGHS, and safe bounds that do not rely on its floating point ---------------
SCALE = 2.0**14  # prices are multiples of its inverse
MAX_EXACT = 2.0**53 / SCALE  # below it, multiples of 1/SCALE are exact in double precision
NO_LIMIT = 2**31 - 1  # HiGHS' default for a limit on simplex iterations
ITERATIONS_PER_RUN = 80  # iterations that take as long as handing a relaxation over and reading its solution
STEPS_PER_RUN = 8_000  # steps in the time of a round of cuts or a trial branch, however small: 0.3 ms
ENTRIES_PER_STEP = 16  # entries of rows that are priced in the time of a step
ENTRIES_PER_PIVOT = 30  # entries of the relaxation that take a step of each simplex iteration
SLACK = 0  # index of the slack column, which makes every relaxation feasible
PENALTY = 64.0  # cost of the slack column, in multiples of 1 + the sum of all ranges of costs
MAX_WHOLE_COLUMNS = 1_000  # columns up to which HiGHS holds all from the start
NUM_FIRST = 12  # with more: columns of each variable that it holds from the start, the cheapest
NUM_ENTERING = 6  # columns of each variable that enter at a time
MIN_REDUCTION = 1e-2  # difference in reduced cost from which a column enters: prices are rounded


class Proof(NamedTuple):
    """Lower bound, and reduced costs: an assignment with a column costs at least `bound` plus its reduced cost.

    reduced_costs: shape (columns,), infinite where the column is not allowed
    """

    bound: float
    reduced_costs: F64


class Row(NamedTuple):
    """Inequality: the sum of `values` (whole numbers) times `columns` is at least `lower_bound`."""

    columns: Indices
    values: F64
    lower_bound: float


class Relaxation:
    """Linear relaxation that keeps its basis between solutions.

    owner: shape (columns,): position of the column's variable, ascending; costs: shape (columns,), whole numbers
    scales: divisor of each row; unpriced: whether the dual price of each row was 0 in the last solution
    active: shape (columns,): whether HiGHS holds the column; position: its index there, -1 if it does not
    """

    def __init__(self, owner: Sequence[int], costs: F64) -> None:
        self.owner = np.array(owner)
        self.costs = costs
        self.starts = np.flatnonzero(np.diff(self.owner, prepend=-1))
        self.num_equal = len(self.starts)
        self.rows: list[Row] = []
        self.scales = np.zeros(0)
        self.unpriced: Bits = np.zeros(0, np.bool_)
        # no presolve: every solution starts from the basis of the last one
        self.highs = empty_program(solver="simplex", presolve="off")
        span = np.maximum.reduceat(costs, self.starts) - np.minimum.reduceat(costs, self.starts)
        self.highs.addVars(1, np.zeros(1), np.array([np.inf]))  # a slack column that satisfies every inequality
        self.highs.changeColCost(SLACK, PENALTY * (1 + float(span.sum())))
        for _ in self.starts:
            self.highs.addRow(1.0, 1.0, 0, np.zeros(0, np.int32), np.zeros(0))
        self.num_entries = len(costs)  # non-zero entries of all rows, columns that are not active included
        self.active: Bits = np.zeros(len(costs), np.bool_)
        self.position: Indices = np.full(len(costs), -1)
        self.columns: Indices = np.zeros(0, np.int64)  # active columns in the order of HiGHS
        is_small = len(costs) <= MAX_WHOLE_COLUMNS
        columns = np.arange(len(costs))
        self._activate(columns if is_small else self._least_of_each(columns, costs, NUM_FIRST))

    def _least_of_each(self, columns: Indices, keys: F64, per_variable: int) -> Indices:
        """Return the columns of least key, at most `per_variable` of each variable, ascending."""
        order = np.lexsort((keys, self.owner[columns]))
        owner = self.owner[columns][order]
        rank = np.arange(len(order)) - np.searchsorted(owner, owner)
        return np.sort(columns[order[rank < per_variable]])

    def _activate(self, columns: Indices) -> None:
        """Add columns to HiGHS; columns: ascending, none of them active."""
        num_columns = len(columns)
        # entries of the new columns as triples (row, index in `columns`, value), row by row
        rows = [self.owner[columns]]
        indices = [np.arange(num_columns)]
        values = [np.ones(num_columns)]
        for i, (row, scale) in enumerate(zip(self.rows, self.scales.tolist(), strict=True), self.num_equal):
            in_row = np.minimum(np.searchsorted(row.columns, columns), len(row.columns) - 1)
            hits = np.flatnonzero(row.columns[in_row] == columns) if len(row.columns) else np.zeros(0, np.int64)
            rows.append(np.broadcast_to(i, len(hits)))
            indices.append(hits)
            values.append(row.values[in_row[hits]] / scale)
        all_indices = np.concatenate(indices)
        by_column = np.argsort(all_indices, kind="stable")
        starts = np.searchsorted(all_indices[by_column], np.arange(num_columns)).astype(np.int32)
        row_numbers = np.concatenate(rows)[by_column].astype(np.int32)
        entries = np.concatenate(values)[by_column]
        zeros, ones = np.zeros(num_columns), np.ones(num_columns)
        self.highs.addCols(num_columns, self.costs[columns], zeros, ones, len(entries), starts, row_numbers, entries)
        self.position[columns] = 1 + len(self.columns) + np.arange(num_columns)
        self.columns = np.append(self.columns, columns)
        self.active[columns] = True

    def add(self, rows: Sequence[Row]) -> None:
        """Add rows, each divided by its largest absolute value: magnitudes become similar."""
        scales = [max(1.0, float(abs(row.values).max(initial=0.0))) for row in rows]
        # one call for all rows: a call copies the whole matrix
        indices, values = [], []
        for row, scale in zip(rows, scales, strict=True):
            is_active = self.active[row.columns]
            indices.append(np.append(self.position[row.columns[is_active]], SLACK).astype(np.int32))
            values.append(np.append(row.values[is_active] / scale, max(1.0, abs(row.lower_bound) / scale)))
        if rows:
            lower = np.array([row.lower_bound / scale for row, scale in zip(rows, scales, strict=True)])
            starts = np.cumsum([0, *map(len, indices[:-1])], dtype=np.int32)
            num_entries = sum(map(len, indices))
            upper = np.full(len(rows), np.inf)
            self.highs.addRows(
                len(rows), lower, upper, num_entries, starts, np.concatenate(indices), np.concatenate(values)
            )
        self.rows += rows
        self.num_entries += sum(len(row.columns) for row in rows)
        self.scales = np.append(self.scales, scales)
        self.unpriced = np.append(self.unpriced, np.zeros(len(rows), np.bool_))

    def drop(self, rows: Bits) -> None:
        """Remove rows, whose prices have to be 0 so that the basis stays optimal; rows: whether to remove each."""
        dropped = set((self.num_equal + np.flatnonzero(rows)).tolist())
        basis = self.highs.getBasis()
        self.highs.deleteRows(len(dropped), np.array(sorted(dropped), np.int32))
        basis.row_status = [status for row, status in enumerate(basis.row_status) if row not in dropped]
        self.highs.setBasis(basis)
        self.rows = [row for row, is_dropped in zip(self.rows, rows.tolist(), strict=True) if not is_dropped]
        self.num_entries = len(self.costs) + sum(len(row.columns) for row in self.rows)
        self.scales = self.scales[~rows]
        self.unpriced = self.unpriced[~rows]

    def solve(self, allowed: Bits, limits: Limits) -> tuple[F64 | None, Proof]:
        """Return the value of each column in an optimum, None if none was reached, and the proof.

        allowed: shape (columns,); limits: charged with the steps
        """
        import highspy

        is_solved, proof = self._run(allowed, limits, None)
        while is_solved and (cheaper := self._find_cheaper(proof)).size:
            if limits.are_reached():
                is_solved = False
                break
            self._activate(cheaper)
            is_solved, proof = self._run(allowed, limits, None)
        column_values = np.zeros(len(self.costs))
        column_values[self.columns] = self.highs.getSolution().col_value[SLACK + 1 :]
        statuses = self.highs.getBasis().row_status[self.num_equal :]
        self.unpriced = np.array([status == highspy.HighsBasisStatus.kBasic for status in statuses], np.bool_)
        return (np.clip(column_values, 0.0, 1.0) if is_solved else None), proof

    def improve_bound(self, allowed: Bits, iterations: int, limits: Limits) -> Proof:
        """Improve the bound by a few simplex iterations from the last solution; restore the basis.

        allowed: shape (columns,); limits: charged with the steps
        """
        self._cover(allowed)
        basis = self.highs.getBasis()
        _, proof = self._run(allowed, limits, iterations)
        self.highs.setBasis(basis)
        return proof

    def _find_cheaper(self, proof: Proof) -> Indices:
        """Return a few inactive columns of each variable that the prices make cheaper than all its active ones."""
        if len(self.columns) == len(self.costs):
            return np.zeros(0, np.int64)
        least = np.minimum.reduceat(np.where(self.active, proof.reduced_costs, np.inf), self.starts)
        bounds = np.repeat(least, np.diff([*self.starts, len(self.costs)])) - MIN_REDUCTION
        columns = np.flatnonzero(~self.active & (proof.reduced_costs < bounds))
        return self._least_of_each(columns, proof.reduced_costs[columns], NUM_ENTERING)

    def _cover(self, allowed: Bits) -> None:
        """Activate the cheapest allowed column of each variable that has no active one."""
        is_covered = np.logical_or.reduceat(allowed & self.active, self.starts)
        if not is_covered.all():
            columns = np.flatnonzero(allowed & ~is_covered[self.owner])
            self._activate(self._least_of_each(columns, self.costs[columns], 1))

    @property
    def _size(self) -> int:
        """Steps (see `Limits`) of a simplex iteration: each 10 to 22 ns, without the term of entries 16 to 53."""
        num_entries: int = self.highs.getNumNz()
        return len(self.columns) + 2 * (self.num_equal + len(self.rows)) + num_entries // ENTRIES_PER_PIVOT

    def _run(self, allowed: Bits, limits: Limits, iterations: int | None) -> tuple[bool, Proof]:
        """Solve within `iterations`, or the limits if it is None; return whether it was solved, and the proof."""
        self._cover(allowed)
        seconds = limits.seconds_left()
        if iterations is None and seconds is not None:
            self.highs.setOptionValue("time_limit", float(self.highs.getRunTime()) + max(seconds, 0.01))
        if iterations is None:
            steps = limits.steps
            iterations = NO_LIMIT if steps is None else min(NO_LIMIT, 1 + max(steps, 0) // self._size)
        self.highs.setOptionValue("simplex_iteration_limit", iterations)
        num_active = len(self.columns)
        upper = allowed[self.columns].astype(np.float64)
        active_indices = np.arange(1, num_active + 1, dtype=np.int32)
        self.highs.changeColsBounds(num_active, active_indices, np.zeros(num_active), upper)
        is_solved = run(self.highs)
        limits.spend((self.highs.getInfo().simplex_iteration_count + ITERATIONS_PER_RUN) * self._size)
        limits.spend(STEPS_PER_RUN + self.num_entries // ENTRIES_PER_STEP)
        proof = self._prove_bound(np.array(self.highs.getSolution().row_dual), allowed)
        return is_solved, proof

    def _prove_bound(self, duals: F64, allowed: Bits) -> Proof:
        if len(duals) == self.num_equal + len(self.rows):
            prices = np.floor(np.maximum(duals[self.num_equal :], 0.0) / self.scales * SCALE) / SCALE
            # prices of an unfinished solution may be of any size; without prices the bound is weak but exact
            max_value = float(prices @ self.scales) + float(abs(self.costs).max())
            if max_value < MAX_EXACT / 2 and abs((proof := self._price_out(prices, allowed)).bound) < MAX_EXACT / 2:
                return proof
        return self._price_out(np.zeros(len(self.rows)), allowed)

    def _price_out(self, prices: F64, allowed: Bits) -> Proof:
        """Compute the bound that prices prove; they are multiples of 1/SCALE, so small that reduced costs are exact."""
        reduced = self.costs.copy()
        used = np.flatnonzero(prices).tolist()
        for row in used:
            reduced[self.rows[row].columns] -= prices[row] * self.rows[row].values
        reduced[~allowed] = np.inf
        cheapest = np.minimum.reduceat(reduced, self.starts)
        units = sum(int(cost * SCALE) for cost in cheapest.tolist())
        units += sum(int(prices[row] * SCALE) * int(self.rows[row].lower_bound) for row in used)
        return Proof(units / SCALE, reduced - np.repeat(cheapest, np.diff([*self.starts, len(reduced)])))


# --- State shared by the criteria of an integer program: incumbent, fixed sums and cuts -------------------------------
Column: TypeAlias = tuple[int, Mask]
"""Column of the program: a variable and its parents within the part."""

Value: TypeAlias = Callable[[int, Mask], int]
"""Objective: cost of a column by one criterion."""


class LimitReached(Exception):  # noqa: N818 - no fault: the search returns its bound
    """Time or steps ran out.

    at_least: proven lower bound by the criterion
    """

    def __init__(self, at_least: int) -> None:
        super().__init__()
        self.at_least = at_least


class Limits:
    """Limits of a search; None for no limit.

    until: deadline on the monotonic clock
    steps: remaining steps, units of work that do not depend on the machine: a simplex iteration takes two for each row
        and one for each column of its relaxation; other work is charged as many steps as take the same time
    """

    def __init__(self, seconds: float | None = None, steps: int | None = None) -> None:
        self.until = None if seconds is None else monotonic() + seconds
        self.steps = steps

    def spend(self, steps: int) -> None:
        """Subtract steps that were taken; they may become negative."""
        if self.steps is not None:
            self.steps -= steps

    def seconds_left(self) -> float | None:
        """Return the seconds before the deadline; None without one."""
        return None if self.until is None else self.until - monotonic()

    def are_reached(self) -> bool:
        """Return whether the time or the steps are over."""
        seconds = self.seconds_left()
        return (seconds is not None and seconds <= 0) or (self.steps is not None and self.steps <= 0)


class Incumbent:
    """Best assignment so far, by all criteria lexicographically.

    limits: limits of the whole search, shared by all its criteria
    listen: called with the lower bound of the first criterion before every relaxation, and during local search
    minimum: least sum of the first criterion once it is proven, None before
    settled: objectives that are fixed to their optimum, each with the optimum
    cuts: clusters, as positions of variables, with which the next tree begins
    """

    def __init__(
        self,
        part: Part,
        chosen: dict[int, Mask],
        limits: Limits,
        listen: Callable[[int], None] = lambda at_least: None,
    ) -> None:
        self.listen = listen
        self.part = part
        self.variables = sorted(part)
        self.chosen = chosen
        self.limits = limits
        self.minimum: int | None = None
        self.settled: list[tuple[Value, int]] = []
        self.cuts: set[Cluster] = set()

    def update(self, chosen: dict[int, Mask]) -> None:
        """Replace the incumbent if the assignment is better."""
        if self._rank(chosen) < self._rank(self.chosen):
            self.chosen = chosen

    def _rank(self, chosen: Mapping[int, Mask]) -> tuple[int, ...]:
        sums = (sum(by(self.part[v][parents].cost) for v, parents in chosen.items()) for by in CRITERIA)
        return (*sums, *(self.part[v][chosen[v]].mask for v in self.variables))
