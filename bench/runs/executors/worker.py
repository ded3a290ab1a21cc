"""The side of a cluster's worker: each of its threads has a process of its own that does the jobs.

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

from calibrant.bench.runs.executors.batching import SHARE
from calibrant.bench.runs.executors.local import outcome, spawned, stop
from calibrant.bench.runs.executors.versions import difference, versions
from calibrant.bench.runs.jobs import Failure, attempted, error_line
from calibrant.dsl.errors import CalibrantError, MissingExtraError

T = TypeVar("T")

KEPT = 2  # works that a process is set up for at a time; a work may hold whole pools
ATTEMPTS = 3  # times that a process may die while it is set up
# A nanny sets it, so that its worker returns memory early. What does the jobs would return the memory of each array
# and take it again for the next one: thousands of page faults a second.
TRIMMED = "MALLOC_TRIM_THRESHOLD_"


class _Missing(Enum):
    """In place of a result: the process does not know the work, or is no more."""

    SETUP = "setup"


@dataclass(frozen=True)
class Work:
    """What the jobs of one run have in common.

    prepare, do: pickled; what they need is imported by the process that does the jobs, and by no other
    digest: of that
    """

    setup: bytes
    digest: str
    wall_budget: float | None
    versions: Mapping[str, str]


class Done(NamedTuple):
    """results: of each job its result or a `Failure`; of the last ones none, if the time of a share was over
    early: whether more would have fitted in
    """

    results: list[Any]
    early: bool


def do_jobs(share: bytes, of: bytes) -> Done | CalibrantError:
    """Return what came of the jobs; or why no job can be done on this worker.

    share: a list of jobs, each pickled, and the list too; of: their `Work`, pickled. The scheduler looks into neither
    """
    work: Work = pickle.loads(of)
    differs = difference(work.versions, versions())
    if differs:
        return CalibrantError(f"{differs}, at the worker {_address()}; install the same on all of them")
    began = time.monotonic()
    results: list[Any] = []
    for job in pickle.loads(share):
        if results and time.monotonic() - began >= SHARE:
            break
        try:
            result = _this_thread.process().done(job, work)
        except CalibrantError as error:
            return error
        if isinstance(result, CalibrantError):
            return result
        results.append(result)
    return Done(results, time.monotonic() - began < SHARE / 2)


def _address() -> str:
    from distributed import get_worker

    return str(get_worker().address)


class _Process:
    """The process of one thread; replaced when it has died."""

    def __init__(self) -> None:
        multiprocessing.current_process().daemon = False  # a worker under a nanny is one, and may have no children
        self._pool: ProcessPool | None = None

    def done(self, job: bytes, work: Work) -> Any:
        for _ in range(ATTEMPTS):
            result = self._call(_done, work.wall_budget, job, work.digest)
            if result is not _Missing.SETUP:
                return result
            self._call(_set_up, None, work.setup, work.digest)
        raise CalibrantError("worker processes die before they answer anything")

    def _call(self, do: Callable[..., T], wall_budget: float | None, *arguments: object) -> T | Failure | _Missing:
        if self._pool is None:
            os.environ.pop(TRIMMED, None)
            self._pool = spawned(1, _nothing)
        try:
            return outcome(self._pool.schedule(do, args=arguments, timeout=wall_budget), wall_budget)
        except (BrokenProcessPool, RuntimeError):  # it died when it had nothing to do
            stop(self._pool)
            self._pool = None
            return _Missing.SETUP


class _ThisThread(threading.local):
    def __init__(self) -> None:
        self._process: _Process | None = None

    def process(self) -> _Process:
        if self._process is None:
            self._process = _Process()
        return self._process


_this_thread = _ThisThread()
_set_up_for: dict[str, Callable[[Any], Any] | CalibrantError] = {}


def _nothing() -> None:
    pass


def _set_up(setup: bytes, digest: str) -> None:
    """In the process: what is wrong here is wrong for every job, and each of them says it."""
    while len(_set_up_for) >= KEPT:
        del _set_up_for[next(iter(_set_up_for))]
    try:
        prepare, do = pickle.loads(setup)
        prepare()
    except Exception as error:
        _set_up_for[digest] = CalibrantError(f"the worker cannot be set up: {error_line(error)}")
    else:
        _set_up_for[digest] = do


def _done(job: bytes, digest: str) -> Any:
    """In the process."""
    do = _set_up_for.get(digest)
    if do is None:
        return _Missing.SETUP
    if isinstance(do, CalibrantError):
        return do
    try:
        return attempted(lambda pickled: do(pickle.loads(pickled)), job)
    except MissingExtraError as error:
        return error
