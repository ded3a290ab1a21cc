"""The acyclic choice of least total cost by weighted MaxSAT, with cuts added where a model has a cycle.

A variable's cost is told by a ladder of literals "more than so much", whose negations are the soft clauses; so a core
names variables that cannot all be as cheap as they would like, and not the many sets that they could take. Acyclicity
is not encoded: of a model in which every set of some cluster of variables has a parent in the cluster, the cut says
that one variable of the cluster takes a set without (the cluster constraints of T. Jaakkola, D. Sontag, A. Globerson
and M. Meila, Learning Bayesian network structure using LP relaxations, 2010).

Sizes first, then mentions among the choices of least size, then variable by variable the smallest parent set that
still leads to such a choice: the tie rule of solvers.acyclic.least_cost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import pairwise
from typing import NamedTuple

from calibrant.solvers.acyclic.components import components
from calibrant.solvers.acyclic.least_cost import Cost, Mask, by_size, total_mentions, total_size
from calibrant.solvers.acyclic.reduction import Part
from calibrant.solvers.budget import Budget, BudgetSpent, Undecided
from calibrant.solvers.sat.cnf import Cnf, Literal
from calibrant.solvers.sat.core_guided import CoreGuided

CRITERIA: Sequence[Callable[[Cost], int]] = (total_size, total_mentions)  # the first decides, then the second


def least_by_maxsat(part: Part, budget: Budget, *, states: int = 1) -> dict[int, Mask] | None:
    """The parents within the part of every variable; None if every choice has a cycle; `Undecided` with a bound.

    states: of the budget, what a conflict counts as
    """
    encoding = _Encoding(part)
    with closing(CoreGuided(encoding.cnf, budget, states=states)) as search:
        return _Search(part, encoding, search).least()


class _Step(NamedTuple):
    """`literal` holds if some variable's cost is beyond a step of its ladder; the step is that high."""

    literal: Literal
    height: int


class _Encoding:
    """taken: variable -> parents within the part -> literal; ladders: by criterion; bases: least sums of each"""

    def __init__(self, part: Part) -> None:
        self.cnf = Cnf()
        self.taken = {
            v: {parents: self.cnf.variable(f"{v} from {parents:#x}") for parents in sets} for v, sets in part.items()
        }
        for literals in self.taken.values():
            self.cnf.add(*literals.values())
        self.ladders: list[list[_Step]] = []
        self.bases: list[int] = []
        for number, criterion in enumerate(CRITERIA):
            values = {v: {parents: criterion(one.cost) for parents, one in sets.items()} for v, sets in part.items()}
            self.ladders.append([step for v in part for step in self._ladder(v, number, values[v])])
            self.bases.append(sum(min(costs.values()) for costs in values.values()))

    def _ladder(self, variable: int, number: int, values: Mapping[Mask, int]) -> Iterator[_Step]:
        below: Literal | None = None
        for low, high in pairwise(sorted(set(values.values()))):
            beyond = self.cnf.variable(f"{variable}, criterion {number}: more than {low}")
            for parents, value in values.items():
                if value == high:
                    self.cnf.add(-self.taken[variable][parents], beyond)
            if below is not None:
                self.cnf.add(-beyond, below)
            below = beyond
            yield _Step(beyond, high - low)


class _Search:
    def __init__(self, part: Part, encoding: _Encoding, search: CoreGuided) -> None:
        self.part = part
        self.encoding = encoding
        self.search = search

    def least(self) -> dict[int, Mask] | None:
        chosen: dict[int, Mask] | None = None
        sums = list(self.encoding.bases)
        for number, ladder in enumerate(self.encoding.ladders):
            before = self.search.at_least
            for literal, height in ladder:
                self.search.prefer(-literal, height)
            try:
                chosen = self._acyclic(self.search.least)
            except BudgetSpent:
                sums[number] += self.search.at_least - before
                raise Undecided(_cost(sums)) from None
            if chosen is None:
                return None
            sums[number] += self.search.at_least - before
            self.search.settle()
        try:
            return chosen and self._smallest(chosen)
        except BudgetSpent:
            raise Undecided(_cost(sums)) from None

    def _smallest(self, chosen: dict[int, Mask]) -> dict[int, Mask]:
        """Return the first by the tie rule of all assignments that the search still admits."""
        for v in sorted(self.part):
            sets, taken = self.part[v], self.encoding.taken[v]
            while True:
                others = [-taken[parents] for parents, one in sets.items() if one.mask >= sets[chosen[v]].mask]
                smaller = None
                if len(others) < len(taken):
                    smaller = self._acyclic(lambda others=others: self.search.model(others))  # type: ignore[misc]
                if smaller is None:
                    break
                chosen = smaller
            for parents, literal in taken.items():
                self.search.add([literal if parents == chosen[v] else -literal])
        return chosen

    def _acyclic(self, ask: Callable[[], set[Literal] | None]) -> dict[int, Mask] | None:
        """A choice from the first model without a cycle, after cuts for those that have one; None without a model."""
        while (model := ask()) is not None:
            taken = {
                v: sorted(
                    (parents for parents in sets if self.encoding.taken[v][parents] in model), key=sets.__getitem__
                )
                for v, sets in self.part.items()
            }
            chosen, left = placed(taken)
            if not left:
                return chosen
            for cluster in violated_clusters(taken, left):
                within = sum(1 << v for v in cluster)
                self.search.add(
                    [x for v in cluster for parents, x in self.encoding.taken[v].items() if not parents & within]
                )
        return None


def _cost(sums: Sequence[int]) -> Cost:
    size, mentions = sums
    return by_size(size, 0) + mentions


def placed(taken: Mapping[int, Sequence[Mask]]) -> tuple[dict[int, Mask], list[int]]:
    """Variables one after another, each with the first of its sets that is placed already; and those left over."""
    chosen: dict[int, Mask] = {}
    left = sum(1 << v for v in taken)
    waiting = list(taken)
    while True:
        ready = {
            v: parents for v in waiting if (parents := next((o for o in taken[v] if not o & left), None)) is not None
        }
        if not ready:
            return chosen, waiting
        chosen |= ready
        left &= ~sum(1 << v for v in ready)
        waiting = [v for v in waiting if v not in ready]


def violated_clusters(taken: Mapping[int, Sequence[Mask]], left: Sequence[int]) -> list[tuple[int, ...]]:
    """Groups of variables in which every set of each has a parent of the group.

    left: variables of which every set has a parent among them
    """
    arcs = [(u, v) for v in left for u in left if any(parents >> u & 1 for parents in taken[v])]
    least = components(arcs)
    groups: dict[int, list[int]] = {}
    for v in left:
        groups.setdefault(least[v], []).append(v)
    entered = {least[v] for u, v in arcs if least[u] != least[v]}
    found = {tuple(group) for first, group in groups.items() if first not in entered}
    first_sets = {v: taken[v][0] for v in left}
    for v in left:
        circle = _circle(first_sets, v)
        within = sum(1 << u for u in circle)
        if circle and all(parents & within for u in circle for parents in taken[u]):
            found.add(circle)
    return sorted(found)


def _circle(parents: Mapping[int, Mask], start: int) -> tuple[int, ...]:
    """The variables of a shortest cycle through one of them, ascending; empty if there is none."""
    child: dict[int, int | None] = {start: None}
    waiting = [start]
    for v in waiting:
        for u in parents:
            if parents[v] >> u & 1 and u == start:
                way = [v]
                while (below := child[way[-1]]) is not None:
                    way.append(below)
                return tuple(sorted(way))
            if parents[v] >> u & 1 and u not in child:
                child[u] = v
                waiting.append(u)
    return ()
