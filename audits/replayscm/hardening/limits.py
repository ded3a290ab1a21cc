"""Whether hardening got what it wanted, and a proof where no admissible world could help.

Impossibility is by exhaustion: the members that are left replay every row that any admissible world can show
(audits.replayscm.hardening.candidate_worlds), so each of them does in every such world what gold does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from audits.replayscm.hardening.candidate_worlds import WorldFamily
from audits.replayscm.hardening.objectives import DisagreeingMembers, Members, Objective
from dsl.replayscm.problem import Problem
from dsl.replayscm.reference import replays_exactly
from dsl.replayscm.sampling.worlds import Population
from dsl.replayscm.scm import Scm
from dsl.replayscm.world import World
from solvers.outcome import Found, Impossible, Outcome, OutOfBudget
from solvers.replayscm.version_space import VersionSpace

MIDDLE_THRESHOLD = 0.4  # some published level lies below it and some above


class Goal(Enum):
    """What `cex` wants of the version space."""

    SINGLE_MEMBER = "a single member"
    HELDOUT_AGREEMENT = "that all members replay the held-out worlds"


def goal_objective(goal: Goal, problem: Problem, space: VersionSpace) -> Objective:
    """What has to be reduced: to 1 member, or to 0 members that differ on held-out worlds."""
    if goal is Goal.SINGLE_MEMBER:
        return Members(space)
    return DisagreeingMembers(space, problem.sealed.heldout.worlds)


def goal_outcome(problem: Problem, goal: Goal, space: VersionSpace, family: WorldFamily) -> Outcome[Problem]:
    """Whether the goal is reached, and if not, whether any admissible world could still help."""
    objective = goal_objective(goal, problem, space)
    wanted = 1 if goal is Goal.SINGLE_MEMBER else 0
    left = objective.left(())
    if left == wanted:
        return Found(problem)
    least = objective.left(family.reachable)
    if left > least:
        return OutOfBudget(f"{left} {objective.name} are left; other worlds could still leave {least}", least)
    described = space.model_class.describe(problem.task)
    return Impossible(
        f"{left} {objective.name} of the class ({described}) agree with gold in each of the "
        f"{sum(world.num_rows for world in family.reachable)} rows that these units can show under hard interventions "
        f"on at most {family.max_targets} targets without held-out signatures. {_relaxed(objective, family)}"
    )


def _relaxed(objective: Objective, family: WorldFamily) -> str:
    """How many would be left if more worlds were admissible: which restriction is to blame."""
    population, targets = family.population, family.max_targets
    anybody = Population(population.model, ("any",), dict.fromkeys(population.model.roots, (MIDDLE_THRESHOLD,)))
    families = {
        "any root context": WorldFamily(anybody, family.excluded, max_targets=targets),
        "held-out signatures": WorldFamily(population, (), max_targets=targets),
        f"{targets + 1} targets": WorldFamily(population, family.excluded, max_targets=targets + 1),
    }
    left = ", ".join(f"{objective.left(wider.reachable)} with {what}" for what, wider in families.items())
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
    problem: Problem, alternatives: Sequence[Scm], added: Sequence[World], family: WorldFamily
) -> Iterator[SuppliedAlternative]:
    """Every alternative, in the order supplied. problem: before hardening"""
    for number, model in enumerate(alternatives, 1):
        if not replays_exactly(model, problem.task.training.worlds):
            yield SuppliedAlternative(number, "", "")
            continue
        world = next((world.id for world in added if not replays_exactly(model, [world])), "")
        yield SuppliedAlternative(number, world, "" if world else _unseparated(model, family))


def _unseparated(model: Scm, family: WorldFamily) -> str:
    if replays_exactly(model, family.reachable):
        return "agrees with gold in every row that an admissible world can show"
    return "the budget of worlds was spent"
