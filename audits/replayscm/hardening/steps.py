"""The greedy loop of hardening: add the best of seeded proposals until an objective is as small as it can get."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from calibrant.audits.replayscm.hardening.candidate_worlds import Targets, WorldFamily
from calibrant.audits.replayscm.hardening.members import Members
from calibrant.audits.replayscm.hardening.objectives import ChargedObjective, Objective
from calibrant.audits.replayscm.hardening.world_design import designed_world
from calibrant.dsl.replayscm.generation.worlds import Drawn
from calibrant.dsl.replayscm.item import Problem
from calibrant.dsl.replayscm.world import World
from calibrant.solvers.budget import Budget, BudgetSpent

DESIGNS = 2  # worlds designed in a step
TARGET_SETS = 48  # whose rows are looked at before a design; all of them where none of these helps
MAX_WEIGHED = 220_000_000
MAX_TIES = 8  # equally good proposals between which the members they leave decide


@dataclass(frozen=True, slots=True)
class HardeningEffort:
    """Budgets: worlds added in all, random proposals a step, and what is weighed for one objective.

    max_weighed: worlds that are tried for the objective, each times what it is weighed by (`Objective.breadth`): for
        members the parent sets that are left, which are tens of thousands at 40 variables of unknown order
    """

    max_worlds: int = 100
    proposals: int = 48
    max_weighed: int = MAX_WEIGHED


@dataclass(frozen=True, slots=True)
class AddedWorld:
    """One step: what it reduced, from how many to how many, and how many members the class has afterwards."""

    draw: Drawn
    objective: str
    before: int
    after: int
    members: int


class WorldNames:
    """train_hard_01, ... as far as they are free."""

    def __init__(self, problem: Problem) -> None:
        self._taken = {world.id for world in problem.worlds}
        self._number = 0

    def next(self) -> str:
        self._number += 1
        name = f"train_hard_{self._number:02d}"
        return self.next() if name in self._taken else name


class Selector:
    """Adds worlds of a family to an instance, one after another.

    members: the version space with the worlds chosen so far
    steps: what was added and why
    spent: which budgets ended the work on an objective before it was as small as it can get
    """

    def __init__(
        self, family: WorldFamily, members: Members, names: WorldNames, rng: Random, effort: HardeningEffort
    ) -> None:
        self.family = family
        self.members = members
        self.steps: list[AddedWorld] = []
        self.spent: list[str] = []
        self._names = names
        self._rng = rng
        self._effort = effort

    @property
    def worlds(self) -> tuple[World, ...]:
        return tuple(step.draw.world for step in self.steps)

    def reduce(self, objective: Objective) -> None:
        """Add worlds until no admissible world could remove anything more, or a budget is spent.

        The objective already knows the worlds chosen before.
        """
        min_reachable = objective.count_remaining(self.family.reachable)
        num_remaining = objective.count_remaining(())
        budget = Budget(self._effort.max_weighed)
        weighed: Objective = ChargedObjective(objective, budget)
        while num_remaining > min_reachable:
            if len(self.steps) >= self._effort.max_worlds:
                self.spent.append(f"the budget of {self._effort.max_worlds:,} added worlds was spent")
                return
            try:
                draw, after = self._best(weighed, num_remaining)
            except BudgetSpent as spent:
                limit = f"{self._effort.max_weighed:,} for fewer {objective.name}"
                by = "parent sets, patterns or mechanisms"
                charged = f"the budget of {limit} was spent (worlds tried, times the {by} that weigh each)"
                self.spent.append(charged if budget.exhausted else str(spent))
                return
            self.members, weighed = self.members.after(draw.world), weighed.after(draw.world)
            self.steps.append(AddedWorld(draw, objective.name, num_remaining, after, self.members.count_remaining(())))
            num_remaining = after

    def _best(self, objective: Objective, num_remaining: int) -> tuple[Drawn, int]:
        name = self._names.next()
        proposals = [self.family.random_world(name, self._rng) for _ in range(self._effort.proposals)]
        proposals += self._design_worlds(name, objective, num_remaining)
        ranked = objective.count_remaining_each([[draw.world] for draw in proposals])
        fewest = min(ranked)
        ties = [draw for draw, after in zip(proposals, ranked, strict=True) if after == fewest][:MAX_TIES]
        members = self.members.count_remaining_each([[draw.world] for draw in ties]) if len(ties) > 1 else [0]
        return ties[members.index(min(members))], fewest

    def _design_worlds(self, name: str, objective: Objective, num_remaining: int) -> Iterator[Drawn]:
        """Yield worlds on the targets whose rows, all together, would leave least; at least one of them leaves less."""
        every = self.family.target_sets
        chosen = self._rng.sample(every, min(TARGET_SETS, len(every)))
        potential = self._potential(objective, chosen)
        if min(potential) == num_remaining:
            chosen, potential = list(every), self._potential(objective, every)
        ranked = sorted(range(len(chosen)), key=potential.__getitem__)
        for index in ranked[:DESIGNS]:
            draw = designed_world(self.family, name, chosen[index], objective, self._rng)
            if draw is not None:
                yield draw

    def _potential(self, objective: Objective, target_sets: list[Targets] | tuple[Targets, ...]) -> list[int]:
        return objective.count_remaining_each([self.family.rows(targets) for targets in target_sets])
