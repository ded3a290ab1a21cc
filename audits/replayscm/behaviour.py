"""Behaviour of members of a version space in given rows.

A row fixes a context, the values of its targets and of the roots; a member's outcome is the values that it computes for
the other variables. Rows with the same context are equivalent for every member.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from calibrant.dsl.replayscm.evaluator import simulate as simulate_columns
from calibrant.dsl.replayscm.scm import Scm
from calibrant.dsl.replayscm.world import Panel, Rows, World


def distinct_contexts(rows: Rows, roots: int, num_vars: int) -> Rows:
    """Return the first row of each context; skip rows where all variables are targets or roots.

    roots: a bit each
    """
    first: dict[tuple[int, int], int] = {}
    every = (1 << num_vars) - 1
    for place, (word, targets) in enumerate(zip(rows.words.tolist(), rows.targets.tolist(), strict=True)):
        context_mask = targets | roots
        if context_mask != every:
            first.setdefault((targets, word & context_mask), place)
    return rows.select(np.array(list(first.values()), np.int64))


def simulate(model: Scm, world: World) -> World:
    """Return the world with everything but targets and roots computed by the model."""
    panel = Panel(world.variables, (world,))
    columns = simulate_columns(model, panel.columns, panel.clamped, panel.all_rows)
    return replace(world, columns=tuple(columns[v] for v in world.variables))
