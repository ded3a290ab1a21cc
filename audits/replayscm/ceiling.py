"""The ceiling of HeldoutExact if the truth is drawn from the version space: the heaviest behaviour of its members.

Members are the consistent SCMs. A row fixes a context, the values of its targets and of the roots. A member's outcome
is the values that it computes for the other variables. Rows with the same context are equivalent for every member.

Members with the same outcome in every row (and, if roots are hidden, the same root set) are a class. A part has the
members with given outcomes in some of the rows. It is the version space of the evidence with those rows added, so its
weight is exact and bounds the weight of every class within it. Best-first search, which splits the heaviest part first,
yields the classes by falling weight.

Parts of equal depth are disjoint, so at most 1 / s of them have a share of s or more: a heaviest class of share s is
proved within about (contexts / s) splits, whatever the number of members.

An answer is held-out exact iff its outcome in every held-out context is the truth's. So the best answer is one of the
heaviest class, and its expected HeldoutExact is the share of that class: no solver does better on average under this
prior. With hidden roots an answer has to name the root set as well.

The prior is uniform over the members, or weights them by 2**(-penalty * total formula size). Whether it is a good one
is an empirical question: bench.answers.rates compares how often gold's behaviour is the predicted one with its
probability under the prior.
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

from calibrant.audits.replayscm.bounded import latent_scm
from calibrant.dsl.replayscm.evaluator import replays
from calibrant.dsl.replayscm.evaluator import simulate as simulate_columns
from calibrant.dsl.replayscm.item import Problem
from calibrant.dsl.replayscm.scm import Scm
from calibrant.dsl.replayscm.world import Panel, Rows, World, pack_rows
from calibrant.solvers.outcome import Budget, BudgetSpent
from calibrant.solvers.replayscm.conditioned_space import ConditionedSpace, Members, ParentSets, draw
from calibrant.solvers.replayscm.space import VersionSpace

# --- Behaviour of members of a version space in given rows ------------------------------------------------------------


def distinct_contexts(rows: Rows, roots: int, num_vars: int) -> Rows:
    """Return the first row of each context; skip rows without a computed variable.

    roots: bit i for variable i
    """
    first: dict[tuple[int, int], int] = {}
    all_variables = (1 << num_vars) - 1
    for index, (word, targets) in enumerate(zip(rows.words.tolist(), rows.targets.tolist(), strict=True)):
        context_mask = targets | roots
        if context_mask != all_variables:
            first.setdefault((targets, word & context_mask), index)
    return rows.select(np.array(list(first.values()), np.int64))


def simulate(model: Scm, world: World) -> World:
    """Return the world with everything but targets and roots computed by the model."""
    panel = Panel(world.variables, (world,))
    columns = simulate_columns(model, panel.columns, panel.clamped, panel.all_rows)
    return replace(world, columns=tuple(columns[v] for v in world.variables))


# --- Classes of members that behave alike in given rows, heaviest first -----------------------------------------------

NUM_DRAWS = 12  # members sampled from a part to find rows in which they differ


@dataclass(frozen=True, slots=True)
class BehaviourClass:
    """Members with the same outcome in every row.

    mass: their weight; share: of `ClassSearch.mass`
    members, index: sampled members, of which the one at `index` is of the class
    """

    mass: int
    share: Fraction
    members: Members
    index: int

    @property
    def example(self) -> Scm:
        """A member of the class, with formulas."""
        return self.members.scm(self.index)


@dataclass(slots=True)
class _Part:
    """Members with one root set and given outcomes in some rows.

    space: these members; root_space: all members with the root set; rows: one of each context
    example: (sampled members, index of one of the class), set once the part is a whole class
    row, outcomes: the row by which the part is split, and possible outcomes there that were not yet split off
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

    mass: the weight of all members
    num_sets, num_rows: numbers of parent sets and of rows, to which the cost of one count is proportional
    known_best: the heaviest class that was weighed so far, whether or not it is proved to be the heaviest
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
        """Start with one part per root set; `ValueError` for an empty space.

        size_penalty: as in the module docstring, None for uniform weights; budget: in exact counts
        """
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
        """Upper bound of the weight of every class that was not yet yielded; 0 if there is none."""
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

    def _class(self, mass: int, members: Members, index: int) -> BehaviourClass:
        return BehaviourClass(mass, Fraction(mass, self.mass), members, index)

    def _weigh(self, space: ConditionedSpace, evidence: Rows) -> int:
        self.budget.spend(1)
        return space.mass_with(evidence)

    def _open(self, part: _Part) -> None:
        """Weigh the class of a sampled member; if the part has other members, choose the row to split by."""
        members = draw(part.space, self._rng, NUM_DRAWS)
        tables = members.outcomes(part.rows)
        alike = tables[:, None] == tables[None]  # [d, d, r] whether two members agree in a row
        commonest = int(alike.all(2).sum(1).argmax())  # first member of the most frequent table
        table = Rows(tables[commonest], part.rows.targets)
        mass = self._weigh(part.space, table)
        if self.known_best is None or mass > self.known_best.mass:
            self.known_best = self._class(mass, members, commonest)
        if mass == part.mass:
            part.example = members, commonest
            return
        index = int(alike.sum(1).max(0).argmin())  # the row whose most frequent outcome is rarest
        if alike[0, :, index].all():
            index = self._first_split(part, table)
        part.row, part.outcomes = index, self._likely_outcomes(part, index, tables[:, index].tolist())

    def _first_split(self, part: _Part, table: Rows) -> int:
        """Return a row in which some member, not sampled so far, differs from the table, by bisection."""
        low, high = 0, len(table.words) - 1  # all members agree before `low`; some disagree at `high` or before
        while low < high:
            middle = (low + high) // 2
            if self._weigh(part.space, table.select(slice(middle + 1))) == part.mass:
                low = middle + 1
            else:
                high = middle
        return low

    def _likely_outcomes(self, part: _Part, index: int, sampled: Sequence[int]) -> Iterator[int]:
        """Yield every possible outcome of a row once: first those of sampled members, until samples have no new one."""
        fresh = [outcome for outcome, _ in Counter(sampled).most_common()]
        yielded = dict.fromkeys(fresh)
        row = part.rows.select(slice(index, index + 1))
        while fresh:
            yield from fresh
            outcomes = draw(part.space, self._rng, NUM_DRAWS).outcomes(row)[:, 0].tolist()
            fresh = list(dict.fromkeys(outcome for outcome in outcomes if outcome not in yielded))
            yielded.update(dict.fromkeys(fresh))
        yield from (outcome for outcome in self._all_outcomes(part, index) if outcome not in yielded)

    def _all_outcomes(self, part: _Part, index: int) -> Iterator[int]:
        """Yield every assignment of the computed variables of a row; the last variable changes fastest."""
        variables = part.space.sets.space.index
        given_mask = int(part.rows.targets[index]) | sum(1 << variables[root] for root in part.space.roots)
        free = [i for i in variables.values() if not given_mask >> i & 1]
        given_bits = int(part.rows.words[index]) & given_mask
        for values in range(1 << len(free)):
            yield given_bits | sum((values >> k & 1) << i for k, i in enumerate(reversed(free)))

    def _split(self, part: _Part) -> None:
        """Split the next outcome off; the part keeps the remaining weight."""
        assert part.row is not None
        row = Rows(np.array([next(part.outcomes)], np.uint64), part.rows.targets[part.row : part.row + 1])
        mass = self._weigh(part.space, row)
        heappop(self._heap)
        self._push(_Part(part.space.condition(row), part.root_space, part.rows, mass))
        self._push(replace(part, mass=part.mass - mass))

    def descend(self) -> BehaviourClass:
        """Return one heavy class by a greedy descent, without proof and outside the budget.

        From the heaviest part on, it conditions on the most frequent outcome of sampled members, row by row.
        """
        part = self._heap[0][2]
        rows, space = part.rows, part.space
        while True:
            members = draw(space, self._rng, NUM_DRAWS)
            tables = members.outcomes(rows)
            times = (tables[:, None] == tables[None]).sum(1)  # [d, r] how many members have the outcome of member d
            agreement = times.max(0)
            if (agreement == NUM_DRAWS).all():
                table = Rows(tables[0], rows.targets)
                return self._class(part.root_space.mass_with(table), members, 0)
            index = int(np.where(agreement < NUM_DRAWS, agreement, 0).argmax())
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


# --- The ceiling: the best expected HeldoutExact of any answer, when the truth is drawn from the version space --------
MAX_COUNTS = 500  # a count takes 1 to 3 ms at 10 variables, with formula sizes up to 200 ms
MAX_DESCENT = 4_000_000  # parent sets times held-out rows, beyond which there is no greedy descent


@dataclass(frozen=True, slots=True)
class BestAnswer:
    """The ceiling as a certified interval, and an answer that reaches its lower end.

    lower: the exact share of the answer's class; upper: no class has a larger share
    answer: an SCM of the heaviest class that was weighed; counts: number of exact counts
    descent_cost: parent sets times held-out rows if these were too many for a descent to a heavier class; else 0
    """

    lower: Fraction
    upper: Fraction
    answer: Scm
    counts: int
    descent_cost: int = 0

    @property
    def is_exact(self) -> bool:
        return self.lower == self.upper


def ceiling(
    space: VersionSpace,
    heldout: Sequence[World],
    rng: Random,
    *,
    size_penalty: int | None = None,
    max_counts: int | None = MAX_COUNTS,
) -> BestAnswer:
    """Return the ceiling of one instance, exact unless the budget of counts runs out; `ValueError` for an empty space.

    rng: decides which of equally heavy classes answers and, if the budget runs out, how wide the interval is
    """
    budget = Budget(max_counts)
    search = ClassSearch(space, heldout, rng, size_penalty=size_penalty, budget=budget)
    try:
        best = next(search.heaviest_first())
    except BudgetSpent:
        candidates, cost = [search.known_best] if search.known_best else [], search.num_sets * search.num_rows
        if not candidates or cost <= MAX_DESCENT:
            candidates, cost = [search.descend(), *candidates], 0
        best = max(candidates, key=lambda candidate: candidate.mass)
        return BestAnswer(best.share, Fraction(search.bound, search.mass), best.example, budget.used, cost)
    return BestAnswer(best.share, best.share, best.example, budget.used)


def is_realised(problem: Problem, best_answer: BestAnswer) -> bool:
    """Return whether the best answer is held-out exact; exact even if the ceiling is an interval."""
    gold = latent_scm(problem)
    return best_answer.answer.roots == gold.roots and replays(best_answer.answer, problem.sealed.heldout)
