"""What members of a version space do in given rows.

A row fixes a context, the values of its targets and of the roots; what a member computes for the other variables is its
outcome there. Rows with the same context are one, because no member tells them apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from dsl.replayscm.replay import Candidate, mismatches
from dsl.replayscm.scm import Scm
from dsl.replayscm.world import Panel, World
from solvers.replayscm.version_space import VersionSpace

Outcome: TypeAlias = tuple[int, ...]
"""The values of all variables in one row, in column order."""


@dataclass(frozen=True, slots=True)
class Contexts:
    """The members with one root set, and the rows as worlds of one row, one for each distinct context."""

    space: VersionSpace
    rows: tuple[World, ...]

    @property
    def panel(self) -> Panel:
        return Panel(self.space.task.variables, self.rows)


def distinct_contexts(space: VersionSpace, worlds: Sequence[World], roots: Sequence[str]) -> Contexts:
    """The rows of the worlds for members with these roots; rows in which nothing is computed are left out."""
    if space.task.disclosure.roots is None:
        space = space.given_roots(roots)
    rows: dict[object, World] = {}
    for world in worlds:
        targets = world.intervention.targets
        given = [v for v in world.variables if v in targets or v in roots]
        if len(given) < len(world.variables):
            for index in range(world.num_rows):
                row = world.row(index)
                context = (targets, tuple(row[v] for v in given))
                rows.setdefault(context, replace(world, units=("row",), columns=tuple(row.values())))
    return Contexts(space, tuple(rows.values()))


def outcomes(model: Scm, panel: Panel) -> list[Outcome]:
    """What a model does in each row: targets and roots as they are, everything else computed."""
    wrong = mismatches(Candidate(model.mechanisms, model.order), panel)
    columns = [panel.columns[v] ^ wrong.get(v, 0) for v in panel.variables]
    return [tuple(column >> row & 1 for column in columns) for row in range(panel.num_rows)]


def simulated(model: Scm, world: World) -> World:
    """The world as the model makes it: targets and roots as they are, everything else computed."""
    panel = Panel(world.variables, (world,))
    wrong = mismatches(Candidate(model.mechanisms, model.order), panel)
    return replace(world, columns=tuple(panel.columns[v] ^ wrong.get(v, 0) for v in world.variables))


def showing(rows: Sequence[World], table: Sequence[Outcome]) -> tuple[World, ...]:
    """The rows with these outcomes, as evidence."""
    return tuple(replace(row, columns=outcome) for row, outcome in zip(rows, table, strict=True))
