"""Linear relaxation of the program, and the incumbent that its criteria share.

One column for each parent set of each variable, one equality for each variable (exactly one set); all other rows are
inequalities "at least". For any prices y >= 0 of those rows, weak duality bounds the cost from below: y times their
right sides plus, for each variable, the least reduced cost of its columns. Prices come from HiGHS in floating point and
are truncated to multiples of 1/SCALE. With whole costs and entries, reduced costs are then exact below 2**53 / SCALE,
and the bound is added up in integers, so bounds are proofs (after A. Neumaier and O. Shcherbina, Safe bounds in linear
and mixed-integer programming, 2004).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from time import monotonic
from typing import NamedTuple, TypeAlias

import numpy as np

from calibrant.solvers.acyclic.integer_program.cutting import F64, Bits, Cluster, Indices
from calibrant.solvers.acyclic.least import Mask, Part
from calibrant.solvers.acyclic.maxsat import CRITERIA
from calibrant.solvers.highs import empty_program, run

# --- Linear relaxation of the program, by HiGHS, and safe bounds that do not rely on its floating point ---------------
SCALE = 2.0**14  # prices are multiples of its inverse
MAX_EXACT = 2.0**53 / SCALE  # below it, multiples of 1/SCALE are exact in double precision
NO_LIMIT = 2**31 - 1  # HiGHS' default for a limit on simplex iterations
ITERATIONS_PER_RUN = 80  # iterations that take as long as handing a relaxation over and reading its solution
PENALTY = 64.0  # cost of the slack column, in ranges of all costs: every relaxation is feasible


class Proof(NamedTuple):
    """Lower bound, and reduced costs: no assignment with a column costs less than `bound` plus its reduced cost.

    reduced_costs: shape (columns,), infinite where the column is not allowed
    """

    bound: float
    reduced_costs: F64


class Row(NamedTuple):
    """Inequality: `values` (whole numbers) times the `columns` is at least `lower_bound`."""

    columns: Indices
    values: F64
    lower_bound: float


class Relaxation:
    """Linear relaxation that keeps its basis between solutions.

    owner: shape (columns,), ascending: position of the column's variable; costs: shape (columns,), whole numbers
    scales: divisor of each row; unpriced: whether each row was without a price in the last solution
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
        num_columns = len(costs)
        self.slack = num_columns  # a column that satisfies every inequality, at a penalty
        self.highs.addVars(num_columns + 1, np.zeros(num_columns + 1), np.array([*np.ones(num_columns), np.inf]))
        prices = np.array([*costs, PENALTY * (1 + float(span.sum()))])
        self.highs.changeColsCost(num_columns + 1, np.arange(num_columns + 1, dtype=np.int32), prices)
        for start, end in zip(self.starts, [*self.starts[1:], num_columns], strict=True):
            columns = np.arange(start, end, dtype=np.int32)
            self.highs.addRow(1.0, 1.0, len(columns), columns, np.ones(len(columns)))

    def add(self, rows: Sequence[Row]) -> None:
        """Add rows."""
        scales = [max(1.0, float(abs(row.values).max(initial=0.0))) for row in rows]  # similar magnitudes in all rows
        # one call: each one copies the whole matrix
        indices = [np.append(row.columns, self.slack).astype(np.int32) for row in rows]
        values = [
            np.append(row.values / scale, max(1.0, abs(row.lower_bound) / scale))
            for row, scale in zip(rows, scales, strict=True)
        ]
        if rows:
            lower = np.array([row.lower_bound / scale for row, scale in zip(rows, scales, strict=True)])
            starts = np.cumsum([0, *map(len, indices[:-1])], dtype=np.int32)
            num_entries = sum(map(len, indices))
            upper = np.full(len(rows), np.inf)
            self.highs.addRows(
                len(rows), lower, upper, num_entries, starts, np.concatenate(indices), np.concatenate(values)
            )
        self.rows += rows
        self.scales = np.append(self.scales, scales)
        self.unpriced = np.append(self.unpriced, np.zeros(len(rows), np.bool_))

    def drop(self, rows: Bits) -> None:
        """Remove rows; none of them may have a price, so that the basis stays optimal."""
        dropped = set((self.num_equal + np.flatnonzero(rows)).tolist())
        basis = self.highs.getBasis()
        self.highs.deleteRows(len(dropped), np.array(sorted(dropped), np.int32))
        basis.row_status = [status for row, status in enumerate(basis.row_status) if row not in dropped]
        self.highs.setBasis(basis)
        self.rows = [row for row, is_dropped in zip(self.rows, rows.tolist(), strict=True) if not is_dropped]
        self.scales = self.scales[~rows]
        self.unpriced = self.unpriced[~rows]

    def solve(self, allowed: Bits, limits: Limits) -> tuple[F64 | None, Proof]:
        """Return the value of each column in an optimum, None if it was not reached, and the proof.

        allowed: shape (columns,); limits: its steps are spent
        """
        import highspy

        seconds = limits.seconds_left()
        if seconds is not None:
            self.highs.setOptionValue("time_limit", float(self.highs.getRunTime()) + max(seconds, 0.01))
        if limits.steps is not None:
            iterations = min(NO_LIMIT, 1 + max(limits.steps, 0) // self._size)
            self.highs.setOptionValue("simplex_iteration_limit", iterations)
        is_solved, proof = self._run(allowed, limits)
        column_values = np.array(self.highs.getSolution().col_value[: len(self.costs)])
        statuses = self.highs.getBasis().row_status[self.num_equal :]
        self.unpriced = np.array([status == highspy.HighsBasisStatus.kBasic for status in statuses], np.bool_)
        return (np.clip(column_values, 0.0, 1.0) if is_solved else None), proof

    def improve_bound(self, allowed: Bits, iterations: int, limits: Limits) -> Proof:
        """Improve the bound by a few simplex iterations from the last solution; restore the basis.

        allowed: shape (columns,); limits: its steps are spent
        """
        basis = self.highs.getBasis()
        self.highs.setOptionValue("simplex_iteration_limit", iterations)
        _, proof = self._run(allowed, limits)
        self.highs.setOptionValue("simplex_iteration_limit", NO_LIMIT)
        self.highs.setBasis(basis)
        return proof

    @property
    def _size(self) -> int:
        return len(self.costs) + self.num_equal + len(self.rows)

    def _run(self, allowed: Bits, limits: Limits) -> tuple[bool, Proof]:
        num_columns = len(self.costs)
        columns = np.arange(num_columns, dtype=np.int32)
        self.highs.changeColsBounds(num_columns, columns, np.zeros(num_columns), allowed.astype(np.float64))
        is_solved = run(self.highs)
        limits.spend((self.highs.getInfo().simplex_iteration_count + ITERATIONS_PER_RUN) * self._size)
        return is_solved, self._prove_bound(np.array(self.highs.getSolution().row_dual), allowed)

    def _prove_bound(self, duals: F64, allowed: Bits) -> Proof:
        if len(duals) == self.num_equal + len(self.rows):
            prices = np.floor(np.maximum(duals[self.num_equal :], 0.0) / self.scales * SCALE) / SCALE
            # prices of an unfinished solution may be of any size; without prices the bound is weak but exact
            max_value = float(prices @ self.scales) + float(abs(self.costs).max())
            if max_value < MAX_EXACT / 2 and abs((proof := self._price_out(prices, allowed)).bound) < MAX_EXACT / 2:
                return proof
        return self._price_out(np.zeros(len(self.rows)), allowed)

    def _price_out(self, prices: F64, allowed: Bits) -> Proof:
        """Compute the bound that prices prove; multiples of 1/SCALE, so small in total that reduced costs are exact."""
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
    steps: remaining steps; a simplex iteration takes one for each row and column of its relaxation
    """

    def __init__(self, seconds: float | None = None, steps: int | None = None) -> None:
        self.until = None if seconds is None else monotonic() + seconds
        self.steps = steps

    def spend(self, steps: int) -> None:
        """Count steps that were taken."""
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

    limits: of the whole search, spent by all its criteria
    listen: called with the lower bound of the first criterion after every relaxation
    minimum: of the first criterion once it is proven, None before
    settled: objectives that are fixed to their optimum, and the optimum
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
        """Replace the incumbent by an assignment that is better."""
        if self._key(chosen) < self._key(self.chosen):
            self.chosen = chosen

    def _key(self, chosen: Mapping[int, Mask]) -> tuple[int, ...]:
        sums = (sum(by(self.part[v][parents].cost) for v, parents in chosen.items()) for by in CRITERIA)
        return (*sums, *(self.part[v][chosen[v]].mask for v in self.variables))
