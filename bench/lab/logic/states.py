"""The search over many states: its states, transitions and processor time, with arrays and state by state."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import TypeAlias
from unittest.mock import patch

from calibrant.bench.lab.logic.table import CASES, DREAM, EXTENDED, case_task
from calibrant.dsl.logic.task import Options, Task
from calibrant.solvers.logic.elimination import lattice
from calibrant.solvers.logic.elimination.lattice import LatticeBuilder, prune
from calibrant.solvers.logic.network import Columns, Network
from calibrant.solvers.logic.search import Limits, search
from calibrant.solvers.outcome import Found

DataSet: TypeAlias = tuple[str, int]
LARGE: tuple[tuple[DataSet, str, bool], ...] = ((DREAM, "6", False), (EXTENDED, "1", True))  # fit, compressed
MAX_STATES = 4_000_000
NEVER = 1 << 62  # more states than a layer has


def state_lines() -> Iterator[str]:
    """Yield a line for each data set: one pass within the misfit limit and its pruning, both ways in turn."""
    for data, fit, is_compressed in LARGE:
        task = _large_task(data, fit, is_compressed)
        limit = _find_limit(task)
        arrays, num_states, num_transitions = _time_pass(task, limit, lattice.MANY_STATES)
        one_by_one, _, _ = _time_pass(task, limit, NEVER)
        yield (
            f"{data[0]}, fit {fit}{'' if is_compressed else ', without compression'}: {num_states:,} states, "
            f"{num_transitions:,} transitions; {arrays:.2f} s ({1e6 * arrays / num_states:.1f} s a million states), "
            f"state by state {one_by_one:.2f} s, ratio {one_by_one / arrays:.1f}"
        )


def _large_task(data: DataSet, fit: str, is_compressed: bool) -> Task:
    case = next(case for case in CASES if (case.data, case.time) == data)
    return case_task(replace(case, fit=fit, size=None), Options(compress=is_compressed))


def _find_limit(task: Task) -> int:
    """Return the greatest misfit of members, without the constant."""
    outcome = search(task, Limits(MAX_STATES))
    assert isinstance(outcome, Found)
    limit = outcome.value.lattice.limit
    assert limit is not None
    return limit


def _time_pass(task: Task, limit: int, many: int) -> tuple[float, int, int]:
    """Return seconds of processor time, states and transitions; limit: of the misfit, without the constant."""
    network = Network(task)
    columns = Columns(network, task.experiments, task=task)
    with patch.object(lattice, "MANY_STATES", many):
        start = time.process_time()
        builder = LatticeBuilder(network, columns, max_states=MAX_STATES)
        whole = builder.full(limit + columns.constant)
        prune(whole, limit + columns.constant)
        seconds = time.process_time() - start
    return seconds, whole.num_states, sum(len(layer.targets) for layer in whole.layers)
