"""Candidate worlds on members that are listed: cells, greedy episodes, the clairvoyant minimum, the optimal tree.

Noise-free. Two members are in one cell if every candidate shows them alike: no sequence of candidates tells them apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import prod

from calibrant.dsl.replayscm.episode import clean_rows
from calibrant.dsl.replayscm.extensions.extension import MechanismClass
from calibrant.dsl.replayscm.extensions.reference import Mechanisms
from calibrant.solvers.outcome import Budget, BudgetSpent
from calibrant.solvers.replayscm.experiments.shares import best_by_share
from calibrant.solvers.replayscm.hidden.members import MAX_LISTED_MEMBERS, list_members
from calibrant.solvers.replayscm.noise.posterior import Posterior
from calibrant.solvers.sat import Cnf, CoreGuided

# subsets of 40 cells do not fit memory, but few are reachable: at most 60,000 are visited
MAX_TREE_CELLS = 40
MAX_TREE_STATES = 60_000

Cells = frozenset[int]


@dataclass(frozen=True)
class ListedCandidates:
    """Members by cells, and what each candidate shows of each cell.

    members: in the order in which they are listed; cell_of: [members] cell of each
    weights: [cells] prior weight; outcomes: [candidates][cells] numbers that are equal iff readings are
    """

    members: Sequence[Mechanisms]
    cell_of: Sequence[int]
    weights: Sequence[Fraction]
    outcomes: Sequence[Sequence[int]]

    @property
    def num_cells(self) -> int:
        return len(self.weights)

    @cached_property
    def every_cell(self) -> Cells:
        return frozenset(range(self.num_cells))

    def cell_sizes(self) -> list[int]:
        """Return how many members each cell has."""
        sizes = [0] * self.num_cells
        for cell in self.cell_of:
            sizes[cell] += 1
        return sizes

    def share(self, cells: Cells, candidate: int) -> Fraction:
        """Return the expected share of these cells' weight that a candidate leaves."""
        parts = self.parts(cells, candidate).values()
        whole = self._weight(cells)
        return sum((self._weight(part) ** 2 for part in parts), start=Fraction(0)) / whole**2

    def parts(self, cells: Cells, candidate: int) -> dict[int, Cells]:
        """Return the cells by what a candidate shows."""
        grouped: dict[int, set[int]] = {}
        for cell in cells:
            grouped.setdefault(self.outcomes[candidate][cell], set()).add(cell)
        return {outcome: frozenset(part) for outcome, part in grouped.items()}

    def greedy_choice(self, cells: Cells) -> int | None:
        """Return the first candidate of least expected share; None if none splits the cells."""
        return best_by_share([self.share(cells, candidate) for candidate in range(len(self.outcomes))])

    def greedy_path(self, truth: int) -> list[int]:
        """Return the candidates that greedy takes until none splits, if the truth is in this cell."""
        cells, path = self.every_cell, list[int]()
        while (choice := self.greedy_choice(cells)) is not None:
            path.append(choice)
            cells = self.parts(cells, choice)[self.outcomes[choice][truth]]
        return path

    def greedy_mean(self) -> Fraction:
        """Return the mean number of worlds until one cell is left, over truths by weight, for the greedy tree."""
        return self._greedy_total(self.every_cell) / self._weight(self.every_cell)

    def _greedy_total(self, cells: Cells) -> Fraction:
        choice = self.greedy_choice(cells)
        if choice is None:
            return Fraction(0)
        rest = (self._greedy_total(part) for part in self.parts(cells, choice).values())
        return self._weight(cells) + sum(rest, start=Fraction(0))

    def optimal_mean(self) -> Fraction:
        """Return the least mean number of worlds until one cell is left, over all trees.

        `BudgetSpent` for more than MAX_TREE_CELLS cells or MAX_TREE_STATES sets of cells
        """
        if self.num_cells > MAX_TREE_CELLS:
            raise BudgetSpent(f"{self.num_cells} cells; trees are optimal up to {MAX_TREE_CELLS}")
        budget = Budget(MAX_TREE_STATES)
        try:
            total = self._optimal_total(self.every_cell, {}, budget)
        except BudgetSpent:
            raise BudgetSpent(f"more than {MAX_TREE_STATES:,} sets of cells") from None
        return total / self._weight(self.every_cell)

    def _optimal_total(self, cells: Cells, memo: dict[Cells, Fraction], budget: Budget) -> Fraction:
        if len(cells) < 2:
            return Fraction(0)
        if cells not in memo:
            budget.spend(1)
            # many of up to 1,161 candidates split alike: one of each partition is enough
            splits = {frozenset(self.parts(cells, c).values()) for c in range(len(self.outcomes))}
            totals = [
                sum((self._optimal_total(part, memo, budget) for part in sorted(split, key=min)), start=Fraction(0))
                for split in sorted(splits, key=lambda split: sorted(map(sorted, split)))
                if len(split) > 1
            ]
            # a world at this node is paid by every truth below it, by weight
            memo[cells] = self._weight(cells) + min(totals)
        return memo[cells]

    def clairvoyant(self, truth: int) -> list[int]:
        """Return fewest candidates that leave the truth's cell alone: a minimum hitting set over the other cells."""
        # equal sets are one clause: many cells are refuted by the same candidates
        hitting = {
            frozenset(c for c, outcome in enumerate(self.outcomes) if outcome[cell] != outcome[truth])
            for cell in self.every_cell
            if cell != truth
        }
        return minimum_hitting_set(sorted(map(sorted, hitting)), len(self.outcomes))

    def _weight(self, cells: Cells) -> Fraction:
        return sum((self.weights[cell] for cell in cells), start=Fraction(0))


def list_candidates(
    posterior: Posterior,
    worlds: Sequence[tuple[Mapping[str, int], Sequence[int]]],
    limit: int = MAX_LISTED_MEMBERS,
) -> ListedCandidates:
    """Return the members and what candidate worlds show of them; `BudgetSpent` for more than `limit` members.

    worlds: constants and contexts of each candidate
    """
    scm_class = posterior.scm_class
    members = list_members(posterior, limit)
    readings = [tuple(clean_rows(scm_class, member, do, contexts) for do, contexts in worlds) for member in members]
    # members that all candidates show alike are one cell: no policy separates them
    cells: dict[tuple[tuple[str, ...], ...], int] = {}
    cell_of = [cells.setdefault(behaviour, len(cells)) for behaviour in readings]
    weights = [Fraction(0)] * len(cells)
    for member, cell in zip(members, cell_of, strict=True):
        weights[cell] += member_weight(scm_class, member)
    outcomes = []
    for place in range(len(worlds)):
        numbers: dict[tuple[str, ...], int] = {}
        outcomes.append([numbers.setdefault(behaviour[place], len(numbers)) for behaviour in cells])
    return ListedCandidates(members, cell_of, weights, outcomes)


def member_weight(scm_class: MechanismClass, mechanisms: Mechanisms) -> Fraction:
    """Return the prior weight of an SCM of the class."""
    weights = (scm_class.mechanism_weight(v, len(f.parents)) for v, f in mechanisms.items())
    return prod(weights, start=Fraction(1))


def minimum_hitting_set(sets: Sequence[Sequence[int]], num_elements: int) -> list[int]:
    """Return fewest elements that meet every set, by RC2; `ValueError` if a set is empty."""
    if not all(sets):
        raise ValueError("an empty set cannot be hit")
    if not sets:
        return []
    cnf = Cnf()
    literals = [cnf.variable(f"x{i}") for i in range(num_elements)]
    solver = CoreGuided(cnf, Budget())
    try:
        for literal in literals:
            solver.prefer(-literal, 1)
        for elements in sets:
            solver.add([literals[element] for element in elements])
        model = solver.cheapest_model()
    finally:
        solver.close()
    assert model is not None
    return [element for element, literal in enumerate(literals) if literal in model]
