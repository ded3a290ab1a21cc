"""Executors on this machine: this process, and spawned ones, which end with this one even if this one is killed."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
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
from multiprocessing.connection import wait as wait_for_any
from threading import Thread
from types import TracebackType
from typing import TypeVar

from pebble import ProcessExpired, ProcessPool

from calibrant.bench.runs.jobs import Failure, run_job
from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.kernel_cache import CompileListener

# --- End a spawned process with its parent, however the parent ended --------------------------------------------------
PR_SET_PDEATHSIG = 1


def end_with_parent() -> None:
    """End this spawned process when its parent ends; called first in it.

    On Linux the kernel kills it, in the middle of compiled code too. Elsewhere a thread does, once the job lets it run.
    """
    parent = multiprocessing.parent_process()
    if parent is None:  # not started by a parent process
        return
    if sys.platform == "linux":
        end_with_starting_thread()
        if os.getppid() != parent.pid:  # the parent ended before the call
            os._exit(1)
    else:
        Thread(target=_watch, args=(parent.sentinel,), daemon=True).start()


def end_with_starting_thread() -> None:
    """Let Linux kill this process, whatever it runs, when the thread that started it ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _watch(parent: int) -> None:
    wait_for_any([parent])
    os._exit(1)


JOBS_AHEAD = 64  # that are made for each process before it can run them

J = TypeVar("J")
K = TypeVar("K")
T = TypeVar("T")


class InProcessExecutor:
    """Runs one job after the other, in this process."""

    def as_completed(self, do: Callable[[J], T], jobs: Mapping[K, J]) -> Iterator[tuple[K, T | Failure]]:
        for key, job in jobs.items():
            yield key, run_job(do, job)


class SpawnedExecutor:
    """A pool of spawned processes. Leaving the context stops them at once."""

    def __init__(self, prepare: Callable[[], None], workers: int, wall_budget: float | None) -> None:
        self._prepare = prepare
        self._num_workers = workers
        self._wall_budget = wall_budget
        self._pool = spawn_pool(workers, prepare)

    def __enter__(self) -> SpawnedExecutor:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        stop_pool(self._pool)

    def as_completed(self, do: Callable[[J], T], jobs: Mapping[K, J]) -> Iterator[tuple[K, T | Failure]]:
        """Yield keys and results. A process that dies between two jobs breaks the pool; a new one runs the rest."""
        remaining = dict.fromkeys(jobs)
        while remaining:
            num_before = len(remaining)
            for key, result in self._until_broken(do, jobs, tuple(remaining)):
                del remaining[key]
                yield key, result
            if remaining:
                stop_pool(self._pool)
                if len(remaining) == num_before:
                    raise CalibrantError("worker processes die before they answer anything; try --workers 1")
                self._pool = spawn_pool(self._num_workers, self._prepare)

    def _until_broken(
        self, do: Callable[[J], T], jobs: Mapping[K, J], keys: Iterable[K]
    ) -> Iterator[tuple[K, T | Failure]]:
        scheduled: dict[Future[T | Failure], K] = {}
        waiting, broken = iter(keys), False
        while True:
            for key in () if broken else islice(waiting, JOBS_AHEAD * self._num_workers - len(scheduled)):
                job = jobs[key]
                try:
                    with _ignore_control_c():
                        scheduling = self._pool.schedule(run_job, args=(do, job), timeout=self._wall_budget)
                    scheduled[scheduling] = key
                except RuntimeError:  # it broke before any result showed it
                    broken = True
                    break
            if not scheduled:
                return
            for future in wait(scheduled, return_when=FIRST_COMPLETED).done:
                key = scheduled.pop(future)
                try:
                    result = outcome_of(future, self._wall_budget)
                except BrokenProcessPool:
                    broken = True
                    continue
                yield key, result


def spawn_pool(workers: int, prepare: Callable[[], None]) -> ProcessPool:
    """Start a pool of fresh processes, which inherit no thread and no lock of this one."""
    context = multiprocessing.get_context("spawn")
    return ProcessPool(workers, initializer=partial(_start, prepare, CompileListener.listener), context=context)


@contextmanager
def _ignore_control_c() -> Iterator[None]:
    """Block Control-C for processes started meanwhile: this process gets it and ends them.

    A process that is just starting would print a traceback.
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


def stop_pool(pool: ProcessPool) -> None:
    """End its processes at once."""
    pool.stop()  # type: ignore[no-untyped-call]
    pool.join()


def outcome_of(future: Future[T | Failure], wall_budget: float | None) -> T | Failure:
    """Return the result of a job in a pool, or a `Failure`.

    `BrokenProcessPool` if the pool has to be replaced, and the job done again.
    """
    try:
        return future.result()
    except OutOfTime:
        return Failure("out_of_budget", f"not done in {wall_budget} seconds")
    except ProcessExpired as error:
        return Failure("crashed", f"the worker process ended with exit code {error.exitcode}")


def _start(prepare: Callable[[], None], listener: Callable[[str], None] | None) -> None:
    end_with_parent()
    CompileListener.listener = listener
    prepare()
