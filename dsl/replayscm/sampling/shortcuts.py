"""Shortcuts that worlds leave standing: short formulas over the true window that fit every unclamped row.

What the published generator accepts is stated in these terms: with no survivor, no formula under the cap explains a
variable from the predecessors that it may depend on. Functions stand for their formulas; each is a truth table over the
window, variable i of it the i-th of the window.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from calibrant.dsl.replayscm.sampling.formula_sizes import shortest_sizes
from calibrant.dsl.replayscm.sampling.scms import LatentScm
from calibrant.dsl.replayscm.sampling.strata import SHORTCUT_CAP, Stratum
from calibrant.dsl.replayscm.world import World

Survivors: TypeAlias = Mapping[str, tuple[int, ...]]
"""Per endogenous variable the truth tables of its shortcuts that fit the worlds so far."""


def shortcut_classes(stratum: Stratum, latent: LatentScm) -> Survivors:
    """Every function under each variable's cap: what survives before any world is seen."""
    classes: dict[str, tuple[int, ...]] = {}
    for variable, candidates in latent.windows(stratum.max_parents).items():
        cap = stratum.shortcut_cap(latent.model.mechanisms[variable].size)
        sizes = shortest_sizes(len(candidates), SHORTCUT_CAP)
        classes[variable] = tuple(bits for bits, size in sizes.items() if size <= cap)
    return classes


def remaining_survivors(world: World, survivors: Survivors, windows: Mapping[str, Sequence[str]]) -> Survivors:
    """Return the survivors that also fit this world. A world says nothing about its targets."""
    columns = world.by_variable
    remaining = dict(survivors)
    for variable, tables in survivors.items():
        if not tables or variable in world.intervention.targets:
            continue
        care, value = _evidence([columns[v] for v in windows[variable]], columns[variable], world.num_rows)
        remaining[variable] = tuple(table for table in tables if not (table ^ value) & care)
    return remaining


def _evidence(inputs: Sequence[int], output: int, num_rows: int) -> tuple[int, int]:
    """Care and value bits of the partial table that the rows of one world define."""
    care = value = 0
    for row in range(num_rows):
        pattern = 0
        for i, column in enumerate(inputs):
            pattern |= (column >> row & 1) << i
        care |= 1 << pattern
        value |= (output >> row & 1) << pattern
    return care, value


def num_functions(survivors: Survivors) -> int:
    """Functions left over all variables: what the choice of worlds brings down."""
    return sum(len(tables) for tables in survivors.values())


def with_shortcuts(survivors: Survivors) -> tuple[str, ...]:
    """Variables with a shortcut left: acceptance counts these, one witness each."""
    return tuple(variable for variable, tables in survivors.items() if tables)
