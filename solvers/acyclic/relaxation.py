"""The linear relaxation of an acyclic choice of parent sets, by HiGHS, and bounds that need not trust it.

One column for each parent set of each variable, of which exactly one is taken; every other row says that something is
at least something. Whatever the prices y >= 0 of those rows, no choice costs less than y times their right sides plus,
for each variable, the least that a set of it costs after the rows have paid: weak duality. Prices come from HiGHS in
floating point and are cut to multiples of 1/SCALE; with whole costs and entries every product and sum is then exact
below 2**53 / SCALE, so that bounds are proofs (in the way of A. Neumaier and O. Shcherbina, Safe bounds in linear and
mixed-integer programming, 2004).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from solvers.acyclic.cutting import F64, Bits

SCALE = 2.0**14
LARGEST = 2.0**53 / SCALE
PENALTY = 64.0  # for a row that is not met, in spans of all costs: no relaxation is without a solution


class Proof(NamedTuple):
    """No choice costs less than `bound`, none with a column less than `bound` + `dearer` of it.

    dearer: shape (columns,), infinite where the column may not be taken
    """

    bound: float
    dearer: F64


class Row(NamedTuple):
    """entries: shape (columns,), whole numbers; entries times what is taken is at least `least`"""

    entries: F64
    least: float


class Relaxation:
    """owner: shape (columns,), ascending: whose parent set a column is, as places from 0

    costs: shape (columns,), whole numbers
    """

    def __init__(self, owner: Sequence[int], costs: F64) -> None:
        import highspy

        self.owner = np.array(owner)
        self.costs = costs
        self.starts = np.flatnonzero(np.diff(self.owner, prepend=-1))
        self.entries = np.zeros((0, len(costs)))
        self.least = np.zeros(0)
        self.num_equal = len(self.starts)
        span = np.maximum.reduceat(costs, self.starts) - np.minimum.reduceat(costs, self.starts)
        self.highs = highspy.Highs()
        for name, chosen in {"output_flag": False, "threads": 1, "solver": "simplex", "presolve": "off"}.items():
            self.highs.setOptionValue(name, chosen)
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
        for entries, least in rows:
            places = np.flatnonzero(entries)
            unit = max(1.0, float(abs(entries).max(initial=0.0)))  # so that rows of large numbers look like others
            values = np.array([*(entries[places] / unit), max(1.0, abs(least) / unit)])
            self.highs.addRow(least / unit, np.inf, len(places) + 1, np.array([*places, self.slack], np.int32), values)
        self.entries = np.vstack([self.entries, *(row.entries for row in rows)])
        self.least = np.append(self.least, [row.least for row in rows])

    def solve(self, allowed: Bits, seconds: float | None = None) -> tuple[F64, Proof]:
        """What is taken of each column in an optimum, and what it proves.

        allowed: shape (columns,); seconds: after which HiGHS gives up, where nothing may be taken for an optimum
        """
        number = len(self.costs)
        if seconds is not None:
            self.highs.setOptionValue("time_limit", float(self.highs.getRunTime()) + max(seconds, 0.01))
        places = np.arange(number, dtype=np.int32)
        self.highs.changeColsBounds(number, places, np.zeros(number), allowed.astype(np.float64))
        self.highs.run()
        solution = self.highs.getSolution()
        taken = np.clip(np.array(solution.col_value[:number]), 0.0, 1.0)
        return taken, self._proved(np.array(solution.row_dual), allowed)

    def _proved(self, duals: F64, allowed: Bits) -> Proof:
        units = np.maximum(1.0, abs(self.entries).max(axis=1, initial=0.0))
        prices = np.zeros(len(self.least))
        if len(duals) == self.num_equal + len(self.least):
            prices = np.floor(np.maximum(duals[self.num_equal :], 0.0) / units * SCALE) / SCALE
            largest = float(prices @ (units + abs(self.least))) + float(abs(self.costs).max()) * self.num_equal
            if not largest < LARGEST / 2:
                prices[:] = 0.0
        used = np.flatnonzero(prices)
        left = np.where(allowed, self.costs - prices[used] @ self.entries[used], np.inf)
        cheapest = np.minimum.reduceat(left, self.starts)
        bound = float(prices @ self.least + cheapest.sum())
        return Proof(bound, left - np.repeat(cheapest, np.diff([*self.starts, len(left)])))
