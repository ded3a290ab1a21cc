"""Acyclic assignment of least total cost by an integer program with cluster cuts, through HiGHS (extra `large`).

Lexicographic optimisation, one branch and cut (solvers.acyclic.integer_program.tree) for each criterion: size, then
mentions, then the smallest parent set of each variable in turn (the tie rule of solvers.acyclic.least). Each search
passes on only the columns and groups of columns that can still be in an optimum, and a row that fixes its sum. Ranges
of sizes beyond MAX_SUM are refused: HiGHS computes in floating point.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from calibrant.solvers.acyclic.integer_program.relaxation import Bits, Column, Incumbent, LimitReached, Limits, Value
from calibrant.solvers.acyclic.integer_program.tree import Tree
from calibrant.solvers.acyclic.least import (
    Cost,
    Mask,
    Part,
    cost_by_size,
    find_good_choice,
    split_into_parts,
    total_size,
)
from calibrant.solvers.acyclic.maxsat import CRITERIA
from calibrant.solvers.highs import require_highs
from calibrant.solvers.outcome import Undecided

MAX_SUM = 10**8  # sum over the variables of (largest size - least size)


def least_by_program(
    part: Part,
    limits: Limits | None = None,
    listen: Callable[[Incumbent, int], None] | None = None,
    start: Mapping[int, Mask] | None = None,
) -> dict[int, Mask] | None:
    """Return the parents within the part of every variable; None if every assignment has a cycle.

    `Undecided` with a bound and the incumbent if a limit was reached, `MissingExtraError` without HiGHS.

    limits: checked between relaxations, which spend its steps; None means no limit
    listen: called as they improve with the incumbent and a lower bound of the total size beyond each variable's least
    start: acyclic assignment; the members of each set within the part contain an admissible set. None to search one
    """
    require_highs()
    if start is None:
        heuristic = find_good_choice(
            {v: {parents: parent_set.cost for parents, parent_set in sets.items()} for v, sets in part.items()}, 0
        )
        if heuristic is None:
            return None
        start = heuristic[1]
    start = {v: min((s.cost, p) for p, s in sets.items() if not p & ~start[v])[1] for v, sets in part.items()}
    spans = (max(candidates.values()).cost - min(candidates.values()).cost for candidates in part.values())
    if sum(map(total_size, spans)) > MAX_SUM:
        lower_bound = sum(min(candidates.values()).cost for candidates in part.values())
        reached = f"sizes differ by more than {MAX_SUM:,} in all: too much for floating point"
        raise Undecided(lower_bound, reached, start)
    incumbent = Incumbent(part, start, limits or Limits())
    if listen is not None:
        incumbent.listen = partial(listen, incumbent)
    return _Search(incumbent).solve()


class _Search:
    """Lexicographic search over the criteria.

    columns: columns that may still be in an optimum
    groups: each has, per column, whether it is allowed; every assignment that may be optimal lies within one group
    """

    def __init__(self, incumbent: Incumbent) -> None:
        self.incumbent = incumbent
        self.part = incumbent.part
        self.variables = incumbent.variables
        self.columns: list[Column] = [(v, parents) for v in self.variables for parents in self.part[v]]
        self.groups: list[Bits] = [np.ones(len(self.columns), np.bool_)]

    def solve(self) -> dict[int, Mask]:
        """Return the least choice: criteria are fixed one after the other, then the parents of each variable.

        Raise `Undecided` with the proven lower bound if a limit is reached.
        """
        sums = [0, 0]
        for index, criterion in enumerate(CRITERIA):
            try:
                sums[index] = self._fix_criterion(lambda v, parents, by=criterion: by(self.part[v][parents].cost))  # type: ignore[misc]
            except LimitReached as limit:
                sums[index] = limit.at_least
                raise Undecided(_cost(sums), None, self.incumbent.chosen) from None
            # fewer columns remain, so fewer cycles are possible and the part may split into smaller ones
            if index == 0 and (split_choice := self._solve_split(sums)) is not None:
                return split_choice
        for v in self.variables:
            ranked = sorted((self.part[v][parents].mask, parents) for u, parents in self.columns if u == v)
            ranks = {parents: rank for rank, (_, parents) in enumerate(ranked)}
            try:
                self._fix_criterion(lambda u, parents, v=v, ranks=ranks: ranks[parents] if u == v else 0)  # type: ignore[misc]
            except LimitReached:
                raise Undecided(_cost(sums), None, self.incumbent.chosen) from None
        return self.incumbent.chosen

    def _solve_split(self, sums: Sequence[int]) -> dict[int, Mask] | None:
        """Solve part by part if the remaining columns split into smaller parts; None if they do not.

        Valid for all criteria: reduction compares costs, then masks, and parts share no cycle.
        """
        sets = {v: [self.part[v][parents] for u, parents in self.columns if u == v] for v in self.variables}
        smaller_parts = split_into_parts(sets)
        if smaller_parts is None or (len(smaller_parts) == 1 and _num_sets(smaller_parts[0]) == _num_sets(self.part)):
            return None
        chosen = dict(self.incumbent.chosen)
        for part in smaller_parts:
            try:
                assignment = least_by_program(part, self.incumbent.limits, self._listen_to_ties, self._full_sets())
            except Undecided:
                raise Undecided(_cost(sums), None, self.incumbent.chosen) from None
            assert assignment is not None
            chosen |= {v: self._within(part[v][mask].mask) for v, mask in assignment.items()}
        return chosen

    def _listen_to_ties(self, incumbent: Incumbent, at_least: int) -> None:
        """Report progress of a search among ties; the bound of the whole is final."""
        assert self.incumbent.minimum is not None
        self.incumbent.listen(self.incumbent.minimum)

    def _full_sets(self) -> dict[int, Mask]:
        return {v: self.part[v][parents].mask for v, parents in self.incumbent.chosen.items()}

    def _within(self, mask: Mask) -> Mask:
        return mask & sum(1 << v for v in self.variables)

    def _fix_criterion(self, value: Value) -> int:
        """Minimise the sum of `value` and return the minimum; keep only groups and columns that may reach it."""
        cheapest = {v: min(value(u, parents) for u, parents in self.columns if u == v) for v in self.variables}
        base = sum(cheapest.values())

        def excess(v: int, parents: Mask) -> int:
            return value(v, parents) - cheapest[v]

        # the incumbent attains every variable's minimum: a bound of 0 without any linear program
        if sum(excess(v, parents) for v, parents in self.incumbent.chosen.items()) == 0:
            cheapest_columns = np.array([excess(v, parents) == 0 for v, parents in self.columns])
            groups = [columns & cheapest_columns for columns in self.groups]
            total = base
        else:
            tree = Tree(self.incumbent, self.columns, excess)
            try:
                groups = tree.grow(self.groups)
            except LimitReached as limit:
                raise LimitReached(base + limit.at_least) from None
            total = base + tree.upper_bound
            self.incumbent.settled.append((excess, tree.upper_bound))
        if self.incumbent.minimum is None:
            self.incumbent.minimum = total - base
        needed = np.logical_or.reduce(groups)
        self.columns = [column for column, is_needed in zip(self.columns, needed, strict=True) if is_needed]
        positions = {v: position for position, v in enumerate(self.variables)}
        owner = np.array([positions[v] for v, _ in self.columns])
        self.groups = [columns[needed] for columns in groups if len(set(owner[columns[needed]])) == len(self.variables)]
        return total


def _num_sets(part: Part) -> int:
    return sum(map(len, part.values()))


def _cost(sums: Sequence[int]) -> Cost:
    size, mentions = sums
    return cost_by_size(size, 0) + mentions
