"""Candidate worlds on members that are listed, by cells, and the shares of members that they leave.

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
from calibrant.solvers.replayscm.hidden.members import MAX_LISTED_MEMBERS, list_members
from calibrant.solvers.replayscm.noise.posterior import Posterior

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
