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
from itertools import count, product
from random import Random

from audits.replayscm.behaviour import Contexts, Outcome, distinct_contexts, outcomes, showing
from dsl.replayscm.scm import Scm
from dsl.replayscm.world import World
from solvers.budget import Budget, BudgetSpent
from solvers.replayscm.member_sampling import sample
from solvers.replayscm.version_space import VersionSpace

DRAWS = 12  # members that are drawn from a part to see where they differ


@dataclass(frozen=True, slots=True)
class BehaviourClass:
    """Members that do the same in every row.

    mass: their weight, of `ClassSearch.mass` in all; example: one of them
    """

    mass: int
    share: Fraction
    example: Scm


@dataclass(slots=True)
class _Part:
    """Members with one root set and known outcomes in some rows.

    example: set once the part is a whole class
    row, outcomes: the row that is being split on, and guesses of outcomes there that were not yet split off
    """

    contexts: Contexts
    known: tuple[World, ...]
    mass: int
    example: Scm | None = None
    row: World | None = None
    outcomes: Iterator[Outcome] = field(default_factory=lambda: iter(()))


class ClassSearch:
    """Lazy, exact search for the heaviest classes.

    mass: the weight of all members; `ValueError` if there are none
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
        self.size_penalty = size_penalty
        self.budget = budget or Budget()
        self._rng = rng
        self._order = count()
        self._heap: list[tuple[int, int, _Part]] = []
        self.mass = 0
        for roots in space.counts_by_roots:
            contexts = distinct_contexts(space, worlds, roots)
            part = _Part(contexts, (), contexts.space.mass(size_penalty=size_penalty))
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
        """The classes by weight; `BudgetSpent` when the budget is, and then `bound` and `known_best` still hold."""
        while self._heap:
            _, _, part = self._heap[0]
            if part.example is not None:
                heappop(self._heap)
                yield self._class(part.mass, part.example)
            elif part.row is None:
                self._open(part)
            else:
                self._split(part)

    def _push(self, part: _Part) -> None:
        if part.mass:
            heappush(self._heap, (-part.mass, next(self._order), part))

    def _class(self, mass: int, example: Scm) -> BehaviourClass:
        return BehaviourClass(mass, Fraction(mass, self.mass), example)

    def _weigh(self, contexts: Contexts, evidence: Sequence[World]) -> int:
        self.budget.spend(1)
        return contexts.space.with_worlds(evidence).mass(size_penalty=self.size_penalty)

    def _open(self, part: _Part) -> None:
        """Weigh the class of a drawn member; if the part has others, choose the row to split on."""
        rows, panel = part.contexts.rows, part.contexts.panel
        space = part.contexts.space.with_worlds(part.known)
        drawn = sample(space, self._rng, DRAWS, size_penalty=self.size_penalty)
        tables = [tuple(outcomes(model, panel)) for model in drawn]
        commonest, _ = Counter(tables).most_common(1)[0]
        example = drawn[tables.index(commonest)]
        mass = self._weigh(part.contexts, (*part.known, *showing(rows, commonest)))
        if self.known_best is None or mass > self.known_best.mass:
            self.known_best = self._class(mass, example)
        if mass == part.mass:
            part.example = example
            return
        by_row = [Counter(table[index] for table in tables) for index in range(len(rows))]
        index = min(range(len(rows)), key=lambda i: by_row[i].most_common(1)[0][1])
        if len(by_row[index]) == 1:
            index = self._first_split(part, commonest)
        guesses = [outcome for outcome, _ in by_row[index].most_common()]
        part.row, part.outcomes = rows[index], self._guesses(part, index, guesses)

    def _first_split(self, part: _Part, table: Sequence[Outcome]) -> int:
        """Where members that the draws missed first leave the table; the part is known to have some."""
        low, high = 0, len(table) - 1  # all members agree before `low`; some disagree at `high` or before
        evidence = showing(part.contexts.rows, table)
        while low < high:
            middle = (low + high) // 2
            if self._weigh(part.contexts, (*part.known, *evidence[: middle + 1])) == part.mass:
                low = middle + 1
            else:
                high = middle
        return low

    def _guesses(self, part: _Part, index: int, first: Sequence[Outcome]) -> Iterator[Outcome]:
        """Every possible outcome of a row once: those of drawn members first, as long as draws bring new ones."""
        known, rows, panel = part.known, part.contexts.rows, part.contexts.panel
        seen = dict.fromkeys(first)
        fresh = list(first)
        while fresh:
            yield from fresh
            space = part.contexts.space.with_worlds(known)
            drawn = sample(space, self._rng, DRAWS, size_penalty=self.size_penalty)
            fresh = list(dict.fromkeys(o for model in drawn if (o := outcomes(model, panel)[index]) not in seen))
            seen.update(dict.fromkeys(fresh))
        given = {*rows[index].intervention.targets, *part.contexts.space.root_sets[0]}
        possible = [
            (bit,) if variable in given else (0, 1)
            for variable, bit in zip(rows[index].variables, rows[index].columns, strict=True)
        ]
        yield from (outcome for outcome in product(*possible) if outcome not in seen)

    def _split(self, part: _Part) -> None:
        """Split the next outcome off; the part keeps what is left."""
        assert part.row is not None
        known = (*part.known, replace(part.row, columns=next(part.outcomes)))
        mass = self._weigh(part.contexts, known)
        heappop(self._heap)
        self._push(_Part(part.contexts, known, mass))
        self._push(replace(part, mass=part.mass - mass))

    def descend(self) -> BehaviourClass:
        """One heavy class by a greedy descent, without proof and outside the budget.

        From the heaviest part on, the outcome that drawn members agree on most is taken for granted, row by row.
        """
        part = self._heap[0][2]
        rows, panel, known = part.contexts.rows, part.contexts.panel, part.known
        while True:
            space = part.contexts.space.with_worlds(known)
            drawn = sample(space, self._rng, DRAWS, size_penalty=self.size_penalty)
            tables = [outcomes(model, panel) for model in drawn]
            commonest = [Counter(column).most_common(1)[0] for column in zip(*tables, strict=True)]
            split = [index for index, (_, times) in enumerate(commonest) if times < DRAWS]
            if not split:
                whole = part.contexts.space.with_worlds(showing(rows, tables[0]))
                return self._class(whole.mass(size_penalty=self.size_penalty), drawn[0])
            index = max(split, key=lambda i: commonest[i][1])
            known = (*known, replace(rows[index], columns=commonest[index][0]))


def classes(search: ClassSearch) -> tuple[list[BehaviourClass], bool]:
    """The classes found within the search's budget, heaviest first, and whether these are all."""
    found: list[BehaviourClass] = []
    try:
        found.extend(search.heaviest_first())
    except BudgetSpent:
        return found, False
    return found, True
