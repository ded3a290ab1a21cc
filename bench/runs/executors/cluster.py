"""Executor on the workers of a dask.distributed cluster: this process sends out jobs and keeps results.

Jobs are sent out in batches, and no more than the present workers can soon do; workers may come and go. A job whose
worker is killed is done by another one. If the scheduler is lost, everything ends with one line: results that came in
are stored.
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

from calibrant.bench.runs.executors.batching import Batcher
from calibrant.bench.runs.executors.connection import Connection, connect
from calibrant.bench.runs.executors.versions import versions
from calibrant.bench.runs.executors.worker import JobSetup, do_jobs
from calibrant.bench.runs.jobs import Failure, error_line
from calibrant.dsl.errors import CalibrantError

if TYPE_CHECKING:
    from distributed import Future

J = TypeVar("J")
K = TypeVar("K")
T = TypeVar("T")

MAX_INLINE_BYTES = (
    100_000  # bytes of a setup that travel with each of its jobs; a larger one is sent to each worker once
)


class Cluster:
    """The workers at a scheduler's address. Leaving the context cancels jobs that no worker has begun."""

    def __init__(self, prepare: Callable[[], None], address: str, wall_budget: float | None) -> None:
        self._prepare = prepare
        self._wall_budget = wall_budget
        self._connection: Connection = connect(address)
        self._running: dict[Future, list[Any]] = {}  # keys of the jobs of a batch
        self._lost: list[Future] = []  # of these, to be looked at again: a result went down with its worker

    def __enter__(self) -> Cluster:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        unfinished = list(self._running)
        self._running.clear()
        if unfinished and self._connection.alive:
            with suppress(Exception):  # the scheduler may be gone by now
                self._connection.client.cancel(unfinished, force=True)

    def as_completed(self, do: Callable[[J], T], jobs: Mapping[K, J]) -> Iterator[tuple[K, T | Failure]]:
        """Yield each job's key and result, as they come in."""
        if not jobs:
            return
        with self._connection.errors_in_one_line():
            setup = self._shared_setup(do)
        done: SimpleQueue[Future] = SimpleQueue()
        waiting = Batcher(jobs)
        while waiting or self._running:
            with self._connection.errors_in_one_line():
                self._send_out(waiting, setup, done)
                results = self._results([*_drain(done, self._connection.seconds_to_look()), *self._lost], waiting)
            yield from results

    def _shared_setup(self, do: Callable[[J], T]) -> bytes | Future:
        """Return the setup as an argument of its jobs; workers copy a large one from each other."""
        from cloudpickle import dumps  # of classes that only this process has, it sends the code

        functions = dumps((self._prepare, do))
        digest = sha256(functions).hexdigest()
        setup = pickle.dumps(JobSetup(functions, digest, self._wall_budget, versions()))
        if len(setup) <= MAX_INLINE_BYTES:
            return setup
        shared = self._connection.client.submit(_identity, setup, key=f"setup-{uuid4().hex}", pure=False)
        self._connection.client.replicate([shared])
        return shared

    def _send_out(self, waiting: Batcher, setup: bytes | Future, done: SimpleQueue[Future]) -> None:
        slots = self._connection.num_slots()
        while batches := waiting.next(slots, len(self._running)):
            pickled = [pickle.dumps([pickle.dumps(job) for job in batch.values()]) for batch in batches]
            keys = [f"calibrant-{uuid4().hex}" for _ in batches]
            futures = self._connection.client.map(do_jobs, pickled, setup=setup, key=keys, pure=False)
            self._running.update(zip(futures, map(list, batches), strict=True))
            for future in futures:
                future.add_done_callback(done.put)

    def _results(self, futures: list[Future], waiting: Batcher) -> list[tuple[Any, Any]]:
        ended = [(future, future.status) for future in futures]  # which may change at any time
        if not (self._connection.alive and {status for _, status in ended} <= {"finished", "error", "lost"}):
            raise self._connection.lost()
        self._lost = [future for future, status in ended if status == "lost"]  # no callback when it is computed again
        results: list[tuple[Any, Any]] = []
        for future, answered in self._gather([future for future, status in ended if status == "finished"]):
            if isinstance(answered, CalibrantError):
                raise answered
            keys = self._running.pop(future)
            waiting.requeue_rest(keys, len(answered.results), answered.early)
            results += zip(keys, answered.results, strict=False)
        for future, status in ended:
            if status == "error":
                failure, keys = self._failure(future), self._running.pop(future)
                results += [(key, failure) for key in waiting.suspect_jobs(keys)]
        return results

    def _gather(self, good: list[Future]) -> list[tuple[Future, Any]]:
        """Return finished futures with their results; none if one was lost and its recomputation killed workers."""
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


def _drain(done: SimpleQueue[Future], seconds: float) -> list[Future]:
    """Return the futures that are done by now; wait so long for the first."""
    futures: list[Future] = []
    with suppress(Empty):
        futures.append(done.get(timeout=seconds))
        while True:
            futures.append(done.get_nowait())
    return futures


def _identity(setup: bytes) -> bytes:
    return setup
