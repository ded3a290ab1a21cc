"""Independent jobs, in this process or in spawned ones; what one of them meets costs the others nothing."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, as_completed
from concurrent.futures import TimeoutError as OutOfTime
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from types import TracebackType
from typing import Literal, Protocol, TypeVar

from pebble import ProcessExpired, ProcessPool

from dsl.errors import CalibrantError, MissingExtraError

Progress = Callable[[str, int, int], None]
"""Called with the pool's name, how many of its instances are done, and how many there will be."""

J = TypeVar("J")
K = TypeVar("K")
T = TypeVar("T")

MAX_ERROR_LENGTH = 300


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a job has no result; error: one line."""

    outcome: Literal["out_of_budget", "crashed"]
    error: str


class Crew(Protocol):
    """Something that does jobs; results come in any order, each exactly once."""

    def completed(self, do: Callable[[J], T], jobs: Mapping[K, J]) -> Iterator[tuple[K, T | Failure]]: ...


def open_crew(
    prepare: Callable[[], None], *, workers: int = 1, wall_budget: float | None = None
) -> AbstractContextManager[Crew]:
    """One worker without a wall budget is this process: nothing to start, nothing that could be killed.

    prepare: called once by every process before its first job, and before the clock of that job starts
    wall_budget: seconds after which the process of a job is killed
    """
    if workers == 1 and wall_budget is None:
        prepare()
        return nullcontext(_ThisProcess())
    return _Processes(prepare, workers, wall_budget)


def completed(
    do: Callable[[J], T], jobs: Mapping[K, J], *, workers: int = 1, wall_budget: float | None = None
) -> Iterator[tuple[K, T | Failure]]:
    """Each job once, in any order, by a crew of its own."""
    with open_crew(_nothing, workers=workers, wall_budget=wall_budget) as crew:
        yield from crew.completed(do, jobs)


def error_line(error: BaseException) -> str:
    """An exception in one line; its type where the text was not written for the reader."""
    text = one_line(error)
    return text if isinstance(error, CalibrantError) else f"{type(error).__name__}: {text}"


def one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:MAX_ERROR_LENGTH]


def _nothing() -> None:
    pass


def _attempted(do: Callable[[J], T], job: J) -> T | Failure:
    try:
        return do(job)
    except MissingExtraError:  # no job can be done; the reader has to install something first
        raise
    except Exception as error:  # a result too: it must not cost the other jobs
        return Failure("crashed", error_line(error))


class _ThisProcess:
    """Does one job after the other, here."""

    def completed(self, do: Callable[[J], T], jobs: Mapping[K, J]) -> Iterator[tuple[K, T | Failure]]:
        for key, job in jobs.items():
            yield key, _attempted(do, job)


class _Processes:
    """A pool of spawned processes. Leaving the context stops them at once."""

    def __init__(self, prepare: Callable[[], None], workers: int, wall_budget: float | None) -> None:
        self._prepare = prepare
        self._num_workers = workers
        self._wall_budget = wall_budget
        self._pool = self._new_pool()

    def _new_pool(self) -> ProcessPool:
        return ProcessPool(self._num_workers, initializer=self._prepare, context=multiprocessing.get_context("spawn"))

    def __enter__(self) -> _Processes:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stop()

    def _stop(self) -> None:
        self._pool.stop()  # type: ignore[no-untyped-call]
        self._pool.join()

    def completed(self, do: Callable[[J], T], jobs: Mapping[K, J]) -> Iterator[tuple[K, T | Failure]]:
        """A process that dies between two jobs breaks the whole pool; a new one goes on with what is left."""
        left = dict(jobs)
        while left:
            before = len(left)
            for key, result in self._until_broken(do, left):
                del left[key]
                yield key, result
            if left:
                self._stop()
                if len(left) == before:
                    raise CalibrantError("worker processes die before they answer anything; try --workers 1")
                self._pool = self._new_pool()

    def _until_broken(self, do: Callable[[J], T], jobs: Mapping[K, J]) -> Iterator[tuple[K, T | Failure]]:
        scheduled: dict[Future[T | Failure], K] = {
            self._pool.schedule(_attempted, args=(do, job), timeout=self._wall_budget): key for key, job in jobs.items()
        }
        for future in as_completed(scheduled):
            result: T | Failure
            try:
                result = future.result()
            except OutOfTime:
                result = Failure("out_of_budget", f"not done in {self._wall_budget} seconds")
            except ProcessExpired as error:
                result = Failure("crashed", f"the worker process ended with exit code {error.exitcode}")
            except BrokenProcessPool:
                continue
            yield scheduled[future], result
