"""The acyclic choice of least total cost by an integer program with cluster cuts, through HiGHS (extra `large`).

One binary variable for each parent set of each variable. Branch and cut: relaxations with the cuts that they violate
(solvers.acyclic.cutting), each begun from the basis of the one before; bounds that need not trust floating point
(solvers.acyclic.relaxation), by which columns are dropped that are in no choice as good as the best one known; choices
by a search over orders that begins where the relaxation points; branches on whether one variable is a parent of
another, the best bound first (the method of GOBNILP: M. Bartlett and J. Cussens, Integer linear programming for the
Bayesian network structure learning problem, 2017).

Sizes first, then mentions among the choices of least size, then variable by variable the smallest parent set: the tie
rule of solvers.acyclic.least_cost. What the search for the least size leaves open is all that is looked
at for ties. Sums beyond LARGEST_SUM are refused: HiGHS computes in floating point.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from heapq import heappop, heappush
from itertools import count
from math import ceil
from time import monotonic
from typing import NamedTuple, TypeAlias

import numpy as np

from solvers.acyclic.cutting import F64, Bits, Cluster, Support, most_violated, violated
from solvers.acyclic.least_cost import Cost, Mask, by_size, total_size
from solvers.acyclic.maxsat import CRITERIA, clusters, placed
from solvers.acyclic.order_search import Orders
from solvers.acyclic.reduction import Part, split
from solvers.acyclic.relaxation import Relaxation, Row
from solvers.budget import Undecided
from solvers.highs import require_highs

LARGEST_SUM = 10**8
TAKEN = 1e-6  # of a column, below which it counts as not taken
LITTLE = 0.02  # of the gap, by which a bound has to rise for more cuts to be sought below the root
PATIENCE = 3  # rounds that raise it by less
STIRRED = 20  # searches over orders once the root has no more cuts
FINELY = 1024  # units of a cost that is weighed by a share
TRIED = 8  # arcs to branch on
EACH_AT_ROOT, EACH_BELOW = 4, 32  # rounds between searches over orders

Column: TypeAlias = tuple[int, Mask]
"""A variable and its parents within the part."""

Value: TypeAlias = Callable[[int, Mask], int]
"""What a column costs, by one criterion."""


def least_by_program(part: Part, *, seconds: float | None = None) -> dict[int, Mask] | None:
    """The parents within the part of every variable; None if every choice has a cycle.

    `Undecided` with a bound and the best choice known if time ran out, `MissingExtraError` without HiGHS.

    seconds: of the clock, which is looked at between steps; None means no limit
    """
    require_highs()
    until = None if seconds is None else monotonic() + seconds
    orders = Orders({v: {own: one.cost for own, one in sets.items()} for v, sets in part.items()}, 0)
    first = orders.cheapest_first()
    if first is None:
        return None
    known = orders.improved(first)[1]
    spans = (max(own.values()).cost - min(own.values()).cost for own in part.values())
    if sum(map(total_size, spans)) > LARGEST_SUM:
        least = sum(min(own.values()).cost for own in part.values())
        reached = f"sizes differ by more than {LARGEST_SUM:,} in all: too much for floating point"
        raise Undecided(least, reached, known)
    return _Search(part, known, until).least()


class _LateError(Exception):
    def __init__(self, at_least: int) -> None:
        super().__init__()
        self.at_least = at_least


class _Search:
    """known: the best choice so far, by all criteria; until: a time of the clock

    cuts: clusters, as places among the variables; settled: of each sum that is known what the columns add to it, and
    what it comes to; columns: variable and parents, as far as they are needed
    groups: per column whether it is allowed; every choice that may be the least one is in one of them
    """

    def __init__(self, part: Part, known: dict[int, Mask], until: float | None) -> None:
        self.part = part
        self.variables = sorted(part)
        self.known = known
        self.until = until
        self.columns: list[Column] = [(v, own) for v in self.variables for own in part[v]]
        self.groups: list[Bits] = [np.ones(len(self.columns), np.bool_)]
        self.cuts: set[Cluster] = set()
        self.settled: list[tuple[Value, int]] = []

    def least(self) -> dict[int, Mask]:
        sums = [0, 0]
        for number, criterion in enumerate(CRITERIA):
            try:
                sums[number] = self._settle(lambda v, own, by=criterion: by(self.part[v][own].cost))  # type: ignore[misc]
            except _LateError as late:
                sums[number] = late.at_least
                raise Undecided(_cost(sums), None, self.known) from None
            if number == 0 and (chosen := self._apart(sums)) is not None:
                return chosen
        for v in self.variables:
            ranked = sorted((self.part[v][own].mask, own) for u, own in self.columns if u == v)
            ranks = {own: rank for rank, (_, own) in enumerate(ranked)}
            try:
                self._settle(lambda u, own, v=v, ranks=ranks: ranks[own] if u == v else 0)  # type: ignore[misc]
            except _LateError:
                raise Undecided(_cost(sums), None, self.known) from None
        return self.known

    def _apart(self, sums: Sequence[int]) -> dict[int, Mask] | None:
        """The choice, if the columns that are left fall into smaller parts; None if they do not."""
        left = {v: [self.part[v][own] for u, own in self.columns if u == v] for v in self.variables}
        found = split(left)
        if found is None or (len(found) == 1 and _number(found[0]) == _number(self.part)):
            return None
        chosen = dict(self.known)
        for part in found:
            try:
                own = least_by_program(part, seconds=None if self.until is None else self.until - monotonic())
            except Undecided:
                raise Undecided(_cost(sums), None, self.known) from None
            assert own is not None
            chosen |= {v: self._within(part[v][mask].mask) for v, mask in own.items()}
        return chosen

    def _within(self, mask: Mask) -> Mask:
        return mask & sum(1 << v for v in self.variables)

    def meet(self, chosen: dict[int, Mask]) -> None:
        """A choice becomes the known one if it is better."""
        if self._key(chosen) < self._key(self.known):
            self.known = chosen

    def _key(self, chosen: Mapping[int, Mask]) -> tuple[int, ...]:
        sums = (sum(by(self.part[v][own].cost) for v, own in chosen.items()) for by in CRITERIA)
        return (*sums, *(self.part[v][chosen[v]].mask for v in self.variables))

    def _settle(self, value: Value) -> int:
        """What the least choice comes to by a value; only groups and columns with such choices stay."""
        cheapest = {v: min(value(u, own) for u, own in self.columns if u == v) for v in self.variables}
        base = sum(cheapest.values())

        def above(v: int, own: Mask) -> int:
            return value(v, own) - cheapest[v]

        if sum(above(v, own) for v, own in self.known.items()) == 0:
            least = np.array([above(v, own) == 0 for v, own in self.columns])
            groups = [own & least for own in self.groups]
            total = base
        else:
            tree = _Tree(self, above)
            try:
                groups = tree.grow(self.groups)
            except _LateError as late:
                raise _LateError(base + late.at_least) from None
            total = base + tree.most
            self.settled.append((above, tree.most))
        needed = np.logical_or.reduce(groups)
        self.columns = [one for one, kept in zip(self.columns, needed, strict=True) if kept]
        places = {v: place for place, v in enumerate(self.variables)}
        owner = np.array([places[v] for v, _ in self.columns])
        self.groups = [own[needed] for own in groups if len(set(owner[own[needed]])) == len(self.variables)]
        return total


class _Node(NamedTuple):
    """bound: no choice among the columns that are allowed costs less; number: tells nodes of a bound apart"""

    bound: float
    number: int
    allowed: Bits


class _Tree:
    """Branch and cut for one value, of which every variable has a column that costs 0.

    most: what the known choice comes to; ended: nodes in which no choice is better, and some may be as good
    """

    def __init__(self, search: _Search, value: Value) -> None:
        self.search = search
        self.columns = search.columns
        self.value = value
        place = {v: i for i, v in enumerate(search.variables)}
        self.owner = np.array([place[v] for v, _ in self.columns])
        masks = np.array([own for _, own in self.columns], np.int64)
        self.parents: Bits = (masks[:, None] >> np.array(search.variables) & 1).astype(np.bool_)
        self.costs = np.array([value(v, own) for v, own in self.columns], np.float64)
        self.relaxed = Relaxation(self.owner.tolist(), self.costs)
        self.cuts = set[Cluster]()
        self.most = self._sum(search.known)
        self.ended: list[_Node] = []
        self.queue: list[_Node] = []
        self.numbers = count()
        self.rounds = 0
        self.orders = Orders({v: {own: one.cost for own, one in sets.items()} for v, sets in search.part.items()}, 0)
        for settled, total in search.settled:
            values = np.array([settled(v, own) for v, own in self.columns], np.float64)
            places = np.flatnonzero(values)
            self.relaxed.add([Row(places, -values[places], -float(total))])
        self._cut(search.cuts)

    def grow(self, groups: Sequence[Bits]) -> list[Bits]:
        """Until no better choice is left in these groups; in which of them, or parts of them, one may be as good."""
        self.queue = [_Node(0.0, next(self.numbers), own) for own in groups]
        while self.queue and self.queue[0].bound < self.most:
            node = heappop(self.queue)
            for child in self._children(node):
                heappush(self.queue, child)
        return [node.allowed for node in [*self.ended, *self.queue] if node.bound <= self.most]

    def _children(self, node: _Node) -> Sequence[_Node]:
        """What has to be looked at below; nothing if the node is done with."""
        allowed, bound, dull, root = node.allowed, node.bound, 0, not node.number
        while True:
            self._in_time(bound)
            taken, proof = self.relaxed.solve(allowed, self._left())
            enough = max(1.0, LITTLE * (self.most - bound))
            dull = dull + 1 if proof.bound - bound < enough else 0
            bound = max(bound, ceil(proof.bound))
            if taken is not None:
                self._point(taken, root)
            allowed = allowed & (np.ceil(proof.bound + proof.dearer) <= self.most)
            if bound > self.most or not self._some_left(allowed):
                return ()
            if bound == self.most:
                self.ended.append(_Node(bound, next(self.numbers), allowed))
                return ()
            if np.count_nonzero(allowed) == len(self.search.variables):
                self._end_single(allowed)
                return ()
            if taken is None:
                return self._grown_from(bound, self._split(allowed))
            if dull > PATIENCE and not root:
                break
            found = self._violated(taken, root) - self.cuts
            if not found:
                self._meet_whole(taken)
                if root and bound < self.most and not self.search.settled:
                    self._meet(self.orders.stirred(self.search.known, STIRRED, len(self.columns), self._is_late))
                break
            self._cut(found)
        return self._grown_from(bound, self._branches(taken, allowed, bound))

    def _grown_from(self, bound: float, sides: Sequence[Bits]) -> Sequence[_Node]:
        return [_Node(bound, next(self.numbers), side) for side in sides if self._some_left(side)]

    def _violated(self, taken: F64, root: bool) -> set[Cluster]:
        shares = [(place, share) for place, share in enumerate(taken.tolist()) if share > TAKEN]
        if len(shares) == len(self.search.variables):
            sets = {self.columns[place][0]: [self.columns[place][1]] for place, _ in shares}
            _, left = placed(sets)
            position = {v: i for i, v in enumerate(self.search.variables)}
            return {Cluster(tuple(position[v] for v in group)) for group in clusters(sets, left)}
        places = [place for place, _ in shares]
        support = Support(self.owner[places], self.parents[places], np.array([share for _, share in shares]))
        return violated(support) or (most_violated(support, self._left()) if root else set())

    def _end_single(self, allowed: Bits) -> None:
        """Of a node with one column for each variable, whatever its relaxation proves."""
        chosen = dict(self.columns[place] for place in np.flatnonzero(allowed).tolist())
        if placed({v: [own] for v, own in chosen.items()})[1]:
            return
        self._meet(chosen)
        if self._sum(chosen) == self.most:
            self.ended.append(_Node(self.most, next(self.numbers), allowed))

    def _meet_whole(self, taken: F64) -> None:
        """If a choice is what the relaxation takes."""
        places = np.flatnonzero(taken > TAKEN)
        chosen = dict(self.columns[place] for place in places.tolist())
        if len(places) == len(chosen) and not placed({v: [own] for v, own in chosen.items()})[1]:
            self._meet(chosen)

    def _meet(self, chosen: dict[int, Mask]) -> None:
        self.search.meet(chosen)
        self.most = self._sum(self.search.known)

    def _point(self, taken: F64, root: bool) -> None:
        """Tries the order that the relaxation points to, and orders near it now and then."""
        if self.search.settled:
            return
        self.rounds += 1
        costs = dict[int, dict[Mask, Cost]]()
        for (v, own), cost, share in zip(self.columns, self.costs.tolist(), taken.tolist(), strict=True):
            costs.setdefault(v, {})[own] = round(cost * (1 - share) * FINELY)
        order = Orders(costs, 0).cheapest_first()
        if order is None:
            return
        chosen = self.orders.choice(order)
        if self.rounds % (EACH_AT_ROOT if root else EACH_BELOW) == 0 or self._sum(chosen) < self.most:
            chosen = self.orders.improved(order)[1]
        self._meet(chosen)

    def _branches(self, taken: F64, allowed: Bits, bound: float) -> tuple[Bits, Bits]:
        """With one variable as a parent of another and without: of the likeliest the two that raise the bound most."""
        arcs = np.zeros((len(self.search.variables),) * 2)
        np.add.at(arcs, self.owner, self.parents * taken[:, None])
        undecided = np.minimum(arcs, 1 - arcs)
        likeliest = np.argsort(-undecided, axis=None, kind="stable")[:TRIED]
        candidates = [
            self._sides(*divmod(int(at), len(arcs)), allowed) for at in likeliest if undecided.flat[at] > TAKEN
        ]
        if not candidates:
            return self._split(allowed)
        return max(candidates, key=lambda sides: self._rise(sides[0], bound) * self._rise(sides[1], bound))

    def _sides(self, child: int, parent: int, allowed: Bits) -> tuple[Bits, Bits]:
        own, has = self.owner == child, self.parents[:, parent]
        back = (self.owner == parent) & self.parents[:, child]
        return allowed & ~(own & ~has) & ~back, allowed & ~(own & has)

    def _rise(self, allowed: Bits, bound: float) -> float:
        """By how much a branch raises the bound, as far as it matters."""
        if not self._some_left(allowed):
            return float(self.most - bound)
        self._in_time(bound)
        _, proof = self.relaxed.solve(allowed, self._left())
        return float(min(max(proof.bound - bound, 1.0), self.most - bound))

    def _split(self, allowed: Bits) -> tuple[Bits, Bits]:
        """With one column and without: of a variable that has several, as one has."""
        several = allowed & (np.bincount(self.owner[allowed])[self.owner] > 1)
        first = np.arange(len(allowed)) == several.argmax()
        return allowed & (first | (self.owner != self.owner[several.argmax()])), allowed & ~first

    def _some_left(self, allowed: Bits) -> bool:
        return len(np.unique(self.owner[allowed])) == len(self.search.variables)

    def _sum(self, chosen: dict[int, Mask]) -> int:
        return sum(self.value(v, own) for v, own in chosen.items())

    def _cut(self, found: Collection[Cluster]) -> None:
        rows = []
        for cluster in sorted(found):
            within = np.zeros(len(self.search.variables), np.bool_)
            within[list(cluster.members)] = True
            few = np.flatnonzero(within[self.owner] & (self.parents[:, within].sum(axis=1) < cluster.level))
            rows.append(Row(few, np.broadcast_to(1.0, len(few)), float(cluster.level)))
        self.relaxed.add(rows)
        self.cuts |= set(found)
        self.search.cuts |= set(found)

    def _left(self) -> float | None:
        return None if self.search.until is None else self.search.until - monotonic()

    def _is_late(self) -> bool:
        left = self._left()
        return left is not None and left <= 0

    def _in_time(self, bound: float) -> None:
        if self._is_late():
            raise _LateError(int(min([self.most, bound, *(node.bound for node in self.queue)])))


def _number(part: Part) -> int:
    return sum(map(len, part.values()))


def _cost(sums: Sequence[int]) -> Cost:
    size, mentions = sums
    return by_size(size, 0) + mentions
