"""Executor on the workers of a dask.distributed cluster; this process sends jobs and stores results.

Jobs are sent in batches, a few per slot of the present workers; workers may come and go. If a worker is killed,
another one runs its jobs. If the scheduler is lost, the command ends with a one-line error; results so far are stored.
"""

from __future__ import annotations

import asyncio
import logging
import pickle
import re
import sys
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import sha256
from math import ceil
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import uuid4

from calibrant.bench.runs.executors import Failure, JobSetup, do_jobs, error_line, versions
from calibrant.dsl.errors import CalibrantError, MissingExtraError, short_repr

if TYPE_CHECKING:
    from distributed import Client, Future


# --- Batches of jobs for a cluster: the jobs of one message -----------------------------------------------------------
# The cost of a message does not depend on the length of its jobs, so batches of short jobs grow until they take about
# BATCH_SECONDS. After this time a worker returns the rest of its batch, so that a long job delays few others. The last
# jobs, as many as there are slots (jobs that can run at once), wait here for an idle worker, not behind a long job.
MAX_BATCH_JOBS = 64
FIRST_BATCH_JOBS = 8  # size before any job was timed; a message costs a tenth of an audit
BATCHES_PER_SLOT = 1.5  # the remaining jobs make so many batches for each slot, so that slots end at about one time
MIN_BATCH_DIVISOR = 4  # but batches have at least 1/4 of the jobs that take BATCH_SECONDS
BATCHES_AHEAD = 2  # batches sent out for each slot, so that no slot waits for a message


class Batcher:
    """Queue of unsent and returned jobs, which yields batches (key -> job)."""

    def __init__(self, jobs: Mapping[Any, Any]) -> None:
        self._jobs = jobs
        self._waiting = deque(jobs)
        self._suspects: deque[Any] = deque()
        self._last_suspect: list[Any] = []  # key of the suspect that was sent last, alone
        self._size = FIRST_BATCH_JOBS

    def __bool__(self) -> bool:
        return bool(self._waiting or self._suspects)

    def next(self, slots: int, num_out: int) -> list[dict[Any, Any]]:
        """Return the batches to send now, so that each slot has up to BATCHES_AHEAD; none while enough are out.

        Suspects are sent one at a time, when all other jobs are done.

        slots: number of jobs that can run at once; num_out: number of batches sent and not returned
        """
        batches: list[dict[Any, Any]] = []
        while self._waiting and len(batches) < min(slots, self._max_out(slots) - num_out):
            batches.append(self._next_batch(slots))
        if self._suspects and slots and not num_out and not batches:
            key = self._suspects.popleft()
            self._last_suspect = [key]
            batches.append({key: self._jobs[key]})
        return batches

    def _max_out(self, slots: int) -> int:
        return BATCHES_AHEAD * slots if len(self._waiting) > slots else slots

    def _next_batch(self, slots: int) -> dict[Any, Any]:
        num_before_last = max(1, len(self._waiting) - slots)  # the last jobs are sent one by one
        even_size = ceil(len(self._waiting) / (BATCHES_PER_SLOT * slots))
        size = min(self._size, max(even_size, self._size // MIN_BATCH_DIVISOR), num_before_last)
        return {key: self._jobs[key] for key in [self._waiting.popleft() for _ in range(size)]}

    def requeue_rest(self, keys: list[Any], num_done: int, early: bool) -> None:
        """Requeue the unfinished rest of a batch and adapt the batch size.

        num_done: number of finished jobs, the first ones; early: whether the batch took less than half of BATCH_SECONDS
        """
        self._waiting.extendleft(reversed(keys[num_done:]))
        if num_done < len(keys):
            self._size = max(1, num_done)
        elif early:
            self._size = min(MAX_BATCH_JOBS, max(self._size, 2 * num_done))

    def suspect_jobs(self, keys: list[Any]) -> list[Any]:
        """Take the keys of a batch whose workers died; return those that certainly killed them.

        That is certain of a suspect that was sent alone. Other keys become suspects, which are sent one at a time.
        """
        if keys == self._last_suspect:
            return keys
        self._suspects.extend(keys)
        return []


# --- Connection to a dask.distributed scheduler; its failures are one-line errors -------------------------------------
CONNECT_SECONDS = 4.0  # time limit of a scheduler's answer, so that a command fails within 10 seconds of its start
ABORT_SECONDS = 0.5  # added to it, after which a connection that ignores its own time limit is aborted
COUNT_SECONDS = 1.0  # interval between counts of the present workers
NOTICE_SECONDS = 5.0  # time without workers before a message
ADDRESS_FORM = re.compile(r"(tcp|tls)://[^\s/]+:\d{1,5}/?")
LOGGERS = ("distributed", "tornado", "asyncio")  # silenced: their errors are printed as one line by this module
NO_CERTIFICATE = (
    "no certificate to show; DASK_DISTRIBUTED__COMM__TLS__CA_FILE, "
    "DASK_DISTRIBUTED__COMM__TLS__CLIENT__CERT and ...KEY name the files"
)
START_A_WORKER = "dask worker {address} --nthreads 1"


class Connection:
    """A client of a scheduler."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.client = _client(address)
        self._slots = 0
        self._counted_at = 0.0  # monotonic time of the last count of slots; 0 before the first
        self._deserted_since = time.monotonic()

    @property
    def alive(self) -> bool:
        return bool(self.client.status == "running")

    def num_slots(self) -> int:
        """Return the number of jobs that workers can run at once; print a message after NOTICE_SECONDS without one."""
        now = time.monotonic()
        if now - self._counted_at >= COUNT_SECONDS or not self._counted_at:
            self._slots = sum(self.client.nthreads().values())
            self._counted_at = now
            if self._slots:
                self._deserted_since = now
            elif now - self._deserted_since >= NOTICE_SECONDS:
                self._deserted_since = float("inf")
                message = (
                    f"no workers at {self.address}; waiting for one: {START_A_WORKER.format(address=self.address)}"
                )
                print(message, file=sys.stderr, flush=True)
        return self._slots

    def seconds_to_count(self) -> float:
        """Return the seconds until the workers are counted again."""
        return max(0.0, self._counted_at + COUNT_SECONDS - time.monotonic())

    def close(self) -> None:
        """Close the client and end its thread, which would otherwise keep trying to reconnect to a lost scheduler."""
        with suppress(Exception):  # the scheduler may be gone by now
            self.client.close(timeout=CONNECT_SECONDS)

    def lost(self) -> CalibrantError:
        """Close the connection and return the error about the lost scheduler."""
        self.close()
        message = f"the scheduler at {self.address} is lost; start it again, then the same command goes on from here"
        return CalibrantError(message)

    @contextmanager
    def errors_in_one_line(self) -> Iterator[None]:
        """Turn the library's exceptions into one-line errors, and drop its warnings about them."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                yield
        except CalibrantError:
            raise
        except Exception as error:
            if not self.alive or isinstance(error, OSError | TimeoutError):
                raise self.lost() from None
            raise CalibrantError(f"the cluster at {self.address}: {error_line(error)}") from None


_connections: dict[str, Connection] = {}


def connect(address: str) -> Connection:
    """Return the connection to a scheduler, one for all executors of a command."""
    if not ADDRESS_FORM.fullmatch(address):
        raise CalibrantError(
            f"{short_repr(address)} is no address of a cluster; give tcp://HOST:PORT or tls://HOST:PORT"
        )
    connection = _connections.get(address)
    if connection is None or not connection.alive:
        disconnect(address)
        _connections[address] = connection = Connection(address)
    return connection


def disconnect(address: str) -> None:
    """Close the connection to a scheduler, if there is one."""
    if (connection := _connections.pop(address, None)) is not None:
        connection.close()


def _client(address: str) -> Client:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from distributed import Client, Security
    except ImportError:
        message = "dask.distributed is missing; run: pip install 'calibrant[cluster]'"
        raise MissingExtraError(message) from None
    _silence()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # versions are compared by each job
            security = Security().get_connection_args("client")
            if address.startswith("tls") and security["ssl_context"] is None:
                raise CalibrantError(f"{address}: {NO_CERTIFICATE}")
            # checked first: `Client` hangs, or prints a traceback later, if no program answers or one of another kind
            asyncio.run(asyncio.wait_for(_require_scheduler(address, security), CONNECT_SECONDS + ABORT_SECONDS))
            return Client(address, timeout=CONNECT_SECONDS, set_as_default=False, name="calibrant")
    except CalibrantError:
        raise
    except OSError as error:  # time limits too
        why = f"no scheduler answers at {address} in {CONNECT_SECONDS:.0f} seconds: {error_line(error)}"
        raise CalibrantError(why) from None
    except Exception as error:  # the library raises many kinds of errors for bytes of other protocols
        why = f"what answers at {address} is no scheduler of dask.distributed: {error_line(error)}"
        raise CalibrantError(why) from None


async def _require_scheduler(address: str, security: dict[str, Any]) -> None:
    """Request the identity at an address over a separate connection; `CalibrantError` for anything but a scheduler."""
    from distributed.core import connect

    comm = await connect(address, timeout=CONNECT_SECONDS, **security)
    try:
        await comm.write({"op": "identity", "reply": True})
        answer = await comm.read()
    finally:
        comm.abort()
    if not isinstance(answer, dict) or answer.get("type") != "Scheduler":
        raise CalibrantError(f"{address} is no scheduler of dask.distributed")


def _silence() -> None:
    for name in [*LOGGERS, *logging.root.manager.loggerDict]:
        if name.partition(".")[0] in LOGGERS:
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)


J = TypeVar("J")
K = TypeVar("K")
T = TypeVar("T")

MAX_INLINE_BYTES = 100_000  # largest setup that is sent with each of its jobs; a larger one is sent to each worker once


class Cluster:
    """Executor on the workers of a scheduler. Leaving the context cancels jobs that no worker has begun."""

    def __init__(self, prepare: Callable[[], None], address: str, wall_budget: float | None) -> None:
        self._prepare = prepare
        self._wall_budget = wall_budget
        self._connection: Connection = connect(address)
        self._running: dict[Future, list[Any]] = {}  # future of a batch -> keys of its jobs
        self._lost: list[Future] = []  # futures whose result was lost with its worker; they are polled

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
        """Yield each job's key and result, as results arrive."""
        if not jobs:
            return
        with self._connection.errors_in_one_line():
            setup = self._shared_setup(do)
        done: SimpleQueue[Future] = SimpleQueue()
        waiting = Batcher(jobs)
        while waiting or self._running:
            with self._connection.errors_in_one_line():
                self._send_out(waiting, setup, done)
                results = self._results([*_drain(done, self._connection.seconds_to_count()), *self._lost], waiting)
            yield from results

    def _shared_setup(self, do: Callable[[J], T]) -> bytes | Future:
        """Return the pickled setup for its jobs, or for a large one a future that workers copy from each other."""
        from cloudpickle import dumps  # pickles the code of classes that only this process can import

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
        """Return (key, result) of the jobs of these futures, and requeue jobs without a result."""
        ended = [(future, future.status) for future in futures]  # each status is read once, as it may change
        if not (self._connection.alive and {status for _, status in ended} <= {"finished", "error", "lost"}):
            raise self._connection.lost()
        # polled, because the recomputation of a lost result triggers no callback
        self._lost = [future for future, status in ended if status == "lost"]
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

    def _gather(self, finished: list[Future]) -> list[tuple[Future, Any]]:
        """Return finished futures with their results; none if one was lost and its recomputation killed workers."""
        from distributed import KilledWorker

        try:
            return list(zip(finished, self._connection.client.gather(finished), strict=True))
        except KilledWorker:
            self._lost += finished
            return []

    def _failure(self, future: Future) -> Failure:
        from distributed import KilledWorker

        error = future.exception()
        if isinstance(error, KilledWorker):
            return Failure("crashed", "the workers that had it died, one after the other")
        raise CalibrantError(f"the cluster cannot do the jobs: {error_line(error)}")


def _drain(done: SimpleQueue[Future], seconds: float) -> list[Future]:
    """Return the futures that are done; wait up to `seconds` for the first."""
    futures: list[Future] = []
    with suppress(Empty):
        futures.append(done.get(timeout=seconds))
        while True:
            futures.append(done.get_nowait())
    return futures


def _identity(setup: bytes) -> bytes:
    return setup
