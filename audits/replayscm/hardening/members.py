"""Counts of the members of a version space after further worlds, for many worlds at once and updated incrementally.

Once a world is added, the parent sets that it excludes are dropped, so that counts get cheaper with every world.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import islice

import numpy as np

from calibrant.dsl.replayscm.world import World, pack_rows
from calibrant.solvers.replayscm.conditioned_space import ConditionedSpace, ParentSets
from calibrant.solvers.replayscm.space import VersionSpace

AT_ONCE = 4_000_000  # entries of the array of weights, options times parent sets: 32 MB
# from so many rows of added worlds on, excluded parent sets are dropped before the members are counted
MANY_ROWS = 1_000


class Members:
    """Members of the version space; gold is one of them."""

    name = "members"

    def __init__(
        self, space: VersionSpace, *, sets: ParentSets | None = None, roots: Iterable[tuple[str, ...]] | None = None
    ) -> None:
        """Keep the space; `sets` and `roots` are its parent sets and possible root sets where they are known.

        sets: parent sets conditioned on the worlds of `space`; None: they are listed from it
        roots: root sets that may have members; None: those that the space counts
        """
        self.space = space
        self._sets = sets or ParentSets(space, None)
        self._roots = roots

    @cached_property
    def _parts(self) -> tuple[ConditionedSpace, ...]:
        """The members by root set; root sets without any are left out."""
        able = self.space.counts_by_roots if self._roots is None else self._roots
        parts = (ConditionedSpace(self._sets, roots) for roots in able)
        return tuple(part for part in parts if part.mass)

    @property
    def breadth(self) -> int:
        """Cost of one count: the number of parent sets times the number of root sets."""
        return len(self._sets.masks) * len(self._parts)

    def count_remaining(self, worlds: Sequence[World]) -> int:
        if not worlds:
            return sum(part.mass for part in self._parts)
        if sum(world.num_rows for world in worlds) >= MANY_ROWS:
            return self.restrict_to(worlds).count_remaining(())
        return self.count_remaining_each([worlds])[0]

    def count_remaining_each(self, options: Sequence[Sequence[World]]) -> list[int]:
        """Count the remaining members for each option."""
        waiting, number = iter(options), max(1, AT_ONCE // max(1, len(self._sets.masks)))
        counts: list[int] = []
        while batch := list(islice(waiting, number)):
            counts += self._count_batch(batch)
        return counts

    def _count_batch(self, options: Sequence[Sequence[World]]) -> list[int]:
        rows = pack_rows([world for worlds in options for world in worlds], self.space.task.variables)
        spans = np.cumsum([0, *(sum(world.num_rows for world in worlds) for worlds in options)])
        # [options, parent sets]: how many functions of each set agree with the evidence and the option's rows
        # (cares, values: partial truth tables that the evidence fixes)
        weights = self._sets.weights(self._sets.cares, self._sets.values, rows, spans)
        # many options exclude the same functions: equal rows of weights are counted once, by their first occurrence
        first = {row.tobytes(): place for place, row in reversed(list(enumerate(weights)))}
        different = weights[list(first.values())]
        counts = [sum(masses) for masses in zip(*(part.totals(different) for part in self._parts), strict=True)]
        # without any part nothing is summed: all counts are 0
        count_of = dict(zip(first, counts or [0] * len(first), strict=True))
        return [count_of[row.tobytes()] for row in weights]

    def after(self, world: World) -> Members:
        return self.restrict_to([world])

    def restrict_to(self, worlds: Sequence[World]) -> Members:
        """Return the members that replay these worlds as well."""
        sets = self._sets.condition(pack_rows(worlds, self.space.task.variables))
        return Members(self.space.with_worlds(worlds), sets=sets, roots=[part.roots for part in self._parts])
