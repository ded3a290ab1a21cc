"""Rival: replay in plain NumPy, a byte a row, one candidate and one operator at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce
from operator import and_, or_, xor
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from calibrant.dsl.formulas.formula import fold
from calibrant.dsl.replayscm.evaluator import Candidate
from calibrant.dsl.replayscm.world import Column, Panel

Bools: TypeAlias = npt.NDArray[np.bool_]
Counts: TypeAlias = npt.NDArray[np.int64]

RULES: dict[str, Callable[[list[Bools]], Bools]] = {
    "not": lambda arguments: ~arguments[0],
    "and": lambda arguments: reduce(and_, arguments),
    "or": lambda arguments: reduce(or_, arguments),
    "xor": lambda arguments: reduce(xor, arguments),
    "iff": lambda arguments: reduce(and_, arguments) | ~reduce(or_, arguments),
    "if": lambda arguments: np.where(arguments[0], arguments[1], arguments[2]),
}


class RowwisePanels:
    """Panels as Boolean arrays [rows], and what replay needs of them."""

    def __init__(self, panels: Iterable[Panel]) -> None:
        self.panels = list(panels)
        variables = self.panels[0].variables
        self.num_rows = sum(panel.num_rows for panel in self.panels)
        self.observed = {v: np.concatenate([_bools(p, p.columns[v]) for p in self.panels]) for v in variables}
        self.scored = {v: ~np.concatenate([_bools(p, p.clamped[v]) for p in self.panels]) for v in variables}
        self.world_starts = np.cumsum([0, *(w.num_rows for p in self.panels for w in p.worlds)])[:-1]
        self.panel_starts = np.cumsum([0, *(p.num_rows for p in self.panels)])[:-1]
        self.panel_worlds = np.cumsum([0, *(len(p.worlds) for p in self.panels)])[:-1]

    def replay(self, candidate: Candidate) -> Counts:
        """[panels, 4]: scored cells, wrong cells, scored worlds, exact worlds."""
        simulated = dict(self.observed)
        cells = np.zeros(self.num_rows, np.int64)
        errors = np.zeros(self.num_rows, np.int64)
        for variable in candidate.order:
            value = fold(
                candidate.mechanisms[variable],
                lambda atom: simulated[atom] if isinstance(atom, str) else np.full(self.num_rows, atom),
                lambda node, arguments: RULES[node.operator](list(arguments)),
            )
            scored = self.scored[variable]
            wrong = (value != self.observed[variable]) & scored
            simulated[variable] = np.where(scored, value, self.observed[variable])
            cells += scored
            errors += wrong
        scored_worlds = np.add.reduceat(cells, self.world_starts) > 0
        exact_worlds = scored_worlds & (np.add.reduceat(errors, self.world_starts) == 0)
        return np.stack(
            [
                np.add.reduceat(cells, self.panel_starts),
                np.add.reduceat(errors, self.panel_starts),
                np.add.reduceat(scored_worlds.astype(np.int64), self.panel_worlds),
                np.add.reduceat(exact_worlds.astype(np.int64), self.panel_worlds),
            ],
            axis=1,
        )


def _bools(panel: Panel, column: Column) -> Bools:
    packed = np.frombuffer(column.to_bytes(-(-panel.num_rows // 8), "little"), np.uint8)
    return np.unpackbits(packed, count=panel.num_rows, bitorder="little").astype(np.bool_)
