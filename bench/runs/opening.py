"""The executor that an `Execution` names."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TypeVar

from calibrant.bench.runs.executors import InProcessExecutor, SpawnedExecutor
from calibrant.bench.runs.jobs import HERE, Execution, Executor, Failure

J = TypeVar("J")
K = TypeVar("K")
T = TypeVar("T")


def prepare_nothing() -> None:
    """Do nothing: jobs that need no setup."""


def open_executor(prepare: Callable[[], None], execution: Execution = HERE) -> AbstractContextManager[Executor]:
    """Open the executor; one worker without a wall budget is this process: nothing to start, nothing to kill.

    prepare: called once by every process before its first job, and before the clock of that job starts
    """
    if execution.cluster is not None:
        from calibrant.bench.runs.cluster import Cluster

        return Cluster(prepare, execution.cluster, execution.wall_budget)
    if execution.workers == 1 and execution.wall_budget is None:
        prepare()
        return nullcontext(InProcessExecutor())
    return SpawnedExecutor(prepare, execution.workers, execution.wall_budget)


def as_completed(
    do: Callable[[J], T], jobs: Mapping[K, J], execution: Execution = HERE
) -> Iterator[tuple[K, T | Failure]]:
    """Run each job once on an executor of its own; yield keys and results in any order."""
    with open_executor(prepare_nothing, execution) as executor:
        yield from executor.as_completed(do, jobs)
