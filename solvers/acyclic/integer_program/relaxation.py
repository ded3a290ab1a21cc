"""The linear relaxation of an acyclic choice of parent sets, by HiGHS, and bounds that need not trust it.

One column for each parent set of each variable, of which exactly one is taken; every other row says that something is
at least something. Whatever the prices y >= 0 of those rows, no choice costs less than y times their right sides plus,
for each variable, the least that a set of it costs after the rows have paid: weak duality. Prices come from HiGHS in
floating point and are cut to multiples of 1/SCALE; with whole costs and entries what is left of a cost is then exact
below 2**53 / SCALE, and the bound is added up in whole numbers, so that bounds are proofs (in the way of A. Neumaier
and O. Shcherbina, Safe bounds in linear and mixed-integer programming, 2004).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from calibrant.solvers.acyclic.integer_program.cutting import F64, Bits, Places
from calibrant.solvers.highs import empty_program, run

SCALE = 2.0**14
LARGEST = 2.0**53 / SCALE
NO_LIMIT = 2**31 - 1  # of steps, to HiGHS
PENALTY = 64.0  # for a row that is not met, in spans of all costs: no relaxation is without a solution


class Proof(NamedTuple):
    """No choice costs less than `bound`, none with a column less than `bound` + `dearer` of it.

    dearer: shape (columns,), infinite where the column may not be taken
    """

    bound: float
    dearer: F64


class Row(NamedTuple):
    """values: whole numbers, of the columns at these places; times what is taken they come to at least `least`"""

    places: Places
    values: F64
    least: float


class Relaxation:
    """owner: shape (columns,), ascending: whose parent set a column is, as places from 0

    costs: shape (columns,), whole numbers
    """

    def __init__(self, owner: Sequence[int], costs: F64) -> None:
        self.owner = np.array(owner)
        self.costs = costs
        self.starts = np.flatnonzero(np.diff(self.owner, prepend=-1))
        self.num_equal = len(self.starts)
        self.rows: list[Row] = []
        self.units = np.zeros(0)  # of each row, what it is divided by
        self.unpriced: Bits = np.zeros(0, np.bool_)  # of each row, whether it did without a price in the last solution
        self.highs = empty_program(solver="simplex", presolve="off")
        span = np.maximum.reduceat(costs, self.starts) - np.minimum.reduceat(costs, self.starts)
        number = len(costs)
        self.slack = number  # a column that meets every row, at a price
        self.highs.addVars(number + 1, np.zeros(number + 1), np.array([*np.ones(number), np.inf]))
        prices = np.array([*costs, PENALTY * (1 + float(span.sum()))])
        self.highs.changeColsCost(number + 1, np.arange(number + 1, dtype=np.int32), prices)
        for start, end in zip(self.starts, [*self.starts[1:], number], strict=True):
            places = np.arange(start, end, dtype=np.int32)
            self.highs.addRow(1.0, 1.0, len(places), places, np.ones(len(places)))

    def add(self, rows: Sequence[Row]) -> None:
        """From now on these rows hold too."""
        units = [max(1.0, float(abs(row.values).max(initial=0.0))) for row in rows]  # so that all rows look alike
        for (places, values, least), unit in zip(rows, units, strict=True):
            scaled = np.array([*(values / unit), max(1.0, abs(least) / unit)])
            self.highs.addRow(least / unit, np.inf, len(scaled), np.array([*places, self.slack], np.int32), scaled)
        self.rows += rows
        self.units = np.append(self.units, units)
        self.unpriced = np.append(self.unpriced, np.zeros(len(rows), np.bool_))

    def drop(self, rows: Bits) -> None:
        """These rows hold no more; none of them may have had a price."""
        dropped = set((self.num_equal + np.flatnonzero(rows)).tolist())
        basis = self.highs.getBasis()
        self.highs.deleteRows(len(dropped), np.array(sorted(dropped), np.int32))
        basis.row_status = [status for row, status in enumerate(basis.row_status) if row not in dropped]
        self.highs.setBasis(basis)
        self.rows = [row for row, is_dropped in zip(self.rows, rows.tolist(), strict=True) if not is_dropped]
        self.units = self.units[~rows]
        self.unpriced = self.unpriced[~rows]

    def solve(self, allowed: Bits, seconds: float | None = None) -> tuple[F64 | None, Proof]:
        """Return what is taken of each column in an optimum, None without one, and what is proved.

        allowed: shape (columns,); seconds: after which HiGHS gives up
        """
        import highspy

        if seconds is not None:
            self.highs.setOptionValue("time_limit", float(self.highs.getRunTime()) + max(seconds, 0.01))
        is_solved, proof = self._run(allowed)
        taken = np.array(self.highs.getSolution().col_value[: len(self.costs)])
        statuses = self.highs.getBasis().row_status[self.num_equal :]
        self.unpriced = np.array([status == highspy.HighsBasisStatus.kBasic for status in statuses], np.bool_)
        return (np.clip(taken, 0.0, 1.0) if is_solved else None), proof

    def improve_bound(self, allowed: Bits, steps: int) -> Proof:
        """Return what a few steps of the simplex prove, from the last solution on, which is the last one after it too.

        allowed: shape (columns,)
        """
        basis = self.highs.getBasis()
        self.highs.setOptionValue("simplex_iteration_limit", steps)
        _, proof = self._run(allowed)
        self.highs.setOptionValue("simplex_iteration_limit", NO_LIMIT)
        self.highs.setBasis(basis)
        return proof

    def _run(self, allowed: Bits) -> tuple[bool, Proof]:
        number = len(self.costs)
        places = np.arange(number, dtype=np.int32)
        self.highs.changeColsBounds(number, places, np.zeros(number), allowed.astype(np.float64))
        is_solved = run(self.highs)
        return is_solved, self._proved(np.array(self.highs.getSolution().row_dual), allowed)

    def _proved(self, duals: F64, allowed: Bits) -> Proof:
        if len(duals) == self.num_equal + len(self.rows):
            prices = np.floor(np.maximum(duals[self.num_equal :], 0.0) / self.units * SCALE) / SCALE
            largest = float(prices @ self.units) + float(abs(self.costs).max())
            if largest < LARGEST / 2 and abs((proof := self._priced(prices, allowed)).bound) < LARGEST / 2:
                return proof
        return self._priced(np.zeros(len(self.rows)), allowed)

    def _priced(self, prices: F64, allowed: Bits) -> Proof:
        """prices: multiples of 1/SCALE, in all so small that what is left of a cost is exact"""
        left = self.costs.copy()
        used = np.flatnonzero(prices).tolist()
        for at in used:
            left[self.rows[at].places] -= prices[at] * self.rows[at].values
        left[~allowed] = np.inf
        cheapest = np.minimum.reduceat(left, self.starts)
        units = sum(int(least * SCALE) for least in cheapest.tolist())
        units += sum(int(prices[at] * SCALE) * int(self.rows[at].least) for at in used)
        return Proof(units / SCALE, left - np.repeat(cheapest, np.diff([*self.starts, len(left)])))
