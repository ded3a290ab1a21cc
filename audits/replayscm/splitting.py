"""Splitting a version space: which world removes the largest share of its members.

For a known truth the share that a world removes is exact: one minus the agreement. Otherwise the truth is one of the
members, and a world that splits them into outcomes of shares p1, p2, ... leaves sum p ** 2 of them on average. That sum
is exact where the outcomes can be listed within the budget of counts. Else it is bounded by the outcomes found so far,
and estimated without bias: the share of a drawn member's own outcome has that sum as its expectation.

Where roots are hidden, a row that no truth has filled in fixes no context: members with other roots would copy other
values. There a split is measured for a known truth only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from random import Random
from statistics import fmean, stdev

import numpy as np

from calibrant.audits.replayscm.ceiling import ClassSearch, list_classes, simulate
from calibrant.dsl.replayscm.disclosure import natural
from calibrant.dsl.replayscm.generation.strata import MAX_TARGETS
from calibrant.dsl.replayscm.item import Task
from calibrant.dsl.replayscm.scm import Scm
from calibrant.dsl.replayscm.world import Intervention, Rows, World, pack_rows
from calibrant.solvers.outcome import Budget
from calibrant.solvers.replayscm.conditioned_space import ConditionedSpace, Members, ParentSets, draw
from calibrant.solvers.replayscm.space import VersionSpace

MAX_COUNTS = 200
NUM_DRAWS = 16
FINALISTS, FINAL_DRAWS = 8, 4


@dataclass(frozen=True, slots=True)
class Remaining:
    """The expected share of members that a world leaves, over truths drawn from the members.

    lower, upper: certified
    estimate, standard_error: from drawn truths where they differ; no error (None) can be told from a single draw
    outcomes: how many different ones are known
    """

    lower: Fraction
    upper: Fraction
    estimate: float
    standard_error: float | None
    outcomes: int

    @property
    def is_exact(self) -> bool:
        return self.lower == self.upper


@dataclass(frozen=True, slots=True)
class SplittingWorld:
    """A world with what it is expected to leave; for a known truth, what it does leave."""

    world: World
    remaining: Remaining


def removed_share(space: VersionSpace, world: World) -> Fraction:
    """Return the share of members that do not replay a world simulated from the truth; exact."""
    return 1 - _remaining_shares(space, [world])[0]


def _remaining_shares(space: VersionSpace, worlds: Sequence[World]) -> list[Fraction]:
    """Return the share of members that replay each of the worlds; exact. `ZeroDivisionError` for an empty space."""
    sets = ParentSets(space, None)
    spans = np.cumsum([0, *(world.num_rows for world in worlds)])
    weights = sets.weights(sets.cares, sets.values, pack_rows(worlds, space.task.variables), spans)
    counts = [0] * len(worlds)
    for roots in space.counts_by_roots:
        counts = [sum(pair) for pair in zip(counts, ConditionedSpace(sets, roots).totals(weights), strict=True)]
    return [Fraction(count, space.count) for count in counts]


def expected_remaining(
    space: VersionSpace, world: World, rng: Random, *, max_counts: int = MAX_COUNTS, num_draws: int = NUM_DRAWS
) -> Remaining:
    """Return what a world leaves on average. Of its columns only those of targets and roots count.

    Needs known roots: with hidden ones a row does not fix the context.
    """
    _require_roots(space)
    search = ClassSearch(space, [world], rng, budget=Budget(max_counts))
    behaviour_classes, complete = list_classes(search)
    squares = sum((behaviour.share**2 for behaviour in behaviour_classes), start=Fraction(0))
    if complete:
        return Remaining(squares, squares, float(squares), 0.0, len(behaviour_classes))
    unlisted = 1 - sum((behaviour.share for behaviour in behaviour_classes), start=Fraction(0))
    upper = squares + unlisted * Fraction(search.bound, search.mass)
    (estimate,) = Truths.sample(space, rng, num_draws).remaining([world])
    return Remaining(squares, upper, *estimate, len(behaviour_classes))


def best_split(
    space: VersionSpace,
    candidates: Iterable[World],
    rng: Random,
    *,
    num_draws: int = NUM_DRAWS,
    max_counts: int = MAX_COUNTS,
) -> SplittingWorld:
    """Return the candidate that is expected to leave least, the first of equals; `ValueError` without candidates.

    All candidates are compared on the same drawn truths, the FINALISTS best of them on FINAL_DRAWS times as many
    others, since few draws can miss an outcome that many members share. The winner is measured again with fresh ones,
    because the estimate that made it win is too favourable.
    """
    _require_roots(space)
    finalists = list(candidates)
    if not finalists:
        raise ValueError("no candidate worlds to choose from")
    for number, num_kept in ((num_draws, FINALISTS), (FINAL_DRAWS * num_draws, 1)):
        remaining = Truths.sample(space, rng, number).remaining(finalists)
        ranked = sorted(zip(remaining, finalists, strict=True), key=lambda pair: pair[0][0])
        finalists = [world for _, world in ranked[:num_kept]]
    (world,) = finalists
    return SplittingWorld(world, expected_remaining(space, world, rng, max_counts=max_counts, num_draws=num_draws))


def best_split_for(space: VersionSpace, truth: Scm, candidates: Iterable[World]) -> tuple[World, Fraction]:
    """Return the candidate that removes the largest share when this SCM is the truth, and that share; exact.

    The worlds show contexts of the truth's roots, also where the task does not tell them.
    """
    simulations = [simulate(truth, world) for world in candidates]
    if not simulations:
        raise ValueError("no candidate worlds to choose from")
    removed = [1 - share for share in _remaining_shares(space, simulations)]
    best = removed.index(max(removed))
    return simulations[best], removed[best]


def single_worlds(
    task: Task, rng: Random, *, roots: Sequence[str] | None = None, contexts_per_world: int | None = None
) -> Iterator[World]:
    """Yield the hard interventions on one variable: 0, 1 and values by row; contexts as in `candidate_worlds`."""
    for target in task.variables:
        for intervention in (Intervention({target: 0}), Intervention({target: 1}), Intervention(assigned=(target,))):
            yield _world(task, rng, intervention, roots, contexts_per_world)


def candidate_worlds(
    task: Task,
    rng: Random,
    number: int,
    *,
    roots: Sequence[str] | None = None,
    max_targets: int = MAX_TARGETS,
    contexts_per_world: int | None = None,
) -> Iterator[World]:
    """Yield random worlds to choose from: one to `max_targets` targets in either mode, a row per root assignment.

    roots: of the truth, for a task that hides them
    contexts_per_world: that many root assignments, drawn without repetition, instead of all
    Columns of variables that are neither targets nor roots are 0 and mean nothing.
    """
    for _ in range(number):
        targets = natural(rng.sample(task.variables, rng.randint(1, min(max_targets, len(task.variables)))))
        assigned = rng.random() < 0.5
        intervention = (
            Intervention(assigned=targets)
            if assigned
            else Intervention({target: rng.getrandbits(1) for target in targets})
        )
        yield _world(task, rng, intervention, roots, contexts_per_world)


def _world(
    task: Task, rng: Random, intervention: Intervention, roots: Sequence[str] | None, contexts_per_world: int | None
) -> World:
    if roots is None:
        roots = task.disclosure.roots
        if roots is None:
            raise ValueError("worlds are chosen by their root contexts; the roots are hidden")
    every = range(1 << len(roots))
    contexts = list(every) if contexts_per_world is None else rng.sample(every, min(contexts_per_world, len(every)))
    columns = dict.fromkeys(task.variables, 0)
    for i, root in enumerate(roots):
        columns[root] = sum((context >> i & 1) << row for row, context in enumerate(contexts))
    for target in natural(intervention.targets):  # a fixed order: bits are drawn
        constant = -intervention.constants.get(target, 0) & ((1 << len(contexts)) - 1)
        columns[target] = rng.getrandbits(len(contexts)) if target in intervention.assigned else constant
    units = tuple(f"r{row}" for row in range(len(contexts)))
    return World(f"candidate_{intervention}", intervention, task.variables, units, tuple(columns.values()))


def _require_roots(space: VersionSpace) -> None:
    if space.task.disclosure.roots is None:
        raise ValueError("the expected split of a world needs known roots")


class Truths:
    """Drawn members, each in turn taken for the truth."""

    def __init__(self, members: Members) -> None:
        self.space = members.space
        self.members = members

    @classmethod
    def sample(cls, space: VersionSpace, rng: Random, number: int) -> Truths:
        """Sample truths from a space with known roots; `ValueError` if it is empty."""
        (roots,) = space.root_sets
        return cls(draw(ConditionedSpace(ParentSets(space, None), roots), rng, number))

    def remaining(self, worlds: Sequence[World]) -> list[tuple[float, float | None]]:
        """Return, per world, the mean share of members that replay a sampled truth, and its standard error."""
        variables = self.space.sets.space.task.variables
        truths: list[list[int]] = []  # of each world what each truth shows, as a place among all that is shown
        outcomes: list[Rows] = []
        for world in worlds:
            rows = pack_rows([world], variables)
            places: dict[bytes, int] = {}
            truths.append([])
            for words in self.members.outcomes(rows):
                place = places.setdefault(words.tobytes(), len(outcomes))
                if place == len(outcomes):
                    outcomes.append(Rows(words, rows.targets))
                truths[-1].append(place)
        together = Rows(*(np.concatenate(parts) for parts in zip(*outcomes, strict=True)))
        masses = self.space.masses(together, np.cumsum([0, *(len(rows.words) for rows in outcomes)]))
        shares = [mass / self.space.mass for mass in masses]
        return [_mean([shares[place] for place in places]) for places in truths]


def _mean(shares: Sequence[float]) -> tuple[float, float | None]:
    """Return mean and standard error; no error for a single share."""
    return fmean(shares), stdev(shares) / sqrt(len(shares)) if len(shares) > 1 else None
