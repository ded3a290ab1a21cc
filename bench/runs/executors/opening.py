"""The crew that an `Execution` asks for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TypeVar

from calibrant.bench.runs.executors.local import Processes, ThisProcess
from calibrant.bench.runs.jobs import HERE, Crew, Execution, Failure

J = TypeVar("J")
K = TypeVar("K")
T = TypeVar("T")


def open_crew(prepare: Callable[[], None], execution: Execution = HERE) -> AbstractContextManager[Crew]:
    """One worker without a wall budget is this process: nothing to start, nothing that could be killed.

    prepare: called once by every process before its first job, and before the clock of that job starts
    """
    if execution.cluster is not None:
        from calibrant.bench.runs.executors.cluster import Cluster

        return Cluster(prepare, execution.cluster, execution.wall_budget)
    if execution.workers == 1 and execution.wall_budget is None:
        prepare()
        return nullcontext(ThisProcess())
    return Processes(prepare, execution.workers, execution.wall_budget)


def completed(
    do: Callable[[J], T], jobs: Mapping[K, J], execution: Execution = HERE
) -> Iterator[tuple[K, T | Failure]]:
    """Each job once, in any order, by a crew of its own."""
    with open_crew(_nothing, execution) as crew:
        yield from crew.completed(do, jobs)


def _nothing() -> None:
    pass
