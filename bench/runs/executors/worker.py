"""A cluster's worker: each of its threads has a process of its own that runs the jobs.

In a process of its own a job can be killed when its time is up, takes nothing with it when it dies, and leaves the
worker free to answer the scheduler while compiled code runs. It is kept for the next job, whichever run that is of.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple, TypeVar

from pebble import ProcessPool

from calibrant.bench.runs.executors.batching import BATCH_SECONDS
from calibrant.bench.runs.executors.local import outcome_of, spawn_pool, stop_pool
from calibrant.bench.runs.executors.versions import difference, versions
from calibrant.bench.runs.jobs import Failure, error_line, run_job
from calibrant.dsl.errors import CalibrantError, MissingExtraError

T = TypeVar("T")

MAX_SETUPS = 2  # that a process keeps at a time; a setup may hold whole pools
MAX_ATTEMPTS = 3  # times that a process may die while it is set up
# A nanny sets it, so that its worker returns memory early. The process of the jobs would return the memory of each
# array and take it again for the next one: thousands of page faults a second.
TRIMMED = "MALLOC_TRIM_THRESHOLD_"


class _Missing(Enum):
    """Stands for a result that a process could not give: it lacks the setup, since it is new or was replaced."""

    SETUP = "setup"


@dataclass(frozen=True)
class JobSetup:
    """Functions shared by the jobs of one run.

    functions: (prepare, do), pickled; what they need is imported by the process that runs the jobs, and by no other
    digest: of `functions`
    """

    functions: bytes
    digest: str
    wall_budget: float | None
    versions: Mapping[str, str]


class BatchResult(NamedTuple):
    """Results of a batch.

    results: result or `Failure` of each job, in their order; the last jobs have none if the batch's time was over
    early: done in less than half of the batch's time, so that the next batch may be larger
    """

    results: list[Any]
    early: bool


def do_jobs(batch: bytes, setup: bytes) -> BatchResult | CalibrantError:
    """Return the results of jobs; or why no job can be done on this worker.

    batch: a list of jobs, each pickled, and the list too; setup: their `JobSetup`, pickled. The scheduler reads neither
    """
    job_setup: JobSetup = pickle.loads(setup)
    differs = difference(job_setup.versions, versions())
    if differs:
        return CalibrantError(f"{differs}, at the worker {_address()}; install the same on all of them")
    began = time.monotonic()
    results: list[Any] = []
    for job in pickle.loads(batch):
        if results and time.monotonic() - began >= BATCH_SECONDS:
            break
        try:
            result = _this_thread.process().run(job, job_setup)
        except CalibrantError as error:
            return error
        if isinstance(result, CalibrantError):
            return result
        results.append(result)
    return BatchResult(results, time.monotonic() - began < BATCH_SECONDS / 2)


def _address() -> str:
    from distributed import get_worker

    return str(get_worker().address)


class _WorkerProcess:
    """The process of one thread; replaced when it has died."""

    def __init__(self) -> None:
        multiprocessing.current_process().daemon = False  # a worker under a nanny is one, and may have no children
        self._pool: ProcessPool | None = None

    def run(self, job: bytes, setup: JobSetup) -> Any:
        """Return the result of a job, after setting the process up if it has to be; `CalibrantError` if that fails."""
        for _ in range(MAX_ATTEMPTS):
            result = self._call(_run, setup.wall_budget, job, setup.digest)
            if result is not _Missing.SETUP:
                return result
            self._call(_set_up, None, setup.functions, setup.digest)
        raise CalibrantError("worker processes die before they answer anything")

    def _call(self, do: Callable[..., T], wall_budget: float | None, *arguments: object) -> T | Failure | _Missing:
        if self._pool is None:
            os.environ.pop(TRIMMED, None)
            self._pool = spawn_pool(1, _nothing)
        try:
            return outcome_of(self._pool.schedule(do, args=arguments, timeout=wall_budget), wall_budget)
        except (BrokenProcessPool, RuntimeError):  # it died between two jobs
            stop_pool(self._pool)
            self._pool = None
            return _Missing.SETUP


class _ThisThread(threading.local):
    def __init__(self) -> None:
        self._process: _WorkerProcess | None = None

    def process(self) -> _WorkerProcess:
        if self._process is None:
            self._process = _WorkerProcess()
        return self._process


_this_thread = _ThisThread()
_functions_by_digest: dict[str, Callable[[Any], Any] | CalibrantError] = {}


def _nothing() -> None:
    pass


def _set_up(functions: bytes, digest: str) -> None:
    """Prepare the process for jobs; an error here is the result of each of them."""
    while len(_functions_by_digest) >= MAX_SETUPS:
        del _functions_by_digest[next(iter(_functions_by_digest))]
    try:
        prepare, do = pickle.loads(functions)
        prepare()
    except Exception as error:
        _functions_by_digest[digest] = CalibrantError(f"the worker cannot be set up: {error_line(error)}")
    else:
        _functions_by_digest[digest] = do


def _run(job: bytes, digest: str) -> Any:
    """Run a job in the process; `_Missing.SETUP` if it has not been prepared for it."""
    do = _functions_by_digest.get(digest)
    if do is None:
        return _Missing.SETUP
    if isinstance(do, CalibrantError):
        return do
    try:
        return run_job(lambda pickled: do(pickle.loads(pickled)), job)
    except MissingExtraError as error:
        return error
