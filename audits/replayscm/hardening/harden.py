"""Hardening: gold-simulated training worlds that close what an instance leaves open, with a proof where none can.

`extra_worlds` adds a few worlds for local patterns, as the paper's Extra Worlds level does. `counterexample_worlds`
completes local coverage, separates every supplied alternative, and then, beyond the paper, reduces the version space of
a named class to what no admissible world can reduce further (audits.replayscm.hardening.candidate_worlds,
audits.replayscm.hardening.steps). The same seed gives the same worlds; gold and held-out worlds never change.

Whether more can be separated is decided by exhaustion. Units have latent thresholds, of which the evidence leaves
ranges; all rows that they could show under any thresholds in these are added at once. The members that still fit are
the fewest that any number of admissible worlds can leave.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from random import Random

from calibrant.audits.replayscm.ambiguity import gold_class
from calibrant.audits.replayscm.hardening.candidate_worlds import (
    WorldFamily,
    heldout_signatures,
    under_any_thresholds,
)
from calibrant.audits.replayscm.hardening.limits import (
    HardeningGoal,
    SuppliedAlternative,
    goal_objective,
    goal_outcome,
    supplied_alternatives,
)
from calibrant.audits.replayscm.hardening.members import Members
from calibrant.audits.replayscm.hardening.objectives import FittingAlternatives, OpenPatterns
from calibrant.audits.replayscm.hardening.steps import AddedWorld, HardeningEffort, Selector, WorldNames
from calibrant.audits.replayscm.hardening.thresholds import population, threshold_ranges
from calibrant.audits.replayscm.patterns import latent_scm, pattern_coverage, probes, seen_patterns
from calibrant.dsl.replayscm.generation.strata import MAX_TARGETS
from calibrant.dsl.replayscm.generation.worlds import Drawn, sample_world
from calibrant.dsl.replayscm.item import Problem
from calibrant.dsl.replayscm.pools.files import as_written
from calibrant.dsl.replayscm.reference import replays_exactly
from calibrant.dsl.replayscm.scm import Scm
from calibrant.dsl.replayscm.world import Panel
from calibrant.solvers.outcome import Outcome
from calibrant.solvers.replayscm.space import ModelClass, VersionSpace

EFFORT = HardeningEffort()


@dataclass(frozen=True, slots=True)
class Measurement:
    """An instance before or after hardening.

    members: SCMs of the class that fit the training worlds
    coverage: share of local predecessor patterns that the training rows show
    agreement: share of members that replay the held-out worlds
    """

    num_worlds: int
    members: int
    coverage: Fraction
    agreement: Fraction


@dataclass(frozen=True)
class Hardening:
    """A hardened instance and what it took.

    problem: the instance with the worlds added, whatever the outcome
    outcome: Found if the goal is reached, Impossible with what was exhausted, or OutOfBudget
    after: counted anew, from the instance as it is written
    least_members: what the class would have with every row added that any admissible world could show
    alternatives: what became of those that were supplied
    """

    problem: Problem
    model_class: ModelClass
    added: tuple[AddedWorld, ...]
    outcome: Outcome[Problem]
    before: Measurement
    after: Measurement
    least_members: int
    alternatives: tuple[SuppliedAlternative, ...]

    def __repr__(self) -> str:
        members = f"{self.before.members} -> {self.after.members} members"
        return f"<Hardening: {type(self.outcome).__name__}, {len(self.added)} worlds added, {members}>"

    @property
    def unseparated(self) -> tuple[str, ...]:
        """The alternatives that could not be separated, and why."""
        return tuple(
            f"alternative {alternative.number}: {alternative.why}"
            for alternative in self.alternatives
            if alternative.why
        )

    def num_added(self, objective: str) -> int:
        """Return how many worlds were added for one objective (names: audits.replayscm.hardening.objectives)."""
        return sum(step.objective == objective for step in self.added)


def with_training_worlds(problem: Problem, added: Sequence[Drawn]) -> Problem:
    """Return the instance with worlds added to its training panel; nothing else changes."""
    task, sealed = problem.task, problem.sealed
    training = Panel(task.training.variables, (*task.training.worlds, *(draw.world for draw in added)))
    environments = {**sealed.environments, **{draw.world.id: draw.environment for draw in added}}
    return replace(problem, task=replace(task, training=training), sealed=replace(sealed, environments=environments))


def extra_worlds(problem: Problem, seed: int, *, max_worlds: int = 3, draws: int = 4) -> Problem:
    """Return the paper's Extra Worlds level: worlds chosen one by one for the most new local patterns.

    Candidates are the observational world and every single-variable hard_constant or hard_assigned one, in `draws`
    environments each, without held-out signatures. Stops early when no candidate shows anything new. The paper's
    selector adds three or four worlds; what decides between them is not published. The disclosure is not looked at, so
    variants of one instance get the same worlds.
    """
    rng = Random(f"extra worlds {seed}")
    units = population(problem, rng)
    family, names = WorldFamily(units, heldout_signatures(problem)), WorldNames(problem)
    objective = open_patterns(problem)
    added: list[Drawn] = []
    for _ in range(max_worlds):
        name = names.next()
        candidates = [sample_world(name, units, chosen, rng) for chosen in family.singles() for _ in range(draws)]
        if not candidates:
            break
        best = min(candidates, key=lambda candidate: objective.count_remaining([candidate.world]))
        if objective.count_remaining([best.world]) == objective.count_remaining(()):
            break
        objective = objective.after(best.world)
        added.append(best)
    return with_training_worlds(problem, added)


def open_patterns(problem: Problem) -> OpenPatterns:
    """Return the objective of showing every local pattern that the training rows do not show yet."""
    listed = probes(problem)
    return OpenPatterns(listed, seen_patterns(problem.task.training.worlds, listed)).incomplete


def counterexample_worlds(
    problem: Problem,
    seed: int,
    *,
    alternatives: Sequence[Scm] = (),
    model_class: ModelClass | None = None,
    goal: HardeningGoal = HardeningGoal.SINGLE_MEMBER,
    complete_coverage: bool = True,
    max_targets: int = MAX_TARGETS,
    effort: HardeningEffort = EFFORT,
) -> Hardening:
    """Complete local coverage, separate the alternatives, then reduce the version space to the goal.

    model_class: `gold_class` by default; `ValueError` if gold is not a member that fits
    complete_coverage: without it the version space is reduced at once, with fewer worlds
    """
    model_class = model_class or gold_class(problem)
    _check_gold(problem, model_class)
    rng = Random(f"cex {seed}")
    family = WorldFamily(population(problem, rng), heldout_signatures(problem), max_targets=max_targets)
    possible = under_any_thresholds(family, threshold_ranges(problem))
    space = VersionSpace(problem.task, model_class)
    members = Members(space)
    selector = Selector(family, members, WorldNames(problem), rng, effort)
    if complete_coverage:
        selector.reduce(open_patterns(problem))
    fitting = FittingAlternatives(tuple(alternatives)).fitting(problem.task.training.worlds)
    # worlds for coverage may have separated some already
    selector.reduce(FittingAlternatives(FittingAlternatives(fitting).fitting(selector.worlds)))
    selector.reduce(goal_objective(goal, problem, selector.members))
    hardened = with_training_worlds(problem, [step.draw for step in selector.steps])
    after = VersionSpace(as_written(hardened).task, model_class)
    _check_gold(hardened, model_class)
    expected = selector.members.count_remaining(())
    if after.count != expected:
        raise AssertionError(f"{after.count} members of the written instance, {expected} expected")
    return Hardening(
        hardened,
        model_class,
        tuple(selector.steps),
        goal_outcome(hardened, goal, after, (family, possible), selector.spent),
        _measure(problem, space),
        _measure(hardened, after),
        members.count_remaining(possible.reachable),
        tuple(supplied_alternatives(problem, alternatives, selector.worlds, (family, possible), selector.spent)),
    )


def _check_gold(problem: Problem, model_class: ModelClass) -> None:
    gold, worlds = latent_scm(problem), problem.task.training.worlds
    if not replays_exactly(gold, worlds):
        raise ValueError(f"problem '{problem.id}': gold does not replay the training worlds")
    if any(len(function.parents) > model_class.max_parents for function in gold.local_functions.values()):
        raise ValueError(f"problem '{problem.id}': gold is not in the class {model_class.describe(problem.task)}")


def _measure(problem: Problem, space: VersionSpace) -> Measurement:
    worlds, heldout = problem.task.training.worlds, problem.sealed.heldout.worlds
    return Measurement(len(worlds), space.count, pattern_coverage(problem).share, space.agreement(heldout))
