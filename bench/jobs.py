"""Independent jobs, in this process or in spawned ones; what one of them meets costs the others nothing."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, as_completed
from concurrent.futures import TimeoutError as OutOfTime
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import Literal, TypeVar

from pebble import ProcessExpired, ProcessPool

from dsl.errors import CalibrantError

J = TypeVar("J")
K = TypeVar("K")
T = TypeVar("T")

MAX_ERROR_LENGTH = 300


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a job has no result; error: one line."""

    outcome: Literal["out_of_budget", "crashed"]
    error: str


def completed(
    do: Callable[[J], T], jobs: Mapping[K, J], *, workers: int = 1, wall_budget: float | None = None
) -> Iterator[tuple[K, T | Failure]]:
    """Each job once, in any order. One worker without a wall budget is this process.

    wall_budget: seconds after which the process of a job is killed
    """
    if workers == 1 and wall_budget is None:
        yield from ((key, _attempted(do, job)) for key, job in jobs.items())
        return
    pool = ProcessPool(workers, context=multiprocessing.get_context("spawn"))
    try:
        scheduled: dict[Future[T | Failure], K] = {
            pool.schedule(_attempted, args=(do, job), timeout=wall_budget): key for key, job in jobs.items()
        }
        for future in as_completed(scheduled):
            yield scheduled[future], _result(future, wall_budget)
    finally:
        pool.stop()  # type: ignore[no-untyped-call]
        pool.join()


def error_line(error: Exception) -> str:
    """An exception in one line; its type where the text was not written for the reader."""
    text = " ".join(str(error).split())[:MAX_ERROR_LENGTH]
    return text if isinstance(error, CalibrantError) else f"{type(error).__name__}: {text}"


def _attempted(do: Callable[[J], T], job: J) -> T | Failure:
    try:
        return do(job)
    except Exception as error:  # a result too: it must not cost the other jobs
        return Failure("crashed", error_line(error))


def _result(future: Future[T | Failure], wall_budget: float | None) -> T | Failure:
    try:
        return future.result()
    except OutOfTime:
        return Failure("out_of_budget", f"not done in {wall_budget} seconds")
    except (ProcessExpired, BrokenProcessPool) as error:
        return Failure("crashed", f"the worker process ended: {error}")
