"""Behaviour of members of a version space in given rows.

A row fixes a context, the values of its targets and of the roots; a member's outcome is the values that it computes for
the other variables. Rows with the same context are equivalent for every member.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from calibrant.dsl.replayscm.replay import Candidate, mismatches
from calibrant.dsl.replayscm.scm import Scm
from calibrant.dsl.replayscm.world import Panel, World
from calibrant.solvers.replayscm.conditioned_space import NO_ROWS, Rows


def rows_of(worlds: Sequence[World], variables: Sequence[str]) -> Rows:
    """Return the rows of all worlds, one world after another, over a task's variables."""
    if not worlds:
        return NO_ROWS
    shifts = np.arange(len(variables), dtype=np.uint64)[:, None]
    words, targets = [], []
    for world in worlds:
        columns = world.by_variable
        num_bytes = -(-world.num_rows // 8)
        packed = b"".join(columns[v].to_bytes(num_bytes, "little") for v in variables)
        bits = np.unpackbits(np.frombuffer(packed, np.uint8).reshape(-1, num_bytes), axis=1, bitorder="little")
        words.append(np.bitwise_or.reduce(bits[:, : world.num_rows].astype(np.uint64) << shifts))
        clamped = sum(1 << i for i, v in enumerate(variables) if v in world.intervention.targets)
        targets.append(np.full(world.num_rows, clamped, np.uint64))
    return Rows(np.concatenate(words), np.concatenate(targets))


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
    wrong = mismatches(Candidate(model.mechanisms, model.order), panel)
    return replace(world, columns=tuple(panel.columns[v] ^ wrong.get(v, 0) for v in world.variables))
