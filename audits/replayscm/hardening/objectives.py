"""Objectives of hardening: counts to reduce by further worlds, their least values, and the outcome of a goal.

Once a world is added, the parent sets that it excludes are dropped, so that counts get cheaper with every world.

Impossibility is proved by exhaustion: the remaining members replay every row that any admissible world can show, for
all thresholds that agree with the evidence (audits.replayscm.hardening.worlds). If that holds only for the drawn
thresholds, the question stays open.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from itertools import islice
from typing import Protocol

import numpy as np

from calibrant.audits.replayscm.bounded import PatternSets, Probe, seen_patterns, unite
from calibrant.audits.replayscm.hardening.worlds import WorldFamily
from calibrant.dsl.replayscm.evaluator import fits, replays
from calibrant.dsl.replayscm.generation.problems import Population
from calibrant.dsl.replayscm.item import Problem
from calibrant.dsl.replayscm.scm import Scm
from calibrant.dsl.replayscm.world import World, pack_rows
from calibrant.solvers.outcome import Budget, Found, Impossible, Outcome, OutOfBudget
from calibrant.solvers.replayscm.conditioned_space import ConditionedSpace, ParentSets
from calibrant.solvers.replayscm.space import VersionSpace

# --- Counts of the members of a version space after further worlds, for many worlds at once and updated incrementally
MAX_WEIGHTS = 4_000_000  # entries of the array of weights, options times parent sets: 32 MB
MIN_RESTRICTING_ROWS = 1_000  # rows of added worlds from which excluded parent sets are dropped before counting


class Members:
    """The members of a version space; gold is one of them."""

    name = "members"

    def __init__(
        self, space: VersionSpace, *, sets: ParentSets | None = None, roots: Iterable[tuple[str, ...]] | None = None
    ) -> None:
        """Take over what is known of the space; the rest is computed when it is needed.

        sets: parent sets conditioned on the worlds of `space`; None: unknown
        roots: root sets that may have members; None: unknown
        """
        self.space = space
        self._sets = sets or ParentSets(space, None)
        self._roots = roots

    @cached_property
    def _parts(self) -> tuple[ConditionedSpace, ...]:
        """The members by root set; root sets without members are left out."""
        root_sets = self.space.counts_by_roots if self._roots is None else self._roots
        parts = (ConditionedSpace(self._sets, roots) for roots in root_sets)
        return tuple(part for part in parts if part.mass)

    @property
    def breadth(self) -> int:
        """Cost of one count: the number of parent sets times the number of root sets."""
        return len(self._sets.masks) * len(self._parts)

    def count_remaining(self, worlds: Sequence[World]) -> int:
        if not worlds:
            return sum(part.mass for part in self._parts)
        if sum(world.num_rows for world in worlds) >= MIN_RESTRICTING_ROWS:
            return self.restrict_to(worlds).count_remaining(())
        return self.count_remaining_each([worlds])[0]

    def count_remaining_each(self, options: Sequence[Sequence[World]]) -> list[int]:
        """Count the remaining members for each option."""
        waiting, batch_size = iter(options), max(1, MAX_WEIGHTS // max(1, len(self._sets.masks)))
        counts: list[int] = []
        while batch := list(islice(waiting, batch_size)):
            counts += self._count_batch(batch)
        return counts

    def _count_batch(self, options: Sequence[Sequence[World]]) -> list[int]:
        rows = pack_rows([world for worlds in options for world in worlds], self.space.task.variables)
        spans = np.cumsum([0, *(sum(world.num_rows for world in worlds) for worlds in options)])
        # [options, parent sets]: number of functions of each set that agree with the evidence (as partial truth tables:
        # cares, values) and the option's rows
        weights = self._sets.weights(self._sets.cares, self._sets.values, rows, spans)
        # many options exclude the same functions: equal rows of weights are counted once, by their first occurrence
        first_index = {row.tobytes(): index for index, row in reversed(list(enumerate(weights)))}
        distinct = weights[list(first_index.values())]
        counts = [sum(masses) for masses in zip(*(part.totals(distinct) for part in self._parts), strict=True)]
        # without any part nothing is summed: all counts are 0
        count_of = dict(zip(first_index, counts or [0] * len(first_index), strict=True))
        return [count_of[row.tobytes()] for row in weights]

    def after(self, world: World) -> Members:
        return self.restrict_to([world])

    def restrict_to(self, worlds: Sequence[World]) -> Members:
        """Return the members that replay these worlds as well."""
        sets = self._sets.condition(pack_rows(worlds, self.space.task.variables))
        return Members(self.space.with_worlds(worlds), sets=sets, roots=[part.roots for part in self._parts])


# --- Objectives of hardening: numbers to reduce by training worlds, and their least values over all admissible rows


class Objective(Protocol):
    """A count to be reduced by training worlds; more worlds never raise it."""

    @property
    def name(self) -> str:
        """Return the plural noun of what is counted."""

    @property
    def breadth(self) -> int:
        """Return the cost of one count: the parent sets, patterns or mechanisms that it goes through."""

    def count_remaining(self, worlds: Sequence[World]) -> int:
        """Return the count with these worlds added."""

    def count_remaining_each(self, options: Sequence[Sequence[World]]) -> list[int]:
        """Return the count for each option, a set of worlds to add."""

    def after(self, world: World) -> Objective:
        """Return the objective with the world added."""


@dataclass(frozen=True)
class ChargedObjective:
    """An objective that charges its breadth to a budget for every option that it counts; `BudgetSpent` at the end."""

    objective: Objective
    budget: Budget

    @property
    def name(self) -> str:
        return self.objective.name

    @property
    def breadth(self) -> int:
        return self.objective.breadth

    def count_remaining(self, worlds: Sequence[World]) -> int:
        return self.count_remaining_each([worlds])[0]

    def count_remaining_each(self, options: Sequence[Sequence[World]]) -> list[int]:
        self.budget.spend(len(options) * self.objective.breadth)
        return self.objective.count_remaining_each(options)

    def after(self, world: World) -> ChargedObjective:
        return replace(self, objective=self.objective.after(world))


@dataclass(frozen=True)
class OpenPatterns:
    """Local predecessor patterns that no scored training row shows.

    patterns: for each probe the patterns that are shown, as bits
    """

    probes: tuple[Probe, ...]
    patterns: PatternSets
    name = "local patterns"

    @property
    def breadth(self) -> int:
        return sum(probe.num_patterns for probe in self.probes)

    def count_remaining(self, worlds: Sequence[World]) -> int:
        bits_by_probe = self._with(worlds)
        return sum(
            probe.num_patterns - bits.bit_count() for probe, bits in zip(self.probes, bits_by_probe, strict=True)
        )

    def count_remaining_each(self, options: Sequence[Sequence[World]]) -> list[int]:
        return [self.count_remaining(worlds) for worlds in options]

    def after(self, world: World) -> OpenPatterns:
        return OpenPatterns(self.probes, self._with([world])).drop_complete()

    def drop_complete(self) -> OpenPatterns:
        """Return the objective without the probes whose every pattern was shown."""
        pairs = zip(self.probes, self.patterns, strict=True)
        incomplete = [(probe, bits) for probe, bits in pairs if bits.bit_count() < probe.num_patterns]
        return OpenPatterns(tuple(probe for probe, _ in incomplete), tuple(bits for _, bits in incomplete))

    def _with(self, worlds: Sequence[World]) -> PatternSets:
        return unite([self.patterns, seen_patterns(worlds, self.probes)], len(self.probes))


@dataclass(frozen=True)
class FittingAlternatives:
    """Supplied SCMs that still replay every added world."""

    models: tuple[Scm, ...]
    name = "alternatives"

    @property
    def breadth(self) -> int:
        return sum(len(model.mechanisms) for model in self.models)

    def count_remaining(self, worlds: Sequence[World]) -> int:
        return len(self.fitting(worlds))

    def count_remaining_each(self, options: Sequence[Sequence[World]]) -> list[int]:
        return [self.count_remaining(worlds) for worlds in options]

    def fitting(self, worlds: Sequence[World]) -> tuple[Scm, ...]:
        return tuple(model for model in self.models if fits(model, worlds))

    def after(self, world: World) -> FittingAlternatives:
        return FittingAlternatives(self.fitting([world]))


@dataclass(frozen=True)
class DisagreeingMembers:
    """Members of the version space that do not replay the held-out worlds."""

    all_members: Members
    agreeing: Members
    name = "members that differ on held-out worlds"

    @property
    def breadth(self) -> int:
        return self.all_members.breadth + self.agreeing.breadth

    def count_remaining(self, worlds: Sequence[World]) -> int:
        return self.all_members.count_remaining(worlds) - self.agreeing.count_remaining(worlds)

    def count_remaining_each(self, options: Sequence[Sequence[World]]) -> list[int]:
        pairs = zip(
            self.all_members.count_remaining_each(options), self.agreeing.count_remaining_each(options), strict=True
        )
        return [num_all - num_agreeing for num_all, num_agreeing in pairs]

    def after(self, world: World) -> DisagreeingMembers:
        return DisagreeingMembers(self.all_members.after(world), self.agreeing.after(world))


# --- Outcome of hardening: whether the goal is reached, and a proof where no admissible world could help --------------
MAX_ROWS = 5_000_000  # rows up to which members are counted for a hypothetical, wider family of worlds
MIDDLE_THRESHOLD = 0.4  # some published level lies below it and some above


class HardeningGoal(Enum):
    """Goal of `counterexample_worlds` for the version space."""

    SINGLE_MEMBER = "a single member"
    HELDOUT_AGREEMENT = "that all members replay the held-out worlds"
    NONE_DISCOVERED = "that no alternative is left that a search discovers"


def goal_objective(goal: HardeningGoal, problem: Problem, members: Members) -> Objective:
    """Return the objective of a goal: 1 member, or 0 members that differ on held-out worlds.

    goal: not NONE_DISCOVERED, which is not about a class
    """
    if goal is HardeningGoal.SINGLE_MEMBER:
        return members
    return DisagreeingMembers(members, members.restrict_to(problem.sealed.heldout.worlds))


def goal_outcome(
    problem: Problem,
    goal: HardeningGoal,
    space: VersionSpace,
    families: tuple[WorldFamily, WorldFamily],
    spent: Sequence[str] = (),
) -> Outcome[Problem]:
    """Return whether the goal is reached, and if not, whether any admissible world could still help.

    families: with the drawn thresholds, and with all thresholds that agree with the evidence
    spent: a sentence for each budget that ran out
    """
    family, any_threshold_family = families
    objective = goal_objective(goal, problem, Members(space))
    target = 1 if goal is HardeningGoal.SINGLE_MEMBER else 0
    num_remaining = objective.count_remaining(())
    if num_remaining == target:
        return Found(problem)
    min_reachable = objective.count_remaining(family.reachable)
    if num_remaining > min_reachable:
        reason = "; ".join(
            (f"{num_remaining} {objective.name} are left", f"other worlds could still leave {min_reachable}", *spent)
        )
        return OutOfBudget(reason, min_reachable)
    min_possible = objective.count_remaining(any_threshold_family.reachable)
    if num_remaining > min_possible:
        with_drawn = "no world helps units with the thresholds that were drawn"
        with_others = f"with others that agree with the evidence {min_possible} could be left"
        return OutOfBudget(
            f"{num_remaining} {objective.name} are left; {with_drawn}, {with_others}: try another seed", min_possible
        )
    described = space.model_class.describe(problem.task)
    num_rows = sum(world.num_rows for world in any_threshold_family.reachable)
    relaxations = _describe_relaxations(objective, any_threshold_family)
    return Impossible(
        f"{num_remaining} {objective.name} of the class ({described}) agree with gold in each of the {num_rows} rows "
        "that these units can show, whatever their thresholds, under hard interventions on at most "
        f"{family.max_targets} targets without held-out signatures. {relaxations}"
    )


def _describe_relaxations(objective: Objective, family: WorldFamily) -> str:
    """State the counts with one restriction of the family relaxed, which shows the restriction that blocks the goal."""
    population, targets = family.population, family.max_targets
    one_unit = Population(population.model, ("any",), dict.fromkeys(population.model.roots, (MIDDLE_THRESHOLD,)))
    families = {
        "any root context": WorldFamily(one_unit, family.excluded, max_targets=targets),
        "held-out signatures": family.allowing(excluded=()),
        f"{targets + 1} targets": family.allowing(more_targets=1),
    }
    countable = {relaxation: wider for relaxation, wider in families.items() if wider.max_rows <= MAX_ROWS}
    text = ", ".join(
        f"{objective.count_remaining(wider.reachable)} with {relaxation}" for relaxation, wider in countable.items()
    )
    if len(countable) < len(families):
        text += f"; not counted, for over {MAX_ROWS:,} rows: {', '.join(w for w in families if w not in countable)}"
    return f"Were more admissible, there would be left: {text}"


@dataclass(frozen=True, slots=True)
class SuppliedAlternative:
    """Result for one alternative.

    number: position, from 1, as supplied; world: the first added world that it does not replay, "" if it replays all
    why: reason why it is not separated; "" if it is, or did not replay the training worlds to begin with
    """

    number: int
    world: str
    why: str


def supplied_alternatives(
    problem: Problem,
    alternatives: Sequence[Scm],
    added: Sequence[World],
    families: tuple[WorldFamily, WorldFamily],
    spent: Sequence[str],
) -> Iterator[SuppliedAlternative]:
    """Yield the result for every alternative, in the order supplied.

    problem: before hardening; added: the worlds added; families, spent: as in `goal_outcome`
    """
    for position, model in enumerate(alternatives, 1):
        if not replays(model, problem.task.training):
            yield SuppliedAlternative(position, "", "")
            continue
        world = next((world.id for world in added if not fits(model, [world])), "")
        yield SuppliedAlternative(position, world, "" if world else _explain_unseparated(model, families, spent))


def discovery_outcome(
    problem: Problem,
    alternatives: Sequence[tuple[Scm, SuppliedAlternative]],
    families: tuple[WorldFamily, WorldFamily],
) -> Outcome[Problem]:
    """Return whether every alternative is separated, and if not, whether any admissible world could still do it.

    problem: after hardening; alternatives: supplied and discovered ones with their results
    """
    _, any_threshold_family = families
    remaining = [(model, alternative) for model, alternative in alternatives if alternative.why]
    if not remaining:
        return Found(problem)
    reasons = "; ".join(f"alternative {alternative.number}: {alternative.why}" for _, alternative in remaining)
    num_inseparable = sum(fits(model, any_threshold_family.reachable) for model, _ in remaining)
    if num_inseparable:
        return Impossible(f"{num_inseparable} of {len(alternatives)} alternatives cannot be separated: {reasons}")
    return OutOfBudget(f"{len(remaining)} of {len(alternatives)} alternatives are not separated: {reasons}", 0)


def _explain_unseparated(model: Scm, families: tuple[WorldFamily, WorldFamily], spent: Sequence[str]) -> str:
    family, any_threshold_family = families
    if fits(model, any_threshold_family.reachable):
        return "agrees with gold in every row that an admissible world can show"
    if fits(model, family.reachable):
        return "agrees with gold in every row that units with the drawn thresholds can show; others could separate it"
    return "; ".join(spent)
