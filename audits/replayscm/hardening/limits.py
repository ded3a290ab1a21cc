"""Outcome of hardening: whether the goal is reached, and a proof where no admissible world could help.

Impossibility is by exhaustion: the members that are left replay every row that any admissible world can show, whatever
thresholds that agree with the evidence the units have (audits.replayscm.hardening.candidate_worlds), so each of them
does in every such world what gold does. Where that rests on the thresholds that were drawn, the question is open.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from calibrant.audits.replayscm.hardening.candidate_worlds import WorldFamily
from calibrant.audits.replayscm.hardening.members import Members
from calibrant.audits.replayscm.hardening.objectives import DisagreeingMembers, Objective
from calibrant.dsl.replayscm.evaluator import fits, replays
from calibrant.dsl.replayscm.generation.worlds import Population
from calibrant.dsl.replayscm.item import Problem
from calibrant.dsl.replayscm.scm import Scm
from calibrant.dsl.replayscm.world import World
from calibrant.solvers.outcome import Found, Impossible, Outcome, OutOfBudget
from calibrant.solvers.replayscm.space import VersionSpace

MAX_ROWS = 5_000_000  # up to which it is counted what would be left if more worlds were admissible
MIDDLE_THRESHOLD = 0.4  # some published level lies below it and some above


class HardeningGoal(Enum):
    """Goal of `counterexample_worlds` for the version space."""

    SINGLE_MEMBER = "a single member"
    HELDOUT_AGREEMENT = "that all members replay the held-out worlds"


def goal_objective(goal: HardeningGoal, problem: Problem, members: Members) -> Objective:
    """Return what has to be reduced: to 1 member, or to 0 members that differ on held-out worlds."""
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

    families: with the thresholds that were drawn, and with all that agree with the evidence
    spent: budgets that ended the work, in words
    """
    family, possible = families
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
    min_possible = objective.count_remaining(possible.reachable)
    if num_remaining > min_possible:
        with_drawn = "no world helps units with the thresholds that were drawn"
        with_others = f"with others that agree with the evidence {min_possible} could be left"
        return OutOfBudget(
            f"{num_remaining} {objective.name} are left; {with_drawn}, {with_others}: try another seed", min_possible
        )
    described = space.model_class.describe(problem.task)
    num_rows = sum(world.num_rows for world in possible.reachable)
    return Impossible(
        f"{num_remaining} {objective.name} of the class ({described}) agree with gold in each of the {num_rows} rows "
        "that these units can show, whatever their thresholds, under hard interventions on at most "
        f"{family.max_targets} targets without held-out signatures. {_describe_relaxations(objective, possible)}"
    )


def _describe_relaxations(objective: Objective, possible: WorldFamily) -> str:
    """Describe how many would remain if more worlds were admissible: which restriction is to blame."""
    population, targets = possible.population, possible.max_targets
    anybody = Population(population.model, ("any",), dict.fromkeys(population.model.roots, (MIDDLE_THRESHOLD,)))
    families = {
        "any root context": WorldFamily(anybody, possible.excluded, max_targets=targets),
        "held-out signatures": possible.allowing(excluded=()),
        f"{targets + 1} targets": possible.allowing(more_targets=1),
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
    """Fate of an alternative.

    number: from 1, as supplied; world: the first added one that it does not replay
    why: it is not separated; "" if it is, and if it did not replay the training worlds to begin with
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
    """Yield every alternative, in the order supplied.

    problem: before hardening; the others as for `goal_outcome`
    """
    for number, model in enumerate(alternatives, 1):
        if not replays(model, problem.task.training):
            yield SuppliedAlternative(number, "", "")
            continue
        world = next((world.id for world in added if not fits(model, [world])), "")
        yield SuppliedAlternative(number, world, "" if world else _explain_unseparated(model, families, spent))


def _explain_unseparated(model: Scm, families: tuple[WorldFamily, WorldFamily], spent: Sequence[str]) -> str:
    family, possible = families
    if fits(model, possible.reachable):
        return "agrees with gold in every row that an admissible world can show"
    if fits(model, family.reachable):
        return "agrees with gold in every row that units with the drawn thresholds can show; others could separate it"
    return "; ".join(spent)
