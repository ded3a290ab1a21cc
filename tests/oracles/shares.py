"""Expected shares of a world by listing its readings, and policies on listed candidates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from calibrant.dsl.replayscm.extensions.extension import NoiseKind, known_rate
from calibrant.solvers.acyclic.least import Mask
from calibrant.solvers.outcome import Budget, BudgetSpent
from calibrant.solvers.replayscm.experiments.candidates import Cells, ListedCandidates, num_free_cells
from calibrant.solvers.replayscm.noise.posterior import DECIDED, Posterior, free_bits, reading_probabilities
from calibrant.solvers.sat import Cnf, CoreGuided

# subsets of 40 cells do not fit memory, but few are reachable: at most 60,000 are visited
MAX_TREE_CELLS = 40
MAX_TREE_STATES = 60_000


def expected_share(posterior: Posterior, rows: Sequence[tuple[int, Mask]]) -> Fraction:
    """Return the expected share of the posterior that a world leaves; `BudgetSpent` for too many readings.

    rows: as `request_rows` gives them. `ValueError` for an independent unknown rate of each variable.
    """
    noise, cells = posterior.scm_class.noise, num_free_cells(posterior, rows)
    if noise.kind is NoiseKind.EACH:
        raise ValueError("shares need a rate that is common to all variables")
    if len(noise.grid) == 1:
        squares = sum((p * p for p in reading_probabilities(posterior, rows).values()), start=Fraction(0))
        # two readings under one law agree with probability e**2 + (1 - e)**2 a cell: what is left is due to members
        return squares / _collision(noise.grid[0][0]) ** cells
    # the posterior mean over the grid: each rate's share among the SCMs that are weighted as that rate has them
    share = Fraction(0)
    for (rate, _), weight in zip(noise.grid, posterior.noise_posterior, strict=True):
        if weight:
            single = replace(posterior, scm_class=replace(posterior.scm_class, noise=known_rate(rate)))
            share += weight * expected_share(single, rows)
    return share


def best_by_share(shares: Sequence[Fraction]) -> int | None:
    """Return the first candidate of least share; None if none is below 1."""
    best = min(range(len(shares)), key=shares.__getitem__, default=None)
    return None if best is None or shares[best] >= 1 else best


def _collision(rate: Fraction) -> Fraction:
    return rate**2 + (1 - rate) ** 2


@dataclass(frozen=True)
class CleanBehaviours:
    """Posterior of the noise-free rows of some contexts: rows as words -> probability, all of positive probability."""

    shares: Mapping[tuple[int, ...], Fraction]

    @property
    def top_share(self) -> Fraction:
        return max(self.shares.values())

    @property
    def is_decided(self) -> bool:
        return self.top_share >= DECIDED


def fixed_part(posterior: Posterior, word: int, clamped: Mask) -> int:
    """Return a row's word without its free cells."""
    return word & ~sum(free_bits(posterior, clamped))


def clean_behaviours(posterior: Posterior, worlds: Sequence[tuple[int, Mask]]) -> CleanBehaviours:
    """Return the posterior of noise-free rows; arguments and errors as for `reading_probabilities`."""
    return CleanBehaviours(reading_probabilities(posterior, worlds, is_clean=True))


class ListedPolicies(ListedCandidates):
    """Greedy episodes and the optimal tree on listed candidates."""

    def cell_sizes(self) -> list[int]:
        """Return how many members each cell has."""
        sizes = [0] * self.num_cells
        for cell in self.cell_of:
            sizes[cell] += 1
        return sizes

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
