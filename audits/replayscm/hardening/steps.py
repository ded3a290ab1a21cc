"""The greedy loop of hardening: add the best of seeded proposals until an objective is as small as it can get."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from audits.replayscm.hardening.candidate_worlds import Targets, WorldFamily
from audits.replayscm.hardening.objectives import Members, Objective
from audits.replayscm.hardening.world_design import designed_world
from dsl.replayscm.problem import Problem
from dsl.replayscm.sampling.worlds import Drawn
from dsl.replayscm.world import World

DESIGNS = 2  # worlds designed in a step
TARGET_SETS = 48  # whose rows are looked at before a design; all of them where none of these helps
MAX_TIES = 8  # equally good proposals between which the members they leave decide


@dataclass(frozen=True, slots=True)
class HardeningEffort:
    """Budgets: worlds added in all, and random proposals a step."""

    max_worlds: int = 100
    proposals: int = 48


@dataclass(frozen=True, slots=True)
class AddedWorld:
    """One step: what it reduced, from how many to how many, and how many members the class has afterwards."""

    drawn: Drawn
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
    """

    def __init__(
        self, family: WorldFamily, members: Members, names: WorldNames, rng: Random, effort: HardeningEffort
    ) -> None:
        self.family = family
        self.members = members
        self.steps: list[AddedWorld] = []
        self._names = names
        self._rng = rng
        self._effort = effort

    @property
    def worlds(self) -> tuple[World, ...]:
        return tuple(step.drawn.world for step in self.steps)

    def reduce(self, objective: Objective) -> None:
        """Until nothing is left that an admissible world could remove, or the budget of worlds is spent.

        The objective already knows the worlds chosen before.
        """
        least = objective.left(self.family.reachable)
        left = objective.left(())
        while left > least and len(self.steps) < self._effort.max_worlds:
            drawn, after = self._best(objective, left)
            self.members, objective = self.members.after(drawn.world), objective.after(drawn.world)
            self.steps.append(AddedWorld(drawn, objective.name, left, after, self.members.left(())))
            left = after

    def _best(self, objective: Objective, left: int) -> tuple[Drawn, int]:
        name = self._names.next()
        proposals = [self.family.random_world(name, self._rng) for _ in range(self._effort.proposals)]
        proposals += self._designed(name, objective, left)
        ranked = [objective.left([drawn.world]) for drawn in proposals]
        least = min(ranked)
        ties = [drawn for drawn, after in zip(proposals, ranked, strict=True) if after == least][:MAX_TIES]
        chosen = ties[0] if len(ties) == 1 else min(ties, key=lambda drawn: self.members.left([drawn.world]))
        return chosen, least

    def _designed(self, name: str, objective: Objective, left: int) -> Iterator[Drawn]:
        """Worlds on the targets whose rows, all together, would leave least; at least one of them leaves less."""
        every = self.family.target_sets
        chosen = self._rng.sample(every, min(TARGET_SETS, len(every)))
        potential = self._potential(objective, chosen)
        if min(potential) == left:
            chosen, potential = list(every), self._potential(objective, every)
        ranked = sorted(range(len(chosen)), key=potential.__getitem__)
        for index in ranked[:DESIGNS]:
            drawn = designed_world(self.family, name, chosen[index], objective, self._rng)
            if drawn is not None:
                yield drawn

    def _potential(self, objective: Objective, target_sets: list[Targets] | tuple[Targets, ...]) -> list[int]:
        return [objective.left(self.family.rows(targets)) for targets in target_sets]
