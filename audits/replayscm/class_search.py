"""Classes of members that behave alike in given rows, heaviest first.

Members with the same outcome in every row (and, where roots are hidden, the same root set) are one class. The members
with given outcomes in some of the rows are the version space of the evidence with those rows added, so a partial table
of outcomes has an exact weight, which bounds the weight of every class inside it. Whoever refines the heaviest part
first finds the classes in the order of their weight.

Parts of equal depth are disjoint, so at most 1 / s of them have a share of s or more: a heaviest class of share s is
proved within about (contexts / s) refinements, whatever the number of members.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from heapq import heappop, heappush
from itertools import count
from random import Random

import numpy as np
import numpy.typing as npt

from calibrant.audits.replayscm.behaviour import distinct_contexts
from calibrant.dsl.replayscm.scm import Scm
from calibrant.dsl.replayscm.world import Rows, World, pack_rows
from calibrant.solvers.budget import Budget, BudgetSpent
from calibrant.solvers.replayscm.conditioned_space import ConditionedSpace, Members, ParentSets, draw
from calibrant.solvers.replayscm.space import VersionSpace

U64 = npt.NDArray[np.uint64]

DRAWS = 12  # members that are drawn from a part to see where they differ


@dataclass(frozen=True, slots=True)
class BehaviourClass:
    """Members that do the same in every row.

    mass: their weight, of `ClassSearch.mass` in all
    members, place: one of them, as it was drawn with others
    """

    mass: int
    share: Fraction
    members: Members
    place: int

    @property
    def example(self) -> Scm:
        """One of them with formulas."""
        return self.members.scm(self.place)


@dataclass(slots=True)
class _Part:
    """Members with one root set and known outcomes in some rows.

    space: these members; root_space: all with the root set; rows: one of each context
    example: set once the part is a whole class
    row, outcomes: the row that is being split on, and guesses of outcomes there that were not yet split off
    """

    space: ConditionedSpace
    root_space: ConditionedSpace
    rows: Rows
    mass: int
    example: tuple[Members, int] | None = None
    row: int | None = None
    outcomes: Iterator[int] = field(default_factory=lambda: iter(()))


class ClassSearch:
    """Lazy, exact search for the heaviest classes.

    mass: the weight of all members; `ValueError` if there are none
    num_sets, num_rows: parent sets whose weights make a count, and rows in which classes differ
    known_best: the heaviest class that was weighed so far, found or not yet proved to be next
    """

    def __init__(
        self,
        space: VersionSpace,
        worlds: Sequence[World],
        rng: Random,
        *,
        size_penalty: int | None = None,
        budget: Budget | None = None,
    ) -> None:
        """Weights are those of `VersionSpace.sample`; a state of the budget is one exact count."""
        self.budget = budget or Budget()
        self._rng = rng
        self._order = count()
        self._heap: list[tuple[int, int, _Part]] = []
        self.mass = 0
        sets = ParentSets(space, size_penalty)
        rows = pack_rows(worlds, space.task.variables)
        self.num_sets, self.num_rows = len(sets.masks), len(rows.words)
        for roots in space.counts_by_roots:
            root_space = ConditionedSpace(sets, roots)
            contexts = distinct_contexts(rows, sum(1 << space.index[root] for root in roots), len(space.index))
            part = _Part(root_space, root_space, contexts, root_space.mass)
            self.mass += part.mass
            self._push(part)
        if not self.mass:
            raise ValueError("the version space is empty")
        self.known_best: BehaviourClass | None = None

    @property
    def bound(self) -> int:
        """No class that was not yet yielded weighs more; 0 when there is none."""
        return -self._heap[0][0] if self._heap else 0

    def heaviest_first(self) -> Iterator[BehaviourClass]:
        """Yield the classes by weight; after `BudgetSpent`, `bound` and `known_best` still hold."""
        while self._heap:
            _, _, part = self._heap[0]
            if part.example is not None:
                heappop(self._heap)
                yield self._class(part.mass, *part.example)
            elif part.row is None:
                self._open(part)
            else:
                self._split(part)

    def _push(self, part: _Part) -> None:
        if part.mass:
            heappush(self._heap, (-part.mass, next(self._order), part))

    def _class(self, mass: int, members: Members, place: int) -> BehaviourClass:
        return BehaviourClass(mass, Fraction(mass, self.mass), members, place)

    def _weigh(self, space: ConditionedSpace, evidence: Rows) -> int:
        self.budget.spend(1)
        return space.mass_with(evidence)

    def _open(self, part: _Part) -> None:
        """Weigh the class of a drawn member; if the part has others, choose the row to split on."""
        members = draw(part.space, self._rng, DRAWS)
        tables = members.outcomes(part.rows)
        alike = tables[:, None] == tables[None]  # [d, d, r] whether two members agree in a row
        commonest = int(alike.all(2).sum(1).argmax())  # the first of those that most share their table with
        table = Rows(tables[commonest], part.rows.targets)
        mass = self._weigh(part.space, table)
        if self.known_best is None or mass > self.known_best.mass:
            self.known_best = self._class(mass, members, commonest)
        if mass == part.mass:
            part.example = members, commonest
            return
        index = int(alike.sum(1).max(0).argmin())  # where the commonest outcome has the fewest
        if alike[0, :, index].all():
            index = self._first_split(part, table)
        part.row, part.outcomes = index, self._guesses(part, index, tables[:, index].tolist())

    def _first_split(self, part: _Part, table: Rows) -> int:
        """Return where members that the draws missed first leave the table; the part is known to have some."""
        low, high = 0, len(table.words) - 1  # all members agree before `low`; some disagree at `high` or before
        while low < high:
            middle = (low + high) // 2
            if self._weigh(part.space, table.select(slice(middle + 1))) == part.mass:
                low = middle + 1
            else:
                high = middle
        return low

    def _guesses(self, part: _Part, index: int, first: Sequence[int]) -> Iterator[int]:
        """Yield every possible outcome of a row once: those of drawn members first, as long as draws bring new ones."""
        fresh = [outcome for outcome, _ in Counter(first).most_common()]
        yielded = dict.fromkeys(fresh)
        row = part.rows.select(slice(index, index + 1))
        while fresh:
            yield from fresh
            outcomes = draw(part.space, self._rng, DRAWS).outcomes(row)[:, 0].tolist()
            fresh = list(dict.fromkeys(outcome for outcome in outcomes if outcome not in yielded))
            yielded.update(dict.fromkeys(fresh))
        yield from (outcome for outcome in self._possible(part, index) if outcome not in yielded)

    def _possible(self, part: _Part, index: int) -> Iterator[int]:
        """Yield every assignment to what is computed in a row, the last variable the fastest."""
        variables = part.space.sets.space.index
        given_mask = int(part.rows.targets[index]) | sum(1 << variables[root] for root in part.space.roots)
        free = [i for i in variables.values() if not given_mask >> i & 1]
        given_bits = int(part.rows.words[index]) & given_mask
        for number in range(1 << len(free)):
            yield given_bits | sum((number >> place & 1) << i for place, i in enumerate(reversed(free)))

    def _split(self, part: _Part) -> None:
        """Split the next outcome off; the part keeps what is left."""
        assert part.row is not None
        row = Rows(np.array([next(part.outcomes)], np.uint64), part.rows.targets[part.row : part.row + 1])
        mass = self._weigh(part.space, row)
        heappop(self._heap)
        self._push(_Part(part.space.condition(row), part.root_space, part.rows, mass))
        self._push(replace(part, mass=part.mass - mass))

    def descend(self) -> BehaviourClass:
        """Return one heavy class by a greedy descent, without proof and outside the budget.

        From the heaviest part on, the outcome that drawn members agree on most is taken for granted, row by row.
        """
        part = self._heap[0][2]
        rows, space = part.rows, part.space
        while True:
            members = draw(space, self._rng, DRAWS)
            tables = members.outcomes(rows)
            times = (tables[:, None] == tables[None]).sum(1)  # [d, r] how many do what a member does
            agreement = times.max(0)
            if (agreement == DRAWS).all():
                table = Rows(tables[0], rows.targets)
                return self._class(part.root_space.mass_with(table), members, 0)
            index = int(np.where(agreement < DRAWS, agreement, 0).argmax())
            outcome = tables[times[:, index].argmax(), index]
            space = space.condition(Rows(np.array([outcome]), rows.targets[index : index + 1]))


def list_classes(search: ClassSearch) -> tuple[list[BehaviourClass], bool]:
    """List the classes within the search's budget, heaviest first, and whether these are all."""
    behaviour_classes: list[BehaviourClass] = []
    try:
        behaviour_classes.extend(search.heaviest_first())
    except BudgetSpent:
        return behaviour_classes, False
    return behaviour_classes, True
