"""Answering many tasks: in this process, or in spawned ones that are killed when an instance takes too long.

Workers get tasks only; what is sealed never leaves the parent. They import and warm up once, before their first task,
and the clock of an instance starts when a worker has picked it up.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, as_completed
from concurrent.futures import TimeoutError as OutOfTime
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, nullcontext, suppress
from datetime import UTC, datetime
from types import TracebackType
from typing import NamedTuple, Protocol, TypeVar

from pebble import ProcessExpired, ProcessPool

from bench.protocols import base as answering
from bench.protocols.base import ProtocolResult, no_answer
from bench.runs.records import Timing
from dsl.errors import CalibrantError
from dsl.problem import Task
from solvers.budget import BudgetSpent

K = TypeVar("K")
MAX_ERROR_LENGTH = 300


class Answer(NamedTuple):
    """A protocol's result on one task, and when and how long."""

    result: ProtocolResult
    timing: Timing


class Workers(Protocol):
    """Something that answers tasks; results come in any order, each exactly once."""

    def answers(self, tasks: Mapping[K, Task]) -> Iterator[tuple[K, Answer]]: ...


def open_workers(
    protocol: answering.Protocol, *, workers: int = 1, wall_budget: float | None = None
) -> AbstractContextManager[Workers]:
    """One worker without a wall budget is this process: nothing to start, nothing that could be killed."""
    if workers == 1 and wall_budget is None:
        return nullcontext(InProcess(protocol))
    return Processes(protocol, workers, wall_budget)


def timed_answer(protocol: answering.Protocol, task: Task) -> Answer:
    """Answer one task. An exception of the protocol is a result too: it must not cost the other instances.

    A spent budget that no solver turned into its own outcome is one, not a crash.
    """
    started = datetime.now(UTC).isoformat(timespec="milliseconds")
    clock = time.perf_counter()
    try:
        result = protocol.answer(task)
    except BudgetSpent as spent:
        reason = " ".join(str(spent).split()) or "a budget of states"
        result = ProtocolResult("out_of_budget", no_answer(task.kind), provenance={"reached": reason})
    except Exception as error:
        result = _crashed(task, f"{type(error).__name__}: {' '.join(str(error).split())[:MAX_ERROR_LENGTH]}")
    return Answer(result, Timing(time.perf_counter() - clock, started))


def _warm_up(protocol: answering.Protocol) -> None:
    with suppress(Exception):  # whatever is wrong, the instances will say it too
        protocol.warm_up()


def _crashed(task: Task, error: str) -> ProtocolResult:
    return ProtocolResult("crashed", no_answer(task.kind), provenance={"error": error})


class InProcess:
    """Answers one task after the other, here."""

    def __init__(self, protocol: answering.Protocol) -> None:
        self._protocol = protocol
        _warm_up(protocol)

    def answers(self, tasks: Mapping[K, Task]) -> Iterator[tuple[K, Answer]]:
        for key, task in tasks.items():
            yield key, timed_answer(self._protocol, task)


class Processes:
    """A pool of spawned processes. Leaving the context stops them at once."""

    def __init__(self, protocol: answering.Protocol, workers: int, wall_budget: float | None) -> None:
        self._protocol = protocol
        self._num_workers = workers
        self._wall_budget = wall_budget
        self._pool = self._new_pool()

    def _new_pool(self) -> ProcessPool:
        context = multiprocessing.get_context("spawn")
        return ProcessPool(self._num_workers, initializer=_warm_up, initargs=(self._protocol,), context=context)

    def __enter__(self) -> Processes:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stop()

    def _stop(self) -> None:
        self._pool.stop()  # type: ignore[no-untyped-call]
        self._pool.join()

    def answers(self, tasks: Mapping[K, Task]) -> Iterator[tuple[K, Answer]]:
        """A worker that dies between two tasks breaks the whole pool; a new one goes on with what is left."""
        left = dict(tasks)
        while left:
            before = len(left)
            for key, answer in self._until_broken(left):
                del left[key]
                yield key, answer
            if left:
                self._stop()
                if len(left) == before:
                    raise CalibrantError("worker processes die before they answer anything; try --workers 1")
                self._pool = self._new_pool()

    def _until_broken(self, tasks: Mapping[K, Task]) -> Iterator[tuple[K, Answer]]:
        scheduled: dict[Future[Answer], K] = {
            self._pool.schedule(timed_answer, args=(self._protocol, task), timeout=self._wall_budget): key
            for key, task in tasks.items()
        }
        for future in as_completed(scheduled):
            key = scheduled[future]
            try:
                answer = future.result()
            except OutOfTime:
                answer = self._stopped(tasks[key])
            except ProcessExpired as error:
                result = _crashed(tasks[key], f"the worker process ended with exit code {error.exitcode}")
                answer = Answer(result, _no_timing())
            except BrokenProcessPool:
                continue
            yield key, answer

    def _stopped(self, task: Task) -> Answer:
        assert self._wall_budget is not None
        provenance = {"stopped_by": "wall budget", "seconds": self._wall_budget}
        result = ProtocolResult("out_of_budget", no_answer(task.kind), provenance=provenance)
        return Answer(result, Timing(self._wall_budget, _no_timing().started))


def _no_timing() -> Timing:
    return Timing(0.0, datetime.now(UTC).isoformat(timespec="milliseconds"))
