"""Branch and cut for one criterion: which parent sets the acyclic choices of least total cost may still take.

Relaxations with the cuts that they violate, each begun from the basis of the one before; bounds that need not trust
floating point (solvers.acyclic.integer_program.relaxation), by which columns are dropped that are in no choice as good
as the best one known; choices by searches over orders that begin where the relaxation points; branches on whether one
variable is a parent of another, the best bound first (the method of GOBNILP: M. Bartlett and J. Cussens, Integer linear
programming for the Bayesian network structure learning problem, 2017).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from heapq import heappop, heappush
from itertools import count
from math import ceil
from typing import NamedTuple

import numpy as np

from calibrant.solvers.acyclic.integer_program.cutting import (
    F64,
    Bits,
    Cluster,
    Places,
    Support,
    most_violated,
    violated,
)
from calibrant.solvers.acyclic.integer_program.incumbent import Column, Incumbent, TimeLimitReached, Value
from calibrant.solvers.acyclic.integer_program.order_local_search import OrderLocalSearch
from calibrant.solvers.acyclic.integer_program.relaxation import Proof, Relaxation, Row
from calibrant.solvers.acyclic.least_cost import Cost, Mask
from calibrant.solvers.acyclic.maxsat import placed, violated_clusters
from calibrant.solvers.acyclic.ordering_search import Orders

TAKEN = 1e-6  # of a column, below which it counts as not taken
LITTLE = 0.02  # of the gap, by which a bound has to rise for more cuts to be sought
PATIENCE = 3  # rounds that raise it by less; with 0 a cut that is forgotten would not be sought again
AGE = 20  # rounds without a price, after which a cut is forgotten
FORGOTTEN = 1 / 4  # of the cuts at once, so that it pays
WALKS, STIRRED_FIRST = 8, 40  # random orders before the first branch; times that each is disturbed, per variable
STIRRED = 30  # times that an order is disturbed to which the relaxation points
FINELY = 1024  # units of a cost that is weighed by a share
TRIED = 20  # arcs to branch on
TRIED_STEPS = 50  # of the simplex for each side of each


class _Node(NamedTuple):
    """bound: no choice among the columns that are allowed costs less; number: tells nodes of a bound apart"""

    bound: float
    number: int
    allowed: Bits


class _Side(NamedTuple):
    """Child of a node after branching: inherited bound and allowed columns."""

    bound: float
    allowed: Bits


class Tree:
    """Branch and cut for one value, of which every variable has a column that costs 0.

    most: what the known choice comes to; ended: nodes in which no choice is better, and some may be as good
    """

    def __init__(self, known: Incumbent, columns: Sequence[Column], value: Value) -> None:
        self.known = known
        self.columns = columns
        self.value = value
        self.variables = known.variables
        place = {v: i for i, v in enumerate(self.variables)}
        self.owner = np.array([place[v] for v, _ in columns])
        masks = np.array([parents for _, parents in columns], np.int64)
        self.parents: Bits = (masks[:, None] >> np.array(self.variables) & 1).astype(np.bool_)
        self.costs = np.array([value(v, parents) for v, parents in columns], np.float64)
        self.relaxed = Relaxation(self.owner.tolist(), self.costs)
        self.cuts: list[Cluster] = []  # the last rows of the relaxation
        self.unpriced: Places = np.zeros(0, np.int64)  # of each, how long it has been without a price
        self.most = self._sum(known.chosen)
        self.ended: list[_Node] = []
        self.queue: list[_Node] = []
        self.numbers = count()
        self.stirring = OrderLocalSearch(
            {v: {parents: one.cost for parents, one in sets.items()} for v, sets in known.part.items()}
        )
        for settled, total in known.settled:
            values = np.array([settled(v, parents) for v, parents in columns], np.float64)
            places = np.flatnonzero(values)
            self.relaxed.add([Row(places, -values[places], -float(total))])
        self._cut(known.cuts)

    def grow(self, groups: Sequence[Bits]) -> list[Bits]:
        """Until no better choice is left in these groups; in which of them, or parts of them, one may be as good."""
        self.queue = [_Node(0.0, next(self.numbers), columns) for columns in groups]
        while self.queue and self.queue[0].bound < self.most:
            node = heappop(self.queue)
            for side in self._children(node):
                if side.bound <= self.most and self._some_left(side.allowed):
                    heappush(self.queue, _Node(side.bound, next(self.numbers), side.allowed))
        self.known.cuts = set(self.cuts)
        return [node.allowed for node in [*self.ended, *self.queue] if node.bound <= self.most]

    def _children(self, node: _Node) -> Sequence[_Side]:
        """Return what has to be looked at below; nothing if the node is done with."""
        allowed, bound, dull = node.allowed, node.bound, 0
        while True:
            self._in_time(bound)
            taken, proof = self.relaxed.solve(allowed, self.known.left())
            enough = max(1.0, LITTLE * (self.most - bound))
            dull = dull + 1 if proof.bound - bound < enough else 0
            bound = max(bound, ceil(proof.bound))
            if taken is not None:
                self._point(taken)
                self._forget()
            allowed = self._within_reach(allowed, proof)
            if bound > self.most or not self._some_left(allowed):
                return ()
            if bound == self.most:
                self.ended.append(_Node(bound, next(self.numbers), allowed))
                return ()
            if np.count_nonzero(allowed) == len(self.variables):
                self._end_single(allowed)
                return ()
            if taken is None:
                return [_Side(bound, side) for side in self._split(allowed)]
            found = self._violated(taken, not node.number) - set(self.cuts) if dull <= PATIENCE else set()
            if not found:
                self._meet_whole(taken)
                if not node.number and bound < self.most:
                    self._wander()
                if bound < self.most:
                    return self._branches(taken, allowed, bound)
                return [_Side(bound, self._within_reach(allowed, proof))]
            self._cut(found)

    def _violated(self, taken: F64, root: bool) -> set[Cluster]:
        shares = [(place, share) for place, share in enumerate(taken.tolist()) if share > TAKEN]
        if len(shares) == len(self.variables):
            sets = {self.columns[place][0]: [self.columns[place][1]] for place, _ in shares}
            _, left = placed(sets)
            position = {v: i for i, v in enumerate(self.variables)}
            return {Cluster(tuple(position[v] for v in group)) for group in violated_clusters(sets, left)}
        places = [place for place, _ in shares]
        support = Support(self.owner[places], self.parents[places], np.array([share for _, share in shares]))
        return violated(support) or (most_violated(support, self.known.left()) if root else set())

    def _cut(self, found: Collection[Cluster]) -> None:
        rows = []
        for cluster in sorted(found):
            within = np.zeros(len(self.variables), np.bool_)
            within[list(cluster.members)] = True
            few = np.flatnonzero(within[self.owner] & (self.parents[:, within].sum(axis=1) < cluster.level))
            rows.append(Row(few, np.broadcast_to(1.0, len(few)), float(cluster.level)))
        self.relaxed.add(rows)
        self.cuts += sorted(found)
        self.unpriced = np.append(self.unpriced, np.zeros(len(found), np.int64))

    def _forget(self) -> None:
        """Cuts that have long been without a price; where one is violated again it is sought again, as others are."""
        others = len(self.relaxed.rows) - len(self.cuts)
        self.unpriced = np.where(self.relaxed.unpriced[others:], self.unpriced + 1, 0)
        old = self.unpriced > AGE
        if np.count_nonzero(old) > FORGOTTEN * len(old):
            self.relaxed.drop(np.concatenate([np.zeros(others, np.bool_), old]))
            self.cuts = [cut for cut, is_old in zip(self.cuts, old.tolist(), strict=True) if not is_old]
            self.unpriced = self.unpriced[~old]

    def _end_single(self, allowed: Bits) -> None:
        """Close a node that has one column left for each variable, without solving its relaxation."""
        chosen = dict(self.columns[place] for place in np.flatnonzero(allowed).tolist())
        if placed({v: [parents] for v, parents in chosen.items()})[1]:
            return
        self._meet(chosen)
        if self._sum(chosen) == self.most:
            self.ended.append(_Node(self.most, next(self.numbers), allowed))

    def _meet_whole(self, taken: F64) -> None:
        """If a choice is what the relaxation takes."""
        places = np.flatnonzero(taken > TAKEN)
        chosen = dict(self.columns[place] for place in places.tolist())
        if len(places) == len(chosen) and not placed({v: [parents] for v, parents in chosen.items()})[1]:
            self._meet(chosen)

    def _meet(self, chosen: dict[int, Mask]) -> None:
        self.known.meet(chosen)
        self.most = self._sum(self.known.chosen)

    def _point(self, taken: F64) -> None:
        """Tries orders near the one that the relaxation points to."""
        if self.known.settled:
            return
        costs = dict[int, dict[Mask, Cost]]()
        for (v, parents), cost, share in zip(self.columns, self.costs.tolist(), taken.tolist(), strict=True):
            costs.setdefault(v, {})[parents] = round(cost * (1 - share) * FINELY)
        order = Orders(costs, 0).cheapest_first()
        if order is not None:
            self._meet(self.stirring.best(order, STIRRED))

    def _wander(self) -> None:
        """Tries orders from anywhere."""
        for _ in range(0 if self.known.settled else WALKS):
            if not self.known.is_late() and (chosen := self.stirring.restart(STIRRED_FIRST * len(self.variables))):
                self._meet(chosen)

    def _branches(self, taken: F64, allowed: Bits, bound: float) -> Sequence[_Side]:
        """With one variable as a parent of another and without: of the likeliest the two that raise the bound most.

        Only one of them, if the other holds no choice as good as the known one.
        """
        arcs = np.zeros((len(self.variables),) * 2)
        np.add.at(arcs, self.owner, self.parents * taken[:, None])
        undecided = np.minimum(arcs, 1 - arcs)
        best: Sequence[_Side] = [_Side(bound, side) for side in self._split(allowed)]
        highest = 0.0
        for at in np.argsort(-undecided, axis=None, kind="stable")[:TRIED]:
            if undecided.flat[at] <= TAKEN:
                break
            sides = [self._tried(side, bound) for side in self._sides(*divmod(int(at), len(arcs)), allowed)]
            left = [side for side in sides if side.bound <= self.most]
            if len(left) < 2:
                return left
            rise = float(np.prod([min(max(side.bound - bound, 1.0), self.most - bound) for side in sides]))
            if rise > highest:
                highest, best = rise, sides
        return best

    def _sides(self, child: int, parent: int, allowed: Bits) -> tuple[Bits, Bits]:
        is_child, has = self.owner == child, self.parents[:, parent]
        back = (self.owner == parent) & self.parents[:, child]
        return allowed & ~(is_child & ~has) & ~back, allowed & ~(is_child & has)

    def _tried(self, allowed: Bits, bound: float) -> _Side:
        """A side with a bound of its own, more than `most` if it holds no choice as good as the known one."""
        if not self._some_left(allowed):
            return _Side(self.most + 1.0, allowed)
        self._in_time(bound)
        proof = self.relaxed.improve_bound(allowed, TRIED_STEPS)
        allowed = self._within_reach(allowed, proof)
        return _Side(max(bound, ceil(proof.bound)) if self._some_left(allowed) else self.most + 1.0, allowed)

    def _within_reach(self, allowed: Bits, proof: Proof) -> Bits:
        """The columns that may be in a choice as good as the known one."""
        return allowed & (np.ceil(proof.bound + proof.dearer) <= self.most)

    def _split(self, allowed: Bits) -> tuple[Bits, Bits]:
        """With one column and without: of a variable that has several, as one has."""
        several = allowed & (np.bincount(self.owner[allowed])[self.owner] > 1)
        first = np.arange(len(allowed)) == several.argmax()
        return allowed & (first | (self.owner != self.owner[several.argmax()])), allowed & ~first

    def _some_left(self, allowed: Bits) -> bool:
        return len(np.unique(self.owner[allowed])) == len(self.variables)

    def _sum(self, chosen: dict[int, Mask]) -> int:
        return sum(self.value(v, parents) for v, parents in chosen.items())

    def _in_time(self, bound: float) -> None:
        if self.known.is_late():
            raise TimeLimitReached(int(min([self.most, bound, *(node.bound for node in self.queue)])))
