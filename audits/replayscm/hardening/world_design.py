"""Worlds designed row by row: of what the targets of an intervention can show, the rows that leave least.

First the one row that leaves least when shown alone, with a unit and an environment in which it occurs; then every
other unit in turn takes the values of the targets that leave least next to the rows before. What is left never grows
with more rows, so the world leaves at most what its first row leaves.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from random import Random
from typing import NamedTuple

from calibrant.audits.replayscm.hardening.candidate_worlds import Targets, WorldFamily
from calibrant.audits.replayscm.hardening.objectives import Objective
from calibrant.dsl.replayscm.generation.strata import ENVIRONMENT_LEVELS
from calibrant.dsl.replayscm.generation.worlds import Drawn, Environment
from calibrant.dsl.replayscm.world import Column, Intervention, World


class _Start(NamedTuple):
    """The row to begin with."""

    intervention: Intervention
    unit: int
    environment: Environment
    row: Mapping[str, int]


def designed_world(
    family: WorldFamily, world_id: str, targets: Targets, objective: Objective, rng: Random
) -> Drawn | None:
    """Return a world on exactly these targets; None where none of them is admissible. Ties are broken at random."""
    start = _best_row(family, targets, objective, rng)
    if start is None:
        return None
    assigned = dict.fromkeys(start.intervention.assigned, 0)
    num_units = len(family.population.units)

    def simulate(columns: Mapping[str, Column]) -> World:
        return family.population.simulate(world_id, start.intervention, start.environment, columns)

    order = [start.unit, *(unit for unit in range(num_units) if unit != start.unit)]
    for place, unit in enumerate(order if assigned else ()):
        done = order[: place + 1]
        options = [tuple(start.row[t] for t in assigned)] if place == 0 else _values(assigned, unit, num_units, done)
        filled = [
            {t: column | bit << unit for (t, column), bit in zip(assigned.items(), values, strict=True)}
            for values in options
        ]
        counts = objective.count_remaining_each([[only_rows(simulate(columns), done)] for columns in filled])
        ranked = [(number, rng.random(), columns) for number, columns in zip(counts, filled, strict=True)]
        assigned = min(ranked, key=lambda option: option[:2])[2]
    return Drawn(simulate(assigned), start.environment)


def _best_row(family: WorldFamily, targets: Targets, objective: Objective, rng: Random) -> _Start | None:
    rows = [(world, index) for world in family.rows(targets) for index in range(world.num_rows)]
    if not rows:
        return None
    numbers = objective.count_remaining_each([[only_rows(world, [index])] for world, index in rows])
    ranked = [(number, rng.random()) for number in numbers]
    world, index = rows[ranked.index(min(ranked))]
    row = world.row(index)
    free = [root for root in family.population.model.roots if root not in targets]
    levels = [
        {root: family.levels(unit, root, row[root]) for root in free} for unit in range(len(family.population.units))
    ]
    unit = rng.choice([unit for unit, possible in enumerate(levels) if all(possible.values())])
    environment = {
        root: rng.choice(levels[unit].get(root) or ENVIRONMENT_LEVELS) for root in family.population.model.roots
    }
    return _Start(world.intervention, unit, environment, row)


def _values(
    assigned: Mapping[str, Column], unit: int, num_units: int, done: Sequence[int]
) -> Iterator[tuple[int, ...]]:
    """Return values that the targets may have in a unit: in the last one only such that no column is constant."""
    all_but_unit = ((1 << num_units) - 1) ^ (1 << unit)
    last = len(done) == num_units
    return product(
        *([int(column == 0)] if last and column in (0, all_but_unit) else (0, 1) for column in assigned.values())
    )


def only_rows(world: World, rows: Sequence[int]) -> World:
    """Return the world with these of its rows, in that order."""
    columns = tuple(sum((column >> row & 1) << place for place, row in enumerate(rows)) for column in world.columns)
    return World(world.id, world.intervention, world.variables, tuple(world.units[row] for row in rows), columns)
