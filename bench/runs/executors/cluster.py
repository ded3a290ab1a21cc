"""The workers of a dask.distributed cluster, seen from the one process that hands out jobs and keeps results.

Jobs are handed out in shares, and no more than the workers of the moment can soon do; workers may come and go. A job
whose worker is killed is done by another one. If the scheduler is lost, everything ends with one line: what is done has
been kept.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from hashlib import sha256
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import uuid4

from calibrant.bench.runs.executors.batching import Shares
from calibrant.bench.runs.executors.connection import Connection, connected
from calibrant.bench.runs.executors.versions import versions
from calibrant.bench.runs.executors.worker import Work, do_jobs
from calibrant.bench.runs.jobs import Failure, error_line
from calibrant.dsl.errors import CalibrantError

if TYPE_CHECKING:
    from distributed import Future

J = TypeVar("J")
K = TypeVar("K")
T = TypeVar("T")

INLINE = 100_000  # bytes of a work that travel with each of its jobs; more are sent to each worker once


class Cluster:
    """A crew of the workers at a scheduler's address. Leaving the context takes back what was not begun."""

    def __init__(self, prepare: Callable[[], None], address: str, wall_budget: float | None) -> None:
        self._prepare = prepare
        self._wall_budget = wall_budget
        self._connection: Connection = connected(address)
        self._running: dict[Future, list[Any]] = {}  # keys of the jobs of a share
        self._lost: list[Future] = []  # of these, to be looked at again: a result went down with its worker

    def __enter__(self) -> Cluster:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        left = list(self._running)
        self._running.clear()
        if left and self._connection.alive:
            with suppress(Exception):  # the scheduler may be gone by now
                self._connection.client.cancel(left, force=True)

    def completed(self, do: Callable[[J], T], jobs: Mapping[K, J]) -> Iterator[tuple[K, T | Failure]]:
        """Results as they come in."""
        if not jobs:
            return
        with self._connection.errors_in_one_line():
            work = self._shared(do)
        done: SimpleQueue[Future] = SimpleQueue()
        waiting = Shares(jobs)
        while waiting or self._running:
            with self._connection.errors_in_one_line():
                self._hand_out(waiting, work, done)
                results = self._results([*_drained(done, self._connection.seconds_to_look()), *self._lost], waiting)
            yield from results

    def _shared(self, do: Callable[[J], T]) -> bytes | Future:
        """The work as an argument of its jobs. Workers get a large one from each other, and again if all have died."""
        from cloudpickle import dumps  # of classes that only this process has, it sends the code

        setup = dumps((self._prepare, do))
        work = pickle.dumps(Work(setup, sha256(setup).hexdigest(), self._wall_budget, versions()))
        if len(work) <= INLINE:
            return work
        shared = self._connection.client.submit(_itself, work, key=f"work-{uuid4().hex}", pure=False)
        self._connection.client.replicate([shared])
        return shared

    def _hand_out(self, waiting: Shares, work: bytes | Future, done: SimpleQueue[Future]) -> None:
        slots = self._connection.num_slots()
        while shares := waiting.next(slots, len(self._running)):
            pickled = [pickle.dumps([pickle.dumps(job) for job in share.values()]) for share in shares]
            keys = [f"calibrant-{uuid4().hex}" for _ in shares]
            handed = self._connection.client.map(do_jobs, pickled, of=work, key=keys, pure=False)
            self._running.update(zip(handed, map(list, shares), strict=True))
            for future in handed:
                future.add_done_callback(done.put)

    def _results(self, futures: list[Future], waiting: Shares) -> list[tuple[Any, Any]]:
        ended = [(future, future.status) for future in futures]  # which may change at any time
        if not (self._connection.alive and {status for _, status in ended} <= {"finished", "error", "lost"}):
            raise self._connection.lost()
        self._lost = [future for future, status in ended if status == "lost"]  # nobody calls when it is made again
        results: list[tuple[Any, Any]] = []
        for future, answered in self._gathered([future for future, status in ended if status == "finished"]):
            if isinstance(answered, CalibrantError):
                raise answered
            keys = self._running.pop(future)
            waiting.came_back(keys, len(answered.results), answered.early)
            results += zip(keys, answered.results, strict=False)
        for future, status in ended:
            if status == "error":
                failure, keys = self._failure(future), self._running.pop(future)
                results += [(key, failure) for key in waiting.guilty(keys)]
        return results

    def _gathered(self, good: list[Future]) -> list[tuple[Future, Any]]:
        """With what they came to; none by now if one of them went down, and workers that were to make it again too."""
        from distributed import KilledWorker

        try:
            return list(zip(good, self._connection.client.gather(good), strict=True))
        except KilledWorker:
            self._lost += good
            return []

    def _failure(self, future: Future) -> Failure:
        from distributed import KilledWorker

        error = future.exception()
        if isinstance(error, KilledWorker):
            return Failure("crashed", "the workers that had it died, one after the other")
        raise CalibrantError(f"the cluster cannot do the jobs: {error_line(error)}")


def _drained(done: SimpleQueue[Future], seconds: float) -> list[Future]:
    """Return what is done by now; waits so long for the first."""
    found: list[Future] = []
    with suppress(Empty):
        found.append(done.get(timeout=seconds))
        while True:
            found.append(done.get_nowait())
    return found


def _itself(work: bytes) -> bytes:
    return work
