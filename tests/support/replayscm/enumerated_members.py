"""All members of small version spaces with what they do in given worlds, by enumeration and a row at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from calibrant.dsl.replayscm.item import Task
from calibrant.dsl.replayscm.world import World
from tests.support.replayscm.brute_force import Member, families, members, root_hypotheses

Table: TypeAlias = tuple[tuple[int, ...], ...]
"""Per row of every world the values of all variables."""


def all_members(task: Task, most: int, max_size: int | None = None) -> list[Member]:
    return list(each_member(task, most, max_size))


def each_member(task: Task, most: int, max_size: int | None = None) -> Iterator[Member]:
    for family in families(task, most, root_hypotheses(task), max_size):
        yield from members(family)


def does(member: Member, worlds: Sequence[World]) -> Table:
    """Targets and the member's own roots as they are in the row, everything else computed."""
    _, mechanisms = member
    waiting = {v: (parents, bits) for v, parents, bits in mechanisms}
    order = []
    while waiting:
        variable = next(v for v, (parents, _) in waiting.items() if not set(parents) & waiting.keys())
        order.append((variable, *waiting.pop(variable)))
    table = []
    for world in worlds:
        targets = world.intervention.targets
        computed = [step for step in order if step[0] not in targets]
        for r in range(len(world.units)):
            values = {v: column >> r & 1 for v, column in zip(world.variables, world.columns, strict=True)}
            for variable, parents, bits in computed:
                row = 0
                for parent in reversed(parents):
                    row = row << 1 | values[parent]
                values[variable] = bits >> row & 1
            table.append(tuple(values.values()))
    return tuple(table)


def observed(worlds: Sequence[World]) -> Table:
    return tuple(
        tuple(column >> r & 1 for column in world.columns) for world in worlds for r in range(len(world.units))
    )
