"""Local alternatives that the training rows leave open, and compact worlds that rule them out.

Bounds are those of the paper's targeted search (audits.replayscm.bounded.LOCAL), without its limits of states and
seconds: the functions are known in advance, so none is missed.

A world rules out an alternative where a row shows a window pattern on which it differs from gold. Rows do not depend on
each other, so for given targets and environment every unit is simulated under all values of the targets, and the values
are chosen row by row, greedily by the alternatives that they rule out.

Departures from the records that carry such worlds (`train_aug_*`; their builder is not released): those repeat a few
rows cyclically and hold roots constant that are no target, which breaks the rule that a root follows unit and
environment. Here each row is chosen for its own unit, rows that no alternative asks for are random, and roots obey.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations
from random import Random
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from calibrant.audits.replayscm.bounded import LOCAL, rows_by_pattern
from calibrant.dsl.formulas.formula import STANDARD_OPERATORS
from calibrant.dsl.formulas.table import from_formula
from calibrant.dsl.replayscm.disclosure import natural
from calibrant.dsl.replayscm.generation.problems import (
    Drawn,
    Environment,
    Population,
    sample_assigned,
    sample_environment,
)
from calibrant.dsl.replayscm.generation.scms import LatentScm
from calibrant.dsl.replayscm.world import Column, Intervention, World
from calibrant.solvers.formulas.catalogue import essential_functions

# --- Local alternatives: other mechanisms over a variable's window that its training rows leave open, listed
# completely
Tables: TypeAlias = npt.NDArray[np.uint64]
"""Functions of one window, as bits of their truth tables; variable i is the i-th of the window."""


@dataclass(frozen=True, eq=False)
class LocalAlternatives:
    """Functions that fit a set of worlds besides gold.

    gold: variable -> its mechanism as the table of a function of its window
    tables: variable -> the alternatives that fit every row in which it is no target
    """

    windows: Mapping[str, tuple[str, ...]]
    gold: Mapping[str, int]
    tables: Mapping[str, Tables]

    @property
    def num_left(self) -> int:
        return sum(len(tables) for tables in self.tables.values())

    def fitting(self, worlds: Iterable[World]) -> LocalAlternatives:
        """Return the alternatives that fit these worlds too."""
        remaining = dict(self.tables)
        for world in worlds:
            columns = world.by_variable
            for variable in remaining.keys() - world.intervention.targets:
                care = self.shown_rows(variable, columns, world.num_rows)
                wrong = (remaining[variable] ^ np.uint64(self.gold[variable])) & np.uint64(care)
                remaining[variable] = remaining[variable][wrong == 0]
        return replace(self, tables=remaining)

    def shown_rows(self, variable: str, columns: Mapping[str, int], num_rows: int) -> int:
        """Return the rows of the variable's table whose window pattern occurs; gold has the observed values there."""
        groups = rows_by_pattern([columns[u] for u in self.windows[variable]], (1 << num_rows) - 1)
        return sum(1 << pattern for pattern, rows in enumerate(groups) if rows)


def local_alternatives(latent: LatentScm, max_parents: int, training: Iterable[World]) -> LocalAlternatives:
    """Return the alternatives within the budget of the targeted search that fit the training worlds."""
    windows = latent.windows(max_parents)
    gold = {v: from_formula(mechanism, windows[v]).bits for v, mechanism in latent.model.mechanisms.items()}
    tables = {}
    for variable, mechanism in latent.model.mechanisms.items():
        listed, sizes = functions_over(len(windows[variable]), LOCAL.cap)
        small = sizes <= min(mechanism.size + LOCAL.slack, LOCAL.cap)
        tables[variable] = listed[small & (listed != np.uint64(gold[variable]))]
    return LocalAlternatives(windows, gold, tables).fitting(training)


@cache
def functions_over(num_vars: int, max_size: int) -> tuple[Tables, npt.NDArray[np.uint8]]:
    """Return every function of any of the variables up to that size, with its least size.

    Without the constants: no accepted training set leaves a variable constant.
    """
    functions = essential_functions(num_vars, STANDARD_OPERATORS)
    tables, sizes = [], []
    for number in range(1, num_vars + 1):
        listed = slice(int(functions.starts[number]), int(functions.ends[number]))
        small = functions.sizes[listed] <= max_size
        for positions in combinations(range(num_vars), number):
            tables.append(_spread(functions.bits[listed][small], positions, num_vars))
            sizes.append(functions.sizes[listed][small])
    return np.concatenate(tables), np.concatenate(sizes)


def _spread(tables: Tables, positions: Sequence[int], num_vars: int) -> Tables:
    """Return the same functions as tables over all variables; their variable j is the one at positions[j]."""
    spread = np.zeros_like(tables)
    for row in range(1 << num_vars):
        local_row = sum((row >> position & 1) << j for j, position in enumerate(positions))
        spread |= (tables >> np.uint64(local_row) & np.uint64(1)) << np.uint64(row)
    return spread


# --- Targeted disambiguation: compact worlds that rule out local alternatives (Algorithm 3 of the paper, steps
# 6 and 7)
TARGET_COUNTS = (2, 3, 4)  # the published worlds of this kind have four
CANDIDATES = 32  # target sets tried for one world
MIN_SHARE_REMOVED = 0.5  # share of the remaining alternatives: a world that rules out fewer is not added


class Disambiguation(NamedTuple):
    """Added worlds, and the number of alternatives before the first and after each."""

    added: tuple[Drawn, ...]
    num_left: tuple[int, ...]


def separating_worlds(
    population: Population,
    alternatives: LocalAlternatives,
    max_added: int,
    admits: Callable[[Sequence[Drawn]], bool],
    rng: Random,
) -> Disambiguation:
    """Return worlds train_aug_01, ... while one rules out many alternatives.

    admits: whether the instance is still acceptable with these worlds added
    """
    added: list[Drawn] = []
    num_left = [alternatives.num_left]
    while num_left[-1] and len(added) < max_added:
        name = f"train_aug_{len(added) + 1:02d}"
        candidates = [_candidate(name, population, alternatives, rng) for _ in range(CANDIDATES)]
        # by identity: worlds have no hash
        remaining = {id(draw): alternatives.fitting([draw.world]) for draw in candidates}
        ranked = sorted(candidates, key=lambda d: (remaining[id(d)].num_left, len(d.world.intervention.targets)))
        best = next((draw for draw in ranked if admits([*added, draw])), None)
        if best is None or num_left[-1] - remaining[id(best)].num_left < MIN_SHARE_REMOVED * num_left[-1]:
            break
        added.append(best)
        alternatives = remaining[id(best)]
        num_left.append(alternatives.num_left)
    return Disambiguation(tuple(added), tuple(num_left))


def _candidate(world_id: str, population: Population, alternatives: LocalAlternatives, rng: Random) -> Drawn:
    """Return a hard_assigned world on random possible causes of variables with alternatives."""
    causes = {u for v, tables in alternatives.tables.items() if len(tables) for u in alternatives.windows[v]}
    number = rng.choice([count for count in TARGET_COUNTS if count <= len(causes)])
    targets = natural(rng.sample(natural(causes), number))
    environment = sample_environment(population.model.roots, rng)
    chosen = _row_values(population, targets, environment, alternatives)
    columns = sample_assigned(targets, len(population.units), rng)
    fixed = sum(1 << row for row in chosen)
    for i, target in enumerate(targets):
        column = sum((value >> i & 1) << row for row, value in chosen.items())
        columns[target] = _not_constant(columns[target] & ~fixed | column, fixed, len(population.units))
    return Drawn(population.simulate(world_id, Intervention(assigned=targets), environment, columns), environment)


def _row_values(
    population: Population, targets: Sequence[str], environment: Environment, alternatives: LocalAlternatives
) -> dict[int, int]:
    """Choose values of the targets (bit i for target i) for each unit that rules out something.

    Greedy set cover: each step takes the unit and values that rule out most of the alternatives that remain.
    """
    num_units = len(population.units)
    refutes = _refutations(population, targets, environment, alternatives)
    chosen: dict[int, int] = {}
    while len(chosen) < num_units and refutes.shape[1]:
        strength = refutes.sum(axis=1)
        best = int(strength.argmax())
        if not strength[best]:
            break
        value, row = divmod(best, num_units)
        chosen[row] = value
        # alternatives that are ruled out leave the columns, the unit's other values the choice
        refutes = refutes[:, ~refutes[best]]
        refutes[row::num_units] = False
    return chosen


def _refutations(
    population: Population, targets: Sequence[str], environment: Environment, alternatives: LocalAlternatives
) -> npt.NDArray[np.bool_]:
    """Return an array [value * units + unit, alternative]: the unit with those target values rules it out."""
    values = range(1 << len(targets))
    num_units, num_rows = len(population.units), len(population.units) * len(values)
    block = (1 << num_units) - 1
    # all units once for each value of the targets, block by block, so that one simulation answers everything
    assigned: dict[str, Column] = {
        target: sum(block << value * num_units for value in values if value >> i & 1)
        for i, target in enumerate(targets)
    }
    everything = Population(
        population.model,
        population.units * len(values),
        {root: thresholds * len(values) for root, thresholds in population.thresholds.items()},
    )
    world = everything.simulate("", Intervention(assigned=tuple(targets)), environment, assigned)
    columns = world.by_variable
    parts = [np.empty((num_rows, 0), np.bool_)]
    for variable, tables in alternatives.tables.items():
        if len(tables) and variable not in targets:
            groups = rows_by_pattern([columns[u] for u in alternatives.windows[variable]], (1 << num_rows) - 1)
            pattern = np.empty(num_rows, np.uint64)
            for index, rows in enumerate(groups):
                pattern[_members(rows)] = index
            differs = tables ^ np.uint64(alternatives.gold[variable])
            parts.append((differs[None, :] >> pattern[:, None] & np.uint64(1)).astype(np.bool_))
    return np.concatenate(parts, axis=1)


def _members(rows: Column) -> list[int]:
    return [row for row in range(rows.bit_length()) if rows >> row & 1]


def _not_constant(column: Column, fixed: Column, num_rows: int) -> Column:
    """Return a column that is not constant: of a constant one the first row is flipped that is not fixed.

    If all are fixed, the first row. A column of a single row is returned unchanged.
    """
    every_row = (1 << num_rows) - 1
    if num_rows == 1 or column not in (0, every_row):
        return column
    free = every_row & ~fixed or every_row
    return column ^ (free & -free)
