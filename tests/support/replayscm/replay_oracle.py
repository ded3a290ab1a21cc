"""What replay has to find, counted cell by cell with the recursive oracle; nothing here is packed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from calibrant.dsl.replayscm.reference import Cell
from calibrant.dsl.replayscm.scm import Scm
from calibrant.dsl.replayscm.world import World
from tests.support.replayscm.oracles import observed_bit, replay_world_row


@dataclass(frozen=True)
class Counts:
    """What the oracle finds by looking at every cell; in `wrong` the wrong cells in the order of reporting."""

    cells: int
    worlds: int
    exact_worlds: int
    wrong: tuple[Cell, ...]


def counts(model: Scm, worlds: Sequence[World], order: Sequence[str]) -> Counts:
    """Every cell of every row by the recursive oracle; worlds without scored cells are not counted."""
    cells = num_worlds = exact = 0
    wrong: list[Cell] = []
    for world in worlds:
        targets = {*world.intervention.constants, *world.intervention.assigned}
        scored = [v for v in order if v not in targets]
        before = len(wrong)
        for r in range(len(world.units)):
            values = replay_world_row(model, world, r)
            found = [Cell(world.id, r, v, values[v], observed_bit(world, r, v)) for v in scored]
            wrong += [cell for cell in found if cell.predicted != cell.expected]
        cells += len(scored) * len(world.units)
        if scored and world.units:
            num_worlds += 1
            exact += len(wrong) == before
    return Counts(cells, num_worlds, exact, tuple(wrong))
