"""The acyclic choice of least total cost by an integer program with cluster cuts, through HiGHS (extra `large`).

One binary variable for each parent set of each variable. Cuts that the relaxation violates are sought by growing
clusters greedily, and once there are none those that an integer optimum violates (T. Jaakkola and others, 2010; the
method of GOBNILP, M. Bartlett and J. Cussens, 2017). A choice that a search over orders finds is the bound that parent
sets are dropped by: those whose reduced cost alone takes a choice beyond it.

Sizes first, then mentions among the choices of least size, then variable by variable the smallest parent set: the tie
rule of solvers.acyclic.least_cost. HiGHS computes in floating point: costs are whole numbers, so a gap below one is
none, but sums beyond LARGEST_SUM are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from importlib.util import find_spec
from math import ceil
from typing import TypeAlias

import numpy as np

from dsl.errors import MissingExtraError
from solvers.acyclic.least_cost import Cost, Mask, by_size, total_size
from solvers.acyclic.maxsat import CRITERIA, clusters, placed
from solvers.acyclic.order_search import good_choice
from solvers.acyclic.reduction import Part
from solvers.budget import Undecided

TOLERANCE = 1e-6
LARGEST_SUM = 10**8
MARGIN = 0.1  # of a bound in floating point, by which a parent set is not dropped yet

Column: TypeAlias = tuple[int, Mask]
"""A variable and its parents within the part."""

Value: TypeAlias = Callable[[int, Mask], int]
"""What a column costs, by one criterion."""


def least_by_program(part: Part, *, seconds: float | None = None) -> dict[int, Mask] | None:
    """The parents within the part of every variable; None if every choice has a cycle.

    `Undecided` with a bound if HiGHS took longer, `MissingExtraError` without it.

    seconds: of the clock, for each time that HiGHS is asked; None means no limit
    """
    if not find_spec("highspy"):
        raise MissingExtraError("highspy is not installed; it comes with: pip install 'calibrant[large]'")
    spans = (max(own.values()).cost - min(own.values()).cost for own in part.values())
    if sum(map(total_size, spans)) > LARGEST_SUM:
        least = sum(min(own.values()).cost for own in part.values())
        raise Undecided(least, f"sizes differ by more than {LARGEST_SUM:,} in all: too much for floating point")
    known = good_choice({v: {own: one.cost for own, one in sets.items()} for v, sets in part.items()}, 0)
    return None if known is None else _Search(part, known[1], seconds).least()


class _Search:
    """known: the best choice so far

    columns: variable and parents, as far as they may be in a least choice; cuts: clusters
    settled: of each sum that is known what the columns add to it, and what it comes to
    """

    def __init__(self, part: Part, known: dict[int, Mask], seconds: float | None) -> None:
        self.part = part
        self.known = known
        self.seconds = seconds
        self.columns = [(v, own) for v, sets in part.items() for own in sets]
        self.cuts: set[tuple[int, ...]] = set()
        self.settled: list[tuple[Value, int]] = []

    def least(self) -> dict[int, Mask]:
        sums = [0, 0]
        for number, criterion in enumerate(CRITERIA):
            try:
                sums[number] = self._settle(lambda v, own, by=criterion: by(self.part[v][own].cost))  # type: ignore[misc]
            except _LateError as late:
                sums[number] = late.at_least
                raise Undecided(_cost(sums)) from None
        for v in sorted(self.part):
            ranked = sorted((self.part[v][own].mask, own) for u, own in self.columns if u == v)
            ranks = {own: rank for rank, (_, own) in enumerate(ranked)}
            if len(ranks) > 1:
                try:
                    self._settle(lambda u, own, v=v, ranks=ranks: ranks[own] if u == v else 0)  # type: ignore[misc]
                except _LateError:
                    raise Undecided(_cost(sums)) from None
        return self.known

    def _settle(self, value: Value) -> int:
        """The least sum of a value over all choices that are still open; only columns that may have it stay."""
        most = self._sum(value)
        relaxed = _Program(self, value)
        try:
            while found := _violated(self.part, relaxed.shares()):
                self._cut([relaxed], found)
            lower, dearer = relaxed.bound, relaxed.reduced_costs()
            if ceil(lower - TOLERANCE) < most:
                self.columns = self._within(most, lower, dearer)
                self._improve(value, most - 1)
                most = self._sum(value)
            self.columns = self._within(most, lower, dearer)
        except _NoneError:  # the known choice is all there is
            self.columns = list(self.known.items())
        self.settled.append((value, most))
        return most

    def _improve(self, value: Value, most: int) -> None:
        """A least choice becomes the known one if it costs no more than that.

        HiGHS stops at the first thing that is better: if it has a cycle, cuts are added.
        """
        program = _Program(self, value, most)
        program.first_better()
        try:
            while True:
                taken: dict[int, list[Mask]] = {v: [] for v in self.part}
                for (v, own), share in program.integers().items():
                    if share > 1 / 2:
                        taken[v].append(own)
                chosen, left = placed(taken)
                if not left:
                    self.known = chosen
                    program.at_most(self._sum(value) - 1)
                    continue
                self._cut([program], clusters(taken, left))
        except _NoneError:
            return

    def _sum(self, value: Value) -> int:
        return sum(value(v, own) for v, own in self.known.items())

    def _cut(self, programs: Sequence[_Program], found: Collection[tuple[int, ...]]) -> None:
        for cluster in found:
            self.cuts.add(cluster)
            for program in programs:
                program.cut(cluster)

    def _within(self, most: int, lower: float, dearer: Mapping[Column, float]) -> list[Column]:
        """Columns that may be in a choice that costs no more than that."""
        known = set(self.known.items())
        return [one for one in self.columns if one in known or lower + dearer[one] < most + MARGIN]


class _NoneError(Exception):
    """No choice meets all rows."""


class _LateError(Exception):
    def __init__(self, at_least: int) -> None:
        super().__init__()
        self.at_least = at_least


class _Program:
    """The columns of a search with its cuts and the sums that are settled, minimising a value.

    most: of the value
    """

    def __init__(self, search: _Search, value: Value, most: int | None = None) -> None:
        import highspy

        self.highspy = highspy
        self.columns = search.columns
        self.limit = -1  # the row that limits the value
        self.highs = highspy.Highs()
        options = {"output_flag": False, "threads": 1, "mip_rel_gap": 0.0, "mip_abs_gap": 1 - MARGIN}
        if search.seconds is not None:
            options["time_limit"] = search.seconds
        for name, chosen in options.items():
            self.highs.setOptionValue(name, chosen)
        for v, own in self.columns:
            self.highs.addCol(float(value(v, own)), 0.0, 1.0, 0, np.empty(0, np.int32), np.empty(0))
        for variable in search.part:
            self._row({one: 1.0 for one in self.columns if one[0] == variable}, 1.0, 1.0)
        for settled, total in [*search.settled, *([] if most is None else [(value, most)])]:
            self.limit = self._row({one: float(settled(*one)) for one in self.columns}, -np.inf, float(total))
        for cluster in search.cuts:
            self.cut(cluster)

    def first_better(self) -> None:
        """`integers` need not be least."""
        self.highs.setOptionValue("mip_max_improving_sols", 1)

    def at_most(self, most: int) -> None:
        """Another limit of the value than there was."""
        self.highs.changeRowBounds(self.limit, -np.inf, float(most))

    def cut(self, cluster: Collection[int]) -> None:
        """One variable of the cluster takes a set without a parent in it."""
        within = sum(1 << v for v in cluster)
        self._row({one: 1.0 for one in self.columns if one[0] in cluster and not one[1] & within}, 1.0, np.inf)

    def _row(self, entries: Mapping[Column, float], least: float, most: float) -> int:
        places = [place for place, one in enumerate(self.columns) if one in entries]
        numbers = np.array([entries[self.columns[place]] for place in places])
        self.highs.addRow(least, most, len(places), np.array(places, np.int32), numbers)
        return int(self.highs.getNumRow()) - 1

    def shares(self) -> dict[Column, float]:
        """Of each column in an optimum of the relaxation; or of the program, once `integers` was asked."""
        self.highs.run()
        status, kinds = self.highs.getModelStatus(), self.highspy.HighsModelStatus
        if status in (kinds.kInfeasible, kinds.kUnboundedOrInfeasible):
            raise _NoneError
        if status not in (kinds.kOptimal, kinds.kSolutionLimit):
            known = self.highs.getInfo().mip_dual_bound
            raise _LateError(ceil(known - TOLERANCE) if np.isfinite(known) else 0)
        return dict(zip(self.columns, self.highs.getSolution().col_value, strict=True))

    def integers(self) -> dict[Column, float]:
        """Of each column in an optimum."""
        number = len(self.columns)
        kinds = np.full(number, self.highspy.HighsVarType.kInteger)
        self.highs.changeColsIntegrality(number, np.arange(number, dtype=np.int32), kinds)
        return self.shares()

    @property
    def bound(self) -> float:
        return float(self.highs.getObjectiveValue())

    def reduced_costs(self) -> dict[Column, float]:
        """By how much at least a choice with the column is above the bound."""
        return dict(zip(self.columns, self.highs.getSolution().col_dual, strict=True))


def _violated(part: Part, shares: Mapping[Column, float]) -> set[tuple[int, ...]]:
    """Clusters of which less than one variable takes a set without a parent in it; grown from every variable."""
    held: dict[int, list[tuple[Mask, float]]] = {v: [] for v in part}
    for (v, own), share in shares.items():
        if share > TOLERANCE:
            held[v].append((own, share))
    found = set()
    for start in part:
        cluster = [start]
        while len(cluster) < len(part):
            outside, best = min((_outside(held, [*cluster, u]), u) for u in part if u not in cluster)
            cluster.append(best)
            if outside < 1 - 100 * TOLERANCE:
                found.add(tuple(sorted(cluster)))
                break
    return found


def _outside(held: Mapping[int, list[tuple[Mask, float]]], cluster: Collection[int]) -> float:
    within = sum(1 << v for v in cluster)
    return sum(share for v in cluster for own, share in held[v] if not own & within)


def _cost(sums: Sequence[int]) -> Cost:
    size, mentions = sums
    return by_size(size, 0) + mentions
