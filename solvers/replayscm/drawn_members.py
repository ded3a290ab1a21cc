"""Members of a conditioned space, sampled as truth tables; formulas are written only for members that are shown.

Sampling is that of solvers.replayscm.member_sampling: the same seed gives the same members.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

import numpy as np
import numpy.typing as npt

from calibrant.dsl.formulas.table import TruthTable
from calibrant.dsl.replayscm.evaluator import TablePrograms, compile_tables
from calibrant.dsl.replayscm.scm import Scm
from calibrant.dsl.replayscm.world import Rows
from calibrant.solvers.acyclic.draws import draw_below, draw_weighted
from calibrant.solvers.acyclic.least import Mask
from calibrant.solvers.replayscm._kernels_worlds import count_agreeing
from calibrant.solvers.replayscm.conditioned_space import ConditionedSpace
from calibrant.solvers.replayscm.member_sampling import sample_completion, write_mechanism

U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]
ALWAYS_WRITTEN = {"not", "and", "or"}  # with these every function has a formula


@dataclass(frozen=True)
class Members:
    """Sampled members with one root set, as programs over the task's variables."""

    space: ConditionedSpace
    programs: TablePrograms

    def __len__(self) -> int:
        return len(self.programs)

    def outcomes(self, rows: Rows) -> U64:
        """Replay each member in each row: targets and roots as given, everything else computed; shape [d, r]."""
        return self.programs.replay(rows)

    def scm(self, member: int) -> Scm:
        """Return a member with formulas, of least size wherever the catalogues list them."""
        space, roots = self.space.sets.space, self.space.roots
        arrays = self.programs.order, self.programs.masks, self.programs.tables
        parts = zip(*(array[member].tolist() for array in arrays), strict=True)
        return Scm(
            roots,
            {
                space.task.variables[v]: write_mechanism(space, roots, v, mask, TruthTable(mask.bit_count(), table))
                for v, mask, table in sorted(parts)
            },
        )


def draw(space: ConditionedSpace, rng: Random, num_members: int) -> Members:
    """Sample independent members; `ValueError` from an empty space, or if a member cannot be written as formulas."""
    draws = _Draws(space, rng)
    members = [draws.member() for _ in range(num_members)]
    members_drawn = Members(space, compile_tables(members, len(space.draws.weights.endogenous)))
    # with a poorer basis some functions have no formula: write all now, so that the error comes before any use
    if not ALWAYS_WRITTEN.issubset(space.sets.space.task.grammar.operators):
        for member in range(num_members):
            members_drawn.scm(member)
    return members_drawn


class _Draws:
    """Sampler of one space; counts are cached from member to member."""

    def __init__(self, space: ConditionedSpace, rng: Random) -> None:
        self.sets = space.sets
        self.space = space
        self.rng = rng
        self._sizes: dict[int, tuple[list[tuple[tuple[int, int], int]], int]] = {}
        self._functions: dict[tuple[int, int, int], int] = {}
        self._constants_written: set[int] = set()

    def member(self) -> list[tuple[int, Mask, int]]:
        """Sample a member: variables, parent sets and table bits, parents first."""
        draws = self.space.draws
        if not draws.total:
            raise ValueError("the version space is empty")
        # one root set: consumes the random number with which `sample_members` chooses among several
        draw_below(self.rng, draws.total)
        chosen = draws.draw(self.rng)
        # ascending variables: random numbers are consumed in the order of `sample_member`
        tables = {v: self._function(v, mask) for v, mask in sorted(chosen.items())}
        return [(v, mask, tables[v]) for v, mask in chosen.items()]

    def _function(self, variable: int, mask: Mask) -> int:
        index = self.sets.set_offsets[variable][mask]
        bits = self._bits(index, mask)
        if not mask and variable not in self._constants_written:
            write_mechanism(
                self.sets.space, self.space.roots, variable, mask, TruthTable(0, bits)
            )  # or it cannot be said
            self._constants_written.add(variable)
        return bits

    def _bits(self, index: int, mask: Mask) -> int:
        care, value = self.space.cares[index], self.space.values[index]
        # no cap on size: by rejection, since the 2**64 functions of 6 variables cannot be listed
        if not len(self.sets.by_size):
            return sample_completion(self.rng, mask.bit_count(), int(care), int(value))
        if index not in self._sizes:
            self._sizes[index] = self._by_size(index, mask)
        # size first, then a number below its count: a uniform choice among equals without listing them
        options, total = self._sizes[index]
        size, number = draw_weighted(self.rng, options, total)
        key = index, size, draw_below(self.rng, number)
        if key not in self._functions:
            selected = self._agreeing(index, mask, size, key[2])[0] if mask else self._constants(index, size)[key[2]]
            self._functions[key] = int(selected)
        return self._functions[key]

    def _by_size(self, index: int, mask: Mask) -> tuple[list[tuple[tuple[int, int], int]], int]:
        """Return size and number of the agreeing functions with their weight, by size; and the total weight."""
        if mask:
            numbers = self._agreeing(index, mask, -1, 0)[1].tolist()
        else:
            numbers = [len(self._constants(index, size)) for size in range(len(self.sets.by_size))]
        by_size = zip(numbers, self.sets.by_size.tolist(), strict=True)
        options = [((size, number), number * weight) for size, (number, weight) in enumerate(by_size) if number]
        return options, sum(weight for _, weight in options)

    def _constants(self, index: int, size: int) -> list[int]:
        care, value = int(self.space.cares[index]), int(self.space.values[index])
        return [bit for bit in (0, 1) if self.sets.constants[bit] == size and (bit ^ value) & care == 0]

    def _agreeing(self, index: int, mask: Mask, size: int, number: int) -> tuple[np.uint64, I64]:
        listed, histogram = self.sets.listed, np.empty(len(self.sets.by_size), np.int64)
        care, value = self.space.cares[index], self.space.values[index]
        selected = count_agreeing(
            mask.bit_count(), care, value, listed.bits, listed.sizes, listed.prefixes, size, number, histogram
        )
        return selected, histogram
