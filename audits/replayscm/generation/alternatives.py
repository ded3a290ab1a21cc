"""Local alternatives: other mechanisms over a variable's window that its training rows leave open, listed completely.

Bounds are those of the paper's targeted search (audits.replayscm.bounded.LOCAL), without its limits of states and
seconds: the functions are known in advance, so none is missed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from calibrant.audits.replayscm.bounded import LOCAL
from calibrant.audits.replayscm.local_patterns import rows_by_pattern
from calibrant.dsl.formulas.formula import STANDARD_OPERATORS
from calibrant.dsl.formulas.table import from_formula
from calibrant.dsl.replayscm.generation.scms import LatentScm
from calibrant.dsl.replayscm.world import World
from calibrant.solvers.formulas.catalogue import essential_functions

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
