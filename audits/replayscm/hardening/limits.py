"""Whether hardening got what it wanted, and a proof where no admissible world could help.

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
from calibrant.dsl.replayscm.problem import Problem
from calibrant.dsl.replayscm.reference import replays_exactly
from calibrant.dsl.replayscm.sampling.worlds import Population
from calibrant.dsl.replayscm.scm import Scm
from calibrant.dsl.replayscm.world import World
from calibrant.solvers.outcome import Found, Impossible, Outcome, OutOfBudget
from calibrant.solvers.replayscm.version_space import VersionSpace

MOST_ROWS = 5_000_000  # up to which it is counted what would be left if more worlds were admissible
MIDDLE_THRESHOLD = 0.4  # some published level lies below it and some above


class HardeningGoal(Enum):
    """What `counterexample_worlds` wants of the version space."""

    SINGLE_MEMBER = "a single member"
    HELDOUT_AGREEMENT = "that all members replay the held-out worlds"


def goal_objective(goal: HardeningGoal, problem: Problem, members: Members) -> Objective:
    """Return what has to be reduced: to 1 member, or to 0 members that differ on held-out worlds."""
    if goal is HardeningGoal.SINGLE_MEMBER:
        return members
    return DisagreeingMembers(members, members.given(problem.sealed.heldout.worlds))


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
    wanted = 1 if goal is HardeningGoal.SINGLE_MEMBER else 0
    left = objective.left(())
    if left == wanted:
        return Found(problem)
    least = objective.left(family.reachable)
    if left > least:
        said = "; ".join((f"{left} {objective.name} are left", f"other worlds could still leave {least}", *spent))
        return OutOfBudget(said, least)
    ever = objective.left(possible.reachable)
    if left > ever:
        drawn = "no world helps units with the thresholds that were drawn"
        other = f"with others that agree with the evidence {ever} could be left"
        return OutOfBudget(f"{left} {objective.name} are left; {drawn}, {other}: try another seed", ever)
    described = space.model_class.describe(problem.task)
    num_rows = sum(world.num_rows for world in possible.reachable)
    return Impossible(
        f"{left} {objective.name} of the class ({described}) agree with gold in each of the {num_rows} rows that these "
        f"units can show, whatever their thresholds, under hard interventions on at most {family.max_targets} targets "
        f"without held-out signatures. {_relaxed(objective, possible)}"
    )


def _relaxed(objective: Objective, possible: WorldFamily) -> str:
    """Return how many would be left if more worlds were admissible: which restriction is to blame."""
    population, targets = possible.population, possible.max_targets
    anybody = Population(population.model, ("any",), dict.fromkeys(population.model.roots, (MIDDLE_THRESHOLD,)))
    families = {
        "any root context": WorldFamily(anybody, possible.excluded, max_targets=targets),
        "held-out signatures": possible.allowing(excluded=()),
        f"{targets + 1} targets": possible.allowing(more_targets=1),
    }
    counted = {what: wider for what, wider in families.items() if wider.most_rows <= MOST_ROWS}
    left = ", ".join(f"{objective.left(wider.reachable)} with {what}" for what, wider in counted.items())
    if len(counted) < len(families):
        left += f"; not counted, for over {MOST_ROWS:,} rows: {', '.join(w for w in families if w not in counted)}"
    return f"Were more admissible, there would be left: {left}"


@dataclass(frozen=True, slots=True)
class SuppliedAlternative:
    """What became of an alternative. number: from 1, as supplied; world: the first added one that it does not replay

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
    """Every alternative, in the order supplied. problem: before hardening; the others as for `goal_outcome`"""
    for number, model in enumerate(alternatives, 1):
        if not replays_exactly(model, problem.task.training.worlds):
            yield SuppliedAlternative(number, "", "")
            continue
        world = next((world.id for world in added if not replays_exactly(model, [world])), "")
        yield SuppliedAlternative(number, world, "" if world else _unseparated(model, families, spent))


def _unseparated(model: Scm, families: tuple[WorldFamily, WorldFamily], spent: Sequence[str]) -> str:
    family, possible = families
    if replays_exactly(model, possible.reachable):
        return "agrees with gold in every row that an admissible world can show"
    if replays_exactly(model, family.reachable):
        return "agrees with gold in every row that units with the drawn thresholds can show; others could separate it"
    return "; ".join(spent)
