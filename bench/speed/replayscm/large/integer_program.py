"""The least size of an acyclic choice by an integer program with cluster cuts, through HiGHS.

One binary variable for each parent set of each variable. Cuts that the relaxation violates are sought by growing
clusters greedily, and once there are none those that the integer optimum violates (T. Jaakkola and others, 2010; the
method of GOBNILP, M. Bartlett and J. Cussens, 2017).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import highspy
import numpy as np

from solvers.acyclic.least_cost import Cost, Mask, total_size
from solvers.acyclic.maxsat import clusters, placed
from solvers.acyclic.reduction import Part, parts

TOLERANCE = 1e-6


def least_size(
    options: Mapping[int, Mapping[Mask, Cost]], roots: Mask, *, seconds: float = highspy.kHighsInf
) -> int | None:
    """None if every choice has a cycle; `TimeoutError` if a part took longer.

    options: per variable its possible parent sets and what they cost
    """
    found = parts(options, roots)
    sizes = None if found is None else [_Program(part, seconds).least() for part in found]
    return None if sizes is None or None in sizes else sum(size for size in sizes if size is not None)


class _Program:
    def __init__(self, part: Part, seconds: float) -> None:
        self.part = part
        self.columns = [(v, own) for v, sets in part.items() for own in sets]
        self.of = {v: [c for c, (u, _) in enumerate(self.columns) if u == v] for v in part}
        self.highs = highspy.Highs()
        self.highs.setOptionValue("output_flag", False)
        self.highs.setOptionValue("threads", 1)
        self.highs.setOptionValue("time_limit", seconds)
        for v, own in self.columns:
            self.highs.addCol(float(total_size(part[v][own].cost)), 0.0, 1.0, 0, np.empty(0, np.int32), np.empty(0))
        for columns in self.of.values():
            self._row(columns, 1.0)

    def least(self) -> int | None:
        if len(self.part) == 1:
            return min(total_size(one.cost) for sets in self.part.values() for one in sets.values())
        while found := self._violated(self._solved()):
            for cluster in found:
                self._cut(cluster)
        number = len(self.columns)
        kinds = np.full(number, highspy.HighsVarType.kInteger)
        self.highs.changeColsIntegrality(number, np.arange(number, dtype=np.int32), kinds)
        while True:
            values = self._solved()
            if self.highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
                return None
            taken = {v: [self.columns[c][1] for c in columns if values[c] > 0.5] for v, columns in self.of.items()}
            _, left = placed(taken)
            if not left:
                return round(float(self.highs.getObjectiveValue()))
            for cluster in clusters(taken, left):
                self._cut(cluster)

    def _solved(self) -> list[float]:
        self.highs.run()
        if self.highs.getModelStatus() == highspy.HighsModelStatus.kTimeLimit:
            raise TimeoutError
        return list(self.highs.getSolution().col_value)

    def _row(self, columns: Collection[int], most: float) -> None:
        self.highs.addRow(1.0, most, len(columns), np.array(sorted(columns), np.int32), np.ones(len(columns)))

    def _cut(self, cluster: Collection[int]) -> None:
        """One variable of the cluster takes a set without a parent in it."""
        within = sum(1 << v for v in cluster)
        self._row([c for v in cluster for c in self.of[v] if not self.columns[c][1] & within], highspy.kHighsInf)

    def _violated(self, values: list[float]) -> set[tuple[int, ...]]:
        """Clusters of which less than one variable takes a set without a parent in it; grown from every variable."""
        held = {
            v: [(self.columns[c][1], values[c]) for c in columns if values[c] > TOLERANCE]
            for v, columns in self.of.items()
        }
        found = set()
        for start in self.part:
            cluster = [start]
            while len(cluster) < len(self.part):
                others = [u for u in self.part if u not in cluster]
                outside, best = min((_outside(held, [*cluster, u]), u) for u in others)
                cluster.append(best)
                if outside < 1 - 100 * TOLERANCE:
                    found.add(tuple(sorted(cluster)))
                    break
        return found


def _outside(held: Mapping[int, list[tuple[Mask, float]]], cluster: Collection[int]) -> float:
    within = sum(1 << v for v in cluster)
    return sum(value for v in cluster for own, value in held[v] if not own & within)
