"""Held-out worlds as a member would show them, imagined, and who of the others replays them.

The held-out worlds of a task are hidden, but the generator draws them in a known way: one to three targets, uniform
over all variables, row by row or constant (paper, Table B.1). A root shows a column that it showed in some training
world. An answer is held-out exact iff every mechanism agrees with the truth's worlds in the rows where its
variable is no target; so a mechanism's agreement is one bit for each imagined truth, and an answer's the conjunction.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from random import Random

import numpy as np
import numpy.typing as npt

from calibrant.baselines.replayscm.posterior.local import Local
from calibrant.baselines.replayscm.posterior.posterior import Member
from calibrant.dsl.replayscm.problem import Task
from calibrant.dsl.replayscm.sampling.strata import ASSIGNMENT_BIASES

NUM_TARGETS = (0.05, 0.5, 0.45)  # chance of 1, 2 and 3 targets, about the mean of the published configurations
ASSIGNED = 0.8  # chance that targets are set row by row

U8 = npt.NDArray[np.uint8]


class ImaginedWorlds:
    """The held-out worlds of many members, side by side.

    values: [variables, members, rows]; free: [variables, members, rows] whether the variable is no target there
    """

    def __init__(self, task: Task, members: Sequence[Member], rng: Random) -> None:
        self.task = task
        self.members = members
        self.num_rows = task.training.worlds[0].num_rows
        self.num_worlds = max(1, task.num_heldout)
        shape = len(task.variables), len(members), self.num_worlds * self.num_rows
        self.values = np.zeros(shape, np.uint8)
        self.free = np.ones(shape, np.bool_)
        random = np.random.default_rng(rng.getrandbits(64))
        self._shown = [self._columns(variable) for variable in range(len(task.variables))]
        self._intervene(random)
        for place, member in enumerate(members):
            self._replay(place, member, random)
        self._agreed: dict[tuple[int, Local], int] = {}
        self._with_roots: Counter[tuple[str, ...]] = Counter()
        for place, member in enumerate(members):
            self._with_roots[member.roots] += 1 << place

    def _columns(self, variable: int) -> U8:
        """Return the columns that a variable shows in the training worlds that leave it alone, a world a row."""
        name = self.task.variables[variable]
        worlds = [world for world in self.task.training.worlds if name not in world.intervention.targets]
        rows = [[world.column(name) >> row % world.num_rows & 1 for row in range(self.num_rows)] for world in worlds]
        return np.array(rows or [[0] * self.num_rows], np.uint8)

    def _intervene(self, random: np.random.Generator) -> None:
        """Choose targets and their values; everything else is overwritten by replay."""
        num_variables, num_members, _ = self.values.shape
        shape = num_members, self.num_worlds
        ranks = random.random((num_variables, *shape)).argsort(axis=0).argsort(axis=0)
        numbers = random.choice((1, 2, 3), shape, p=NUM_TARGETS)
        targets = np.repeat(ranks < numbers, self.num_rows, axis=2)
        biases = np.repeat(random.choice(ASSIGNMENT_BIASES, shape), self.num_rows, axis=1)
        by_row = random.random(self.values.shape) < biases
        constant = np.repeat(random.random((num_variables, *shape)) < 0.5, self.num_rows, axis=2)
        assigned = np.repeat(random.random(shape) < ASSIGNED, self.num_rows, axis=1)
        self.free = ~targets
        self.values[targets] = np.where(assigned, by_row, constant)[targets]

    def _replay(self, place: int, member: Member, random: np.random.Generator) -> None:
        for root in member.roots:
            index = self.task.variables.index(root)
            columns = self._shown[index]
            sampled = columns[random.integers(len(columns), size=self.num_worlds)].reshape(-1)
            self._fill(place, index, sampled)
        for variable in member.order():
            mechanism = member.mechanisms[variable]
            self._fill(place, variable, _evaluate(mechanism, self.values[:, place, :]))

    def _fill(self, place: int, variable: int, column: U8) -> None:
        free = self.free[variable, place]
        self.values[variable, place, free] = column[free]

    def agreement(self, variable: int, mechanism: Local) -> int:
        """Bit i: the mechanism agrees with all of member i's worlds."""
        key = variable, mechanism
        if key not in self._agreed:
            wrong = (_evaluate(mechanism, self.values) != self.values[variable]) & self.free[variable]
            packed = np.packbits(~wrong.any(axis=1), bitorder="little")
            self._agreed[key] = int.from_bytes(packed.tobytes(), "little")
        return self._agreed[key]

    def same_roots(self, roots: tuple[str, ...]) -> int:
        """Bit i: member i has these roots."""
        return self._with_roots[roots]


def _evaluate(mechanism: Local, values: U8) -> U8:
    """Return the mechanism's column over rows of values, whose first axis is the variable."""
    rows: U8 = np.zeros(values.shape[1:], np.uint8)
    place, parents = 0, mechanism.parents
    while parents:
        lowest = parents & -parents
        rows |= values[lowest.bit_length() - 1] << np.uint8(place)
        place, parents = place + 1, parents ^ lowest
    return _table(mechanism.bits)[rows]


@lru_cache(maxsize=4096)
def _table(bits: int) -> U8:
    return np.unpackbits(np.frombuffer(bits.to_bytes(4, "little"), np.uint8), bitorder="little")
