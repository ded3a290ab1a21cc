"""Reference semantics: replay one row at a time with dictionaries.

Slow on purpose and independent of the packed path: it uses the operators' truth rules on single bits, walks the rows
of the worlds themselves and knows nothing about bit columns. Solvers certify every answer with it before they return
it, and every fast path is compared with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from calibrant.dsl.formulas.reference import evaluate
from calibrant.dsl.replayscm.scm import Scm
from calibrant.dsl.replayscm.world import World


class Cell(NamedTuple):
    """One scored cell: a non-intervened endogenous variable in one row."""

    world: str
    row: int
    variable: str
    predicted: int
    expected: int


def replay_row(
    model: Scm, world: World, observed: Mapping[str, int], order: Sequence[str] | None = None
) -> dict[str, int]:
    """Return the simulated values of all variables in one row (paper, section B.1).

    Targets take their assigned value (the constant, or the row's own bit), other roots are copied from the row, other
    endogenous variables are computed from the values simulated so far, so errors propagate.
    """
    constants, assigned = world.intervention.constants, world.intervention.assigned
    values: dict[str, int] = {}
    for variable in (*model.roots, *(order or model.order)):
        if variable in assigned:
            values[variable] = observed[variable]
        elif variable in constants:
            values[variable] = constants[variable]
        elif variable in model.mechanisms:
            values[variable] = evaluate(model.mechanisms[variable], values)
        else:
            values[variable] = observed[variable]
    return values


def replay_world(model: Scm, world: World, order: Sequence[str] | None = None) -> Iterator[Cell]:
    """Yield every scored cell of a world: rows in order, variables in evaluation order."""
    targets = world.intervention.targets
    scored = [variable for variable in (order or model.order) if variable not in targets]
    for index, observed in enumerate(world.rows()):
        values = replay_row(model, world, observed, order)
        for variable in scored:
            yield Cell(world.id, index, variable, values[variable], observed[variable])


def first_mismatch(model: Scm, worlds: Sequence[World], order: Sequence[str] | None = None) -> Cell | None:
    """Return the first wrong cell: worlds in order, rows in order, variables in evaluation order."""
    cells = (cell for world in worlds for cell in replay_world(model, world, order))
    return next((cell for cell in cells if cell.predicted != cell.expected), None)


def replays_exactly(model: Scm, worlds: Sequence[World]) -> bool:
    """Return whether every scored cell of every world is right. True also when there is none."""
    return first_mismatch(model, worlds) is None
