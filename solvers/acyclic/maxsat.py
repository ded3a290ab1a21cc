"""Acyclic assignment of least total cost by weighted MaxSAT with lazily added acyclicity cuts.

Order encoding of costs: a ladder of literals "costs more than c" for each variable, whose negations are the soft
clauses. So an unsatisfiable core names variables that cannot all be that cheap, not the many sets that they could take.
Acyclicity is not encoded: if in a model every set of a cluster of variables has a parent in the cluster, a cut demands
that one variable of the cluster takes a set without such a parent (cluster constraints: T. Jaakkola, D. Sontag, A.
Globerson and M. Meila, Learning Bayesian network structure using LP relaxations, 2010).

Costs compare by formula size, then by mentions (occurrences of variables in the formulas). Ties are broken variable by
variable in favour of the smallest parent set, as in solvers.acyclic.least.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from calibrant.solvers.acyclic.least import (
    Cost,
    Mask,
    Part,
    components,
    cost_by_size,
    members_of,
    total_mentions,
    total_size,
)
from calibrant.solvers.outcome import Budget, BudgetSpent, Undecided
from calibrant.solvers.sat import Cnf, CoreGuided, Literal

CRITERIA: Sequence[Callable[[Cost], int]] = (total_size, total_mentions)  # the first decides, then the second


def least_by_maxsat(part: Part, budget: Budget, *, states: int = 1) -> dict[int, Mask] | None:
    """Return the parents of every variable in its part (strongly connected component); None if all have a cycle.

    states: units of the budget that one conflict costs

    Raises `Undecided` with a lower bound if the budget ran out.
    """
    encoding = _Encoding(part)
    with closing(CoreGuided(encoding.cnf, budget, states=states)) as search:
        return _Search(part, encoding, search).solve()


class _Step(NamedTuple):
    """Step of a ladder: `literal` holds if a variable's cost is beyond it, which adds `height`."""

    literal: Literal
    height: int


class _Encoding:
    """Clauses and literals.

    literal_of: variable -> parents in the part -> literal "the variable has this set"
    ladders: by criterion, the steps of all variables; bases: by criterion, the sum of the variables' minima
    """

    def __init__(self, part: Part) -> None:
        self.cnf = Cnf()
        self.literal_of = {
            v: {parents: self.cnf.variable(f"{v} from {parents:#x}") for parents in sets} for v, sets in part.items()
        }
        for literals in self.literal_of.values():
            self.cnf.add(*literals.values())
        self.ladders: list[list[_Step]] = []
        self.bases: list[int] = []
        for index, criterion in enumerate(CRITERIA):
            values = {
                v: {parents: criterion(parent_set.cost) for parents, parent_set in sets.items()}
                for v, sets in part.items()
            }
            self.ladders.append([step for v in part for step in self._ladder(v, index, values[v])])
            self.bases.append(sum(min(costs.values()) for costs in values.values()))

    def _ladder(self, variable: int, criterion_index: int, values: Mapping[Mask, int]) -> Iterator[_Step]:
        below: Literal | None = None
        for low, high in pairwise(sorted(set(values.values()))):
            beyond = self.cnf.variable(f"{variable}, criterion {criterion_index}: more than {low}")
            for parents, value in values.items():
                if value == high:
                    self.cnf.add(-self.literal_of[variable][parents], beyond)
            if below is not None:
                self.cnf.add(-beyond, below)
            below = beyond
            yield _Step(beyond, high - low)


class _Search:
    def __init__(self, part: Part, encoding: _Encoding, search: CoreGuided) -> None:
        self.part = part
        self.encoding = encoding
        self.search = search

    def solve(self) -> dict[int, Mask] | None:
        """Return the least acyclic choice, criterion by criterion, ties broken; None if there is none.

        Raise `Undecided` with the proven lower bound if the budget ends.
        """
        chosen: dict[int, Mask] | None = None
        sums = list(self.encoding.bases)
        for index, ladder in enumerate(self.encoding.ladders):
            before = self.search.at_least
            for literal, height in ladder:
                self.search.prefer(-literal, height)
            try:
                chosen = self._first_acyclic(self.search.cheapest_model)
            except BudgetSpent:
                sums[index] += self.search.at_least - before
                raise Undecided(_cost(sums)) from None
            if chosen is None:
                return None
            sums[index] += self.search.at_least - before
            self.search.settle()  # fixes the optimum of this criterion before the next one
        try:
            return chosen and self._break_ties(chosen)
        except BudgetSpent:
            raise Undecided(_cost(sums)) from None

    def _break_ties(self, chosen: dict[int, Mask]) -> dict[int, Mask]:
        """Return the assignment that the tie rule puts first, of all that the search still admits.

        Variable by variable: ask for a smaller set than the last model's until there is none, then fix it.
        """
        for v in sorted(self.part):
            sets, literals = self.part[v], self.encoding.literal_of[v]
            while True:
                excluded = [
                    -literals[parents]
                    for parents, parent_set in sets.items()
                    if parent_set.mask >= sets[chosen[v]].mask
                ]
                smaller = None
                if len(excluded) < len(literals):
                    smaller = self._first_acyclic(lambda excluded=excluded: self.search.model(excluded))  # type: ignore[misc]
                if smaller is None:
                    break
                chosen = smaller
            for parents, literal in literals.items():
                self.search.add([literal if parents == chosen[v] else -literal])
        return chosen

    def _first_acyclic(self, next_model: Callable[[], set[Literal] | None]) -> dict[int, Mask] | None:
        """Ask for models and cut off their cycles until one holds an acyclic assignment; None without a model."""
        while (model := next_model()) is not None:
            # only "at least one set" is encoded, so a model may offer several sets of a variable: more can be placed
            sets_of_model = {
                v: sorted(
                    (parents for parents in sets if self.encoding.literal_of[v][parents] in model), key=sets.__getitem__
                )
                for v, sets in self.part.items()
            }
            chosen, unplaced = place_greedily(sets_of_model)
            if not unplaced:
                return chosen
            for cluster in find_violated_clusters(sets_of_model, unplaced):
                cluster_mask = sum(1 << v for v in cluster)
                literals_of = {v: self.encoding.literal_of[v].items() for v in cluster}
                self.search.add([x for v in cluster for parents, x in literals_of[v] if not parents & cluster_mask])
        return None


def _cost(sums: Sequence[int]) -> Cost:
    """Pack the sums of the criteria into one cost, which orders as the pair (size, mentions)."""
    size, mentions = sums
    return cost_by_size(size, 0) + mentions


def place_greedily(sets: Mapping[int, Sequence[Mask]]) -> tuple[dict[int, Mask], list[int]]:
    """Place variables greedily, each with its first set whose members are placed; return them and the unplaced rest."""
    chosen: dict[int, Mask] = {}
    unplaced = sum(1 << v for v in sets)
    remaining = list(sets)
    while True:
        ready = {
            v: parents
            for v in remaining
            if (parents := next((o for o in sets[v] if not o & unplaced), None)) is not None
        }
        if not ready:
            return chosen, remaining
        chosen |= ready
        unplaced &= ~sum(1 << v for v in ready)
        remaining = [v for v in remaining if v not in ready]


def find_violated_clusters(sets: Mapping[int, Sequence[Mask]], unplaced: Sequence[int]) -> list[tuple[int, ...]]:
    """Return groups of variables in which every set of each has a parent of the group.

    unplaced: variables whose sets all have a parent among them
    """
    arcs = [(u, v) for v in unplaced for u in unplaced if any(parents >> u & 1 for parents in sets[v])]
    component_of = components(arcs)
    groups: dict[int, list[int]] = {}
    for v in unplaced:
        groups.setdefault(component_of[v], []).append(v)
    has_outside_parent = {component_of[v] for u, v in arcs if component_of[u] != component_of[v]}
    # source components of the unplaced variables, and shortest cycles, which give shorter clauses
    clusters = {tuple(group) for representative, group in groups.items() if representative not in has_outside_parent}
    first_sets = {v: sets[v][0] for v in unplaced}
    for v in unplaced:
        cycle = _shortest_cycle(first_sets, v)
        cycle_mask = sum(1 << u for u in cycle)
        if cycle and all(parents & cycle_mask for u in cycle for parents in sets[u]):
            clusters.add(cycle)
    return sorted(clusters)


def _shortest_cycle(parents: Mapping[int, Mask], start: int) -> tuple[int, ...]:
    """Return the variables of a shortest cycle through `start`, ascending, by breadth-first search; empty without."""
    child: dict[int, int | None] = {start: None}
    queue = [start]
    for v in queue:
        for u in parents:
            if parents[v] >> u & 1 and u == start:
                path = [v]
                while (below := child[path[-1]]) is not None:
                    path.append(below)
                return tuple(sorted(path))
            if parents[v] >> u & 1 and u not in child:
                child[u] = v
                queue.append(u)
    return ()


# --- Fewest roots: a smallest set behind which all other variables can be placed --------------------------------------


class FewestRoots(NamedTuple):
    """Roots of an acyclic assignment.

    at_least: proven lower bound of their number
    roots: a smallest set of them; None where the budget ended before
    """

    at_least: int
    roots: Mask | None


def fewest_roots(minimal: Mapping[int, npt.NDArray[np.int64]], budget: Budget) -> FewestRoots:
    """Search for a smallest set of roots that allows every other variable a parent set, without a cycle.

    Implicit hitting sets: if the closure of a root set is not everything, every solution has a root outside of it.

    minimal: by variable its minimal parent sets (inclusion), none if it must be a root
    budget: a conflict costs one unit
    """
    cnf = Cnf()
    literal_of = {v: cnf.variable(f"{v} is a root") for v in minimal}
    for v, sets in minimal.items():
        if not len(sets):
            cnf.add(literal_of[v])
    everything = sum(1 << v for v in minimal)
    with closing(CoreGuided(cnf, budget)) as search:
        for literal in literal_of.values():
            search.prefer(-literal, 1)
        try:
            while True:
                model = search.cheapest_model()
                assert model is not None  # all variables as roots
                roots = sum(1 << v for v, literal in literal_of.items() if literal in model)
                placed = _place_all(minimal, roots)
                if placed == everything:
                    return FewestRoots(search.at_least, roots)
                for v in members_of(everything & ~placed):  # a larger set gives a stronger clause
                    wider = _place_all(minimal, placed | 1 << v)
                    if wider != everything:
                        placed = wider
                search.add([literal_of[v] for v in members_of(everything & ~placed)])
        except BudgetSpent:
            return FewestRoots(search.at_least, None)


def _place_all(minimal: Mapping[int, npt.NDArray[np.int64]], placed: Mask) -> Mask:
    """Return the closure: `placed` and all variables that can be placed after them."""
    waiting, before = [v for v in minimal if not placed >> v & 1], -1
    while placed != before:
        before = placed
        for v in waiting:
            if ((minimal[v] & ~np.int64(placed)) == 0).any():
                placed |= 1 << v
        waiting = [v for v in waiting if not placed >> v & 1]
    return placed
