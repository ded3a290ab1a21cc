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
from calibrant.dsl.replayscm.generation.strata import ASSIGNMENT_BIASES
from calibrant.dsl.replayscm.item import Task

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
        self._sample_roots(random)
        self._replay()
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

    def _sample_roots(self, random: np.random.Generator) -> None:
        """Give the roots of each member columns that they showed in training."""
        indices = {name: index for index, name in enumerate(self.task.variables)}
        sampled = self.values.copy()
        worlds = sampled.reshape(*sampled.shape[:2], self.num_worlds, self.num_rows)
        for place, member in enumerate(self.members):
            for root in member.roots:
                columns = self._shown[indices[root]]
                worlds[indices[root], place] = columns[random.integers(len(columns), size=self.num_worlds)]
        np.copyto(self.values, sampled, where=self.free)

    def _replay(self) -> None:
        """Evaluate the first mechanism of every member's order at once, then the second, and so on.

        A call for each mechanism of each of the 256 members took twice as long.
        """
        orders = [member.order() for member in self.members]
        for step in range(max(map(len, orders), default=0)):
            places = np.array([place for place, order in enumerate(orders) if step < len(order)])
            variables = np.array([orders[place][step] for place in places])
            mechanisms = [self.members[place].mechanisms[orders[place][step]] for place in places]
            rows = np.zeros((len(places), self.values.shape[2]), np.uint8)
            parents = [_indices(mechanism.parents) for mechanism in mechanisms]
            for bit in range(max(map(len, parents))):
                having = np.array([number for number, of in enumerate(parents) if bit < len(of)])
                sources = np.array([parents[number][bit] for number in having])
                rows[having] |= self.values[sources, places[having]] << np.uint8(bit)
            tables = np.stack([_table(mechanism.bits) for mechanism in mechanisms])
            columns = np.take_along_axis(tables, rows, axis=1)
            free = self.free[variables, places]
            self.values[variables, places] = np.where(free, columns, self.values[variables, places])

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
    for bit, parent in enumerate(_indices(mechanism.parents)):
        rows |= values[parent] << np.uint8(bit)
    return _table(mechanism.bits)[rows]


@lru_cache(maxsize=4096)
def _indices(parents: int) -> tuple[int, ...]:
    """Return the variables of a mask, lowest first."""
    return tuple(index for index in range(parents.bit_length()) if parents >> index & 1)


@lru_cache(maxsize=4096)
def _table(bits: int) -> U8:
    return np.unpackbits(np.frombuffer(bits.to_bytes(4, "little"), np.uint8), bitorder="little")
