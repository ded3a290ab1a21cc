"""The acyclic choice of least total cost by an integer program with cluster cuts, through HiGHS (extra `large`).

One binary variable for each parent set of each variable, and branch and cut (solvers.acyclic.integer_program.tree).
Sizes first, then mentions among the choices of least size, then variable by variable the smallest parent set: the tie
rule of solvers.acyclic.least_cost. What the search for the least size leaves open is all that is looked
at for ties. Sums beyond LARGEST_SUM are refused: HiGHS computes in floating point.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import monotonic

import numpy as np

from calibrant.solvers.acyclic.integer_program.cutting import Bits
from calibrant.solvers.acyclic.integer_program.incumbent import Column, Incumbent, TimeLimitReached, Value
from calibrant.solvers.acyclic.integer_program.tree import Tree
from calibrant.solvers.acyclic.least_cost import Cost, Mask, by_size, total_size
from calibrant.solvers.acyclic.maxsat import CRITERIA
from calibrant.solvers.acyclic.ordering_search import good_choice
from calibrant.solvers.acyclic.reduction import Part, split
from calibrant.solvers.budget import Undecided
from calibrant.solvers.highs import require_highs

LARGEST_SUM = 10**8


def least_by_program(part: Part, *, seconds: float | None = None) -> dict[int, Mask] | None:
    """The parents within the part of every variable; None if every choice has a cycle.

    `Undecided` with a bound and the best choice known if time ran out, `MissingExtraError` without HiGHS.

    seconds: of the clock, which is looked at between steps; None means no limit
    """
    require_highs()
    until = None if seconds is None else monotonic() + seconds
    good = good_choice({v: {parents: one.cost for parents, one in sets.items()} for v, sets in part.items()}, 0)
    if good is None:
        return None
    known = good[1]
    spans = (max(candidates.values()).cost - min(candidates.values()).cost for candidates in part.values())
    if sum(map(total_size, spans)) > LARGEST_SUM:
        least = sum(min(candidates.values()).cost for candidates in part.values())
        reached = f"sizes differ by more than {LARGEST_SUM:,} in all: too much for floating point"
        raise Undecided(least, reached, known)
    return _Search(Incumbent(part, known, until)).least()


class _Search:
    """columns: variable and parents, as far as they are needed

    groups: per column whether it is allowed; every choice that may be the least one is in one of them
    """

    def __init__(self, known: Incumbent) -> None:
        self.known = known
        self.part = known.part
        self.variables = known.variables
        self.columns: list[Column] = [(v, parents) for v in self.variables for parents in self.part[v]]
        self.groups: list[Bits] = [np.ones(len(self.columns), np.bool_)]

    def least(self) -> dict[int, Mask]:
        sums = [0, 0]
        for number, criterion in enumerate(CRITERIA):
            try:
                sums[number] = self._settle(lambda v, own, by=criterion: by(self.part[v][own].cost))  # type: ignore[misc]
            except TimeLimitReached as late:
                sums[number] = late.at_least
                raise Undecided(_cost(sums), None, self.known.chosen) from None
            if number == 0 and (chosen := self._apart(sums)) is not None:
                return chosen
        for v in self.variables:
            ranked = sorted((self.part[v][parents].mask, parents) for u, parents in self.columns if u == v)
            ranks = {parents: rank for rank, (_, parents) in enumerate(ranked)}
            try:
                self._settle(lambda u, own, v=v, ranks=ranks: ranks[own] if u == v else 0)  # type: ignore[misc]
            except TimeLimitReached:
                raise Undecided(_cost(sums), None, self.known.chosen) from None
        return self.known.chosen

    def _apart(self, sums: Sequence[int]) -> dict[int, Mask] | None:
        """The choice, if the columns that are left fall into smaller parts; None if they do not."""
        left = {v: [self.part[v][parents] for u, parents in self.columns if u == v] for v in self.variables}
        found = split(left)
        if found is None or (len(found) == 1 and _number(found[0]) == _number(self.part)):
            return None
        chosen = dict(self.known.chosen)
        for part in found:
            try:
                assignment = least_by_program(part, seconds=self.known.left())
            except Undecided:
                raise Undecided(_cost(sums), None, self.known.chosen) from None
            assert assignment is not None
            chosen |= {v: self._within(part[v][mask].mask) for v, mask in assignment.items()}
        return chosen

    def _within(self, mask: Mask) -> Mask:
        return mask & sum(1 << v for v in self.variables)

    def _settle(self, value: Value) -> int:
        """Return what the least choice comes to by a value; only groups and columns with such choices stay."""
        cheapest = {v: min(value(u, parents) for u, parents in self.columns if u == v) for v in self.variables}
        base = sum(cheapest.values())

        def above(v: int, own: Mask) -> int:
            return value(v, own) - cheapest[v]

        if sum(above(v, parents) for v, parents in self.known.chosen.items()) == 0:
            least = np.array([above(v, parents) == 0 for v, parents in self.columns])
            groups = [columns & least for columns in self.groups]
            total = base
        else:
            tree = Tree(self.known, self.columns, above)
            try:
                groups = tree.grow(self.groups)
            except TimeLimitReached as late:
                raise TimeLimitReached(base + late.at_least) from None
            total = base + tree.most
            self.known.settled.append((above, tree.most))
        needed = np.logical_or.reduce(groups)
        self.columns = [one for one, kept in zip(self.columns, needed, strict=True) if kept]
        places = {v: place for place, v in enumerate(self.variables)}
        owner = np.array([places[v] for v, _ in self.columns])
        self.groups = [columns[needed] for columns in groups if len(set(owner[columns[needed]])) == len(self.variables)]
        return total


def _number(part: Part) -> int:
    return sum(map(len, part.values()))


def _cost(sums: Sequence[int]) -> Cost:
    size, mentions = sums
    return by_size(size, 0) + mentions
