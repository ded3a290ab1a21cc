"""This process, and spawned ones on this machine. A spawned process ends with this one, even if this one is killed."""

from __future__ import annotations

import multiprocessing
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures import TimeoutError as OutOfTime
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import partial
from itertools import islice
from multiprocessing import resource_tracker
from types import TracebackType
from typing import TypeVar

from pebble import ProcessExpired, ProcessPool

from calibrant.bench.runs.executors.parent import end_with_parent
from calibrant.bench.runs.jobs import Failure, attempted
from calibrant.dsl.compiling import CompileListener
from calibrant.dsl.errors import CalibrantError

AHEAD = 64  # jobs for each process that are made before they are done

J = TypeVar("J")
K = TypeVar("K")
T = TypeVar("T")


class ThisProcess:
    """Does one job after the other, here."""

    def completed(self, do: Callable[[J], T], jobs: Mapping[K, J]) -> Iterator[tuple[K, T | Failure]]:
        for key, job in jobs.items():
            yield key, attempted(do, job)


class Processes:
    """A pool of spawned processes. Leaving the context stops them at once."""

    def __init__(self, prepare: Callable[[], None], workers: int, wall_budget: float | None) -> None:
        self._prepare = prepare
        self._num_workers = workers
        self._wall_budget = wall_budget
        self._pool = spawned(workers, prepare)

    def __enter__(self) -> Processes:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        stop(self._pool)

    def completed(self, do: Callable[[J], T], jobs: Mapping[K, J]) -> Iterator[tuple[K, T | Failure]]:
        """A process that dies between two jobs breaks the whole pool; a new one goes on with what is left."""
        left = dict.fromkeys(jobs)
        while left:
            before = len(left)
            for key, result in self._until_broken(do, jobs, tuple(left)):
                del left[key]
                yield key, result
            if left:
                stop(self._pool)
                if len(left) == before:
                    raise CalibrantError("worker processes die before they answer anything; try --workers 1")
                self._pool = spawned(self._num_workers, self._prepare)

    def _until_broken(
        self, do: Callable[[J], T], jobs: Mapping[K, J], keys: Iterable[K]
    ) -> Iterator[tuple[K, T | Failure]]:
        scheduled: dict[Future[T | Failure], K] = {}
        waiting, broken = iter(keys), False
        while True:
            for key in () if broken else islice(waiting, AHEAD * self._num_workers - len(scheduled)):
                job = jobs[key]
                try:
                    with _deaf_to_control_c():
                        made = self._pool.schedule(attempted, args=(do, job), timeout=self._wall_budget)
                    scheduled[made] = key
                except RuntimeError:  # it broke before any result said so
                    broken = True
                    break
            if not scheduled:
                return
            for future in wait(scheduled, return_when=FIRST_COMPLETED).done:
                key = scheduled.pop(future)
                try:
                    result = outcome(future, self._wall_budget)
                except BrokenProcessPool:
                    broken = True
                    continue
                yield key, result


def spawned(workers: int, prepare: Callable[[], None]) -> ProcessPool:
    """A pool whose processes start from nothing: no thread and no lock of this one can be in their way."""
    context = multiprocessing.get_context("spawn")
    return ProcessPool(workers, initializer=partial(_start, prepare, CompileListener.listener), context=context)


@contextmanager
def _deaf_to_control_c() -> Iterator[None]:
    """Processes that are started meanwhile, and by threads that are, never hear it: this one hears it and ends them.

    One that is being started would print where it was.
    """
    if sys.platform == "win32":
        yield
        return
    resource_tracker.ensure_running()  # which would unblock it
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def stop(pool: ProcessPool) -> None:
    """End its processes at once."""
    pool.stop()  # type: ignore[no-untyped-call]
    pool.join()


def outcome(future: Future[T | Failure], wall_budget: float | None) -> T | Failure:
    """Return what came of a job in a pool.

    `BrokenProcessPool` if the pool has to be replaced, and the job done again.
    """
    try:
        return future.result()
    except OutOfTime:
        return Failure("out_of_budget", f"not done in {wall_budget} seconds")
    except ProcessExpired as error:
        return Failure("crashed", f"the worker process ended with exit code {error.exitcode}")


def _start(prepare: Callable[[], None], told: Callable[[str], None] | None) -> None:
    end_with_parent()
    CompileListener.listener = told
    prepare()
