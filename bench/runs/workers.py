"""Answering many tasks: in this process, or in spawned ones that are killed when an instance takes too long.

Workers get tasks only; what is sealed never leaves the parent. They import and warm up once, before their first task,
and the clock of an instance starts when a worker has picked it up.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from typing import NamedTuple, TypeVar

from bench.protocols.base import Protocol, ProtocolResult, no_answer
from bench.runs.jobs import Crew, Failure, one_line, open_crew
from bench.runs.records import Timing
from dsl.errors import MissingExtraError
from dsl.replayscm.problem import Task
from solvers.budget import BudgetSpent

K = TypeVar("K")


class Answer(NamedTuple):
    """A protocol's result on one task, and when and how long."""

    result: ProtocolResult
    timing: Timing


class Workers:
    """A crew that answers tasks by one protocol."""

    def __init__(self, protocol: Protocol, crew: Crew, wall_budget: float | None) -> None:
        self._protocol = protocol
        self._crew = crew
        self._wall_budget = wall_budget

    def answers(self, tasks: Mapping[K, Task]) -> Iterator[tuple[K, Answer]]:
        """Results in any order, each exactly once."""
        for key, answer in self._crew.completed(partial(timed_answer, self._protocol), tasks):
            yield key, self._without_answer(tasks[key], answer) if isinstance(answer, Failure) else answer

    def _without_answer(self, task: Task, failure: Failure) -> Answer:
        started = datetime.now(UTC).isoformat(timespec="milliseconds")
        if failure.outcome == "crashed":
            return Answer(_crashed(task, failure.error), Timing(0.0, started))
        assert self._wall_budget is not None
        provenance = {"stopped_by": "wall budget", "seconds": self._wall_budget}
        return Answer(_out_of_budget(task, provenance), Timing(self._wall_budget, started))


@contextmanager
def open_workers(protocol: Protocol, *, workers: int = 1, wall_budget: float | None = None) -> Iterator[Workers]:
    """Workers that have warmed up (bench.runs.jobs.open_crew)."""
    with open_crew(partial(_warm_up, protocol), workers=workers, wall_budget=wall_budget) as crew:
        yield Workers(protocol, crew, wall_budget)


def timed_answer(protocol: Protocol, task: Task) -> Answer:
    """Answer one task. An exception of the protocol is a result too: it must not cost the other instances.

    A spent budget that no solver turned into its own outcome is one, not a crash. A missing library is no result at
    all: `MissingExtraError`.
    """
    started = datetime.now(UTC).isoformat(timespec="milliseconds")
    clock = time.perf_counter()
    try:
        result = protocol.answer(task)
    except MissingExtraError:
        raise
    except BudgetSpent as spent:
        result = _out_of_budget(task, {"reached": one_line(spent) or "a budget of states"})
    except Exception as error:
        result = _crashed(task, f"{type(error).__name__}: {one_line(error)}")
    return Answer(result, Timing(time.perf_counter() - clock, started))


def _warm_up(protocol: Protocol) -> None:
    with suppress(Exception):  # whatever is wrong, the instances will say it too
        protocol.warm_up()


def _crashed(task: Task, error: str) -> ProtocolResult:
    return ProtocolResult("crashed", no_answer(task.kind), provenance={"error": error})


def _out_of_budget(task: Task, provenance: dict[str, object]) -> ProtocolResult:
    return ProtocolResult("out_of_budget", no_answer(task.kind), provenance=provenance)
