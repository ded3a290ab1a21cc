"""Jobs of a run, and executors that do them: in this process, in processes of this machine, on a cluster."""

from __future__ import annotations

import ctypes
import hashlib
import multiprocessing
import os
import pickle
import platform
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from concurrent.futures import TimeoutError as OutOfTime
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version
from itertools import islice
from math import ceil
from multiprocessing import resource_tracker
from multiprocessing.connection import wait as wait_for_any
from pathlib import Path
from threading import Thread
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeVar

from calibrant.bench.version import program_version
from calibrant.dsl.errors import CalibrantError, MissingExtraError, in_one_line
from calibrant.dsl.kernel_cache import CompileListener
from calibrant.dsl.memory import collect_rarely

if TYPE_CHECKING:
    from pebble import ProcessPool  # imports asyncio, 60 ms, which few items in this process do not need

# --- Independent jobs and how they are executed; a job that fails costs the others nothing ----------------------------
Progress = Callable[[str, int, int], None]
"""Called with the pool's name, how many of its instances are done, and how many there will be."""

# types of jobs, of their keys, and of their results
J = TypeVar("J")
K = TypeVar("K")
T = TypeVar("T")

MAX_ERROR_CHARS = 300


@dataclass(frozen=True, slots=True)
class Execution:
    """Place where jobs run, and time limit of each. Results do not depend on it, except that a budget may run out.

    workers: processes on this machine; ignored with a cluster
    wall_budget: seconds after which the process of a job is killed
    cluster: address of a dask.distributed scheduler, whose workers run the jobs
    few_jobs: so many jobs, or fewer, run in this process where none may have to be killed
    """

    workers: int = 1
    wall_budget: float | None = None
    cluster: str | None = None
    few_jobs: int = 0


HERE = Execution()  # one process of this machine, without a time limit


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a job has no result; error: one line.

    outcome: out_of_budget if the process was killed after `wall_budget` seconds; crashed for an exception, or if the
        process ended by itself
    """

    outcome: Literal["out_of_budget", "crashed"]
    error: str


class Executor(Protocol):
    """Something that runs jobs; results come in any order, each exactly once."""

    def as_completed(self, do: Callable[[J], T], jobs: Mapping[K, J]) -> Iterator[tuple[K, T | Failure]]: ...


class Jobs(Mapping[K, J]):
    """Jobs that are made when they are run: only those that are running are in memory."""

    def __init__(self, keys: Iterable[K], make: Callable[[K], J]) -> None:
        self._keys = dict.fromkeys(keys)
        self._make = make

    def __getitem__(self, key: K) -> J:
        if key not in self._keys:
            raise KeyError(key)
        return self._make(key)

    def __iter__(self) -> Iterator[K]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)


def run_job(do: Callable[[J], T], job: J) -> T | Failure:
    """Run a job in this process; return its result or a `Failure`."""
    try:
        return do(job)
    except MissingExtraError:  # no job can be done; the reader has to install something first
        raise
    except Exception as error:  # a result too: it must not cost the other jobs
        return Failure("crashed", error_line(error))


def error_line(error: BaseException) -> str:
    """Return an exception in one line, after its type unless it is a `CalibrantError`, whose text is for users."""
    text = one_line(error)
    return text if isinstance(error, CalibrantError) else f"{type(error).__name__}: {text}"


def one_line(error: BaseException) -> str:
    """Return the text of an exception with white space joined, cut to MAX_ERROR_CHARS."""
    try:
        text = str(error)
    except Exception:  # of a class of somebody else's
        text = "its text cannot be read"
    return in_one_line(" ".join(text.split()))[:MAX_ERROR_CHARS]


# --- Executors of jobs on this machine: batches of jobs in worker processes, and what a worker does -------------------
# In a process of its own a job can be killed when its time is up, takes nothing with it when it dies, and leaves the
# worker free to answer the scheduler while compiled code runs. It is kept for the next job, whichever run that is of.
#
# A message costs the same for a job of a millisecond as for one of an hour. So batches of short jobs grow until they
# take about BATCH_SECONDS. A worker that was sent more than it did in this time returns the rest, so a long job holds
# up little but itself. The last jobs, as many as can run at once, wait here for an idle worker: a batch that waits
# behind a long job elsewhere comes late, and all wait for it.
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


class InProcessExecutor:
    """Runs one job after the other, in this process."""

    def as_completed(self, do: Callable[[J], T], jobs: Mapping[K, J]) -> Iterator[tuple[K, T | Failure]]:
        for key, job in jobs.items():
            yield key, run_job(do, job)


class SpawnedExecutor:
    """A pool of spawned processes, started by the first jobs that need it. Leaving the context stops them at once."""

    def __init__(self, prepare: Callable[[], None], execution: Execution) -> None:
        self._prepare = prepare
        self._num_workers = execution.workers
        self._wall_budget = execution.wall_budget
        self._few_jobs = execution.few_jobs if execution.wall_budget is None else 0
        self._pool: ProcessPool | None = None
        self._is_prepared = False

    def __enter__(self) -> SpawnedExecutor:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._pool is not None:
            stop_pool(self._pool)

    def as_completed(self, do: Callable[[J], T], jobs: Mapping[K, J]) -> Iterator[tuple[K, T | Failure]]:
        """Yield keys and results. A process that dies between two jobs breaks the pool; a new one runs the rest."""
        if self._pool is None and len(jobs) <= self._few_jobs:
            if not self._is_prepared:
                self._prepare()
            self._is_prepared = True
            yield from InProcessExecutor().as_completed(do, jobs)
            return
        pool = self._pool = self._pool or spawn_pool(self._num_workers, self._prepare)
        remaining = dict.fromkeys(jobs)
        while remaining:
            num_before = len(remaining)
            for key, result in self._until_broken(pool, do, jobs, tuple(remaining)):
                del remaining[key]
                yield key, result
            if remaining:
                stop_pool(pool)
                if len(remaining) == num_before:
                    raise CalibrantError("worker processes die before they answer anything; try --workers 1")
                pool = self._pool = spawn_pool(self._num_workers, self._prepare)

    def _until_broken(
        self, pool: ProcessPool, do: Callable[[J], T], jobs: Mapping[K, J], keys: Iterable[K]
    ) -> Iterator[tuple[K, T | Failure]]:
        scheduled: dict[Future[T | Failure], K] = {}
        waiting, broken = iter(keys), False
        while True:
            for key in () if broken else islice(waiting, JOBS_AHEAD * self._num_workers - len(scheduled)):
                job = jobs[key]
                try:
                    with _ignore_control_c():
                        scheduling = pool.schedule(run_job, args=(do, job), timeout=self._wall_budget)
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
                except BrokenExecutor:
                    broken = True
                    continue
                yield key, result


def spawn_pool(workers: int, prepare: Callable[[], None]) -> ProcessPool:
    """Start a pool of fresh processes, which inherit no thread and no lock of this one."""
    from pebble import ProcessPool

    context = multiprocessing.get_context("spawn")
    return ProcessPool(workers, initializer=partial(_start, prepare, CompileListener.listener), context=context)


@contextmanager
def _ignore_control_c() -> Iterator[None]:
    """Block Control-C for processes started meanwhile: this process gets it and ends them.

    A process that is just starting would print a traceback.
    """
    if sys.platform == "win32" or not hasattr(signal, "pthread_sigmask"):
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

    `BrokenExecutor` if the pool has to be replaced, and the job done again.
    """
    from pebble import ProcessExpired

    try:
        return future.result()
    except OutOfTime:
        return Failure("out_of_budget", f"not done in {wall_budget} seconds")
    except ProcessExpired as error:
        return Failure("crashed", f"the worker process ended with exit code {error.exitcode}")


def _start(prepare: Callable[[], None], listener: Callable[[str], None] | None) -> None:
    end_with_parent()
    collect_rarely()  # as the command's own process does: a tenth of the time of many items
    CompileListener.listener = listener
    prepare()


# --- Versions that must be equal on all machines of a run: results depend on nothing else of a machine ----------------
PACKAGES = ("dsl", "solvers", "audits", "baselines", "bench")
LIBRARIES = (
    "numpy",
    "numba",
    "msgspec",
    "python-sat",
    "z3-solver",
    "distributed",
    "causal-learn",
    "gies",
    "pgmpy",
    "scipy",
)
ABSENT = "absent"


@cache
def versions() -> Mapping[str, str]:
    """Return the versions in this process: of Python, our code, and the libraries that results come from."""
    return {
        "Python": ".".join(platform.python_version_tuple()[:2]),
        "calibrant": f"{program_version()} with code {_code()}",
        **{name: _version(name) for name in LIBRARIES},
    }


def difference(local: Mapping[str, str], remote: Mapping[str, str]) -> str:
    """Return the first thing that differs, as "numpy 2.4.6 here, 2.3.0 there"; empty if nothing does."""
    for name in [*local, *(remote.keys() - local.keys())]:
        local_version, remote_version = local.get(name, ABSENT), remote.get(name, ABSENT)
        if local_version != remote_version:
            return f"{name} {local_version} here, {remote_version} there"
    return ""


def _version(library: str) -> str:
    try:
        return version(library)
    except PackageNotFoundError:
        return ABSENT


def _code() -> str:
    """Return a digest of our sources: two checkouts may have one version."""
    folders = {name: Path(__file__).resolve().parents[3] / name for name in PACKAGES}
    digest = hashlib.sha256()
    for name, folder in folders.items():
        for path in sorted(folder.rglob("*.py")):
            digest.update(f"{name}/{path.relative_to(folder).as_posix()}\n".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


# --- Jobs that wait for workers elsewhere, in batches: what one message carries there ---------------------------------
BATCH_SECONDS = 0.5  # after which a worker begins no other job of a batch
MAX_BATCH_JOBS = 64
FIRST_BATCH_JOBS = 8  # before any job was timed; a message costs as much as a tenth of an audit
# batches that each of the workers' slots should still get, so that all of them end at about the same time
BATCHES_PER_SLOT = 1.5
MIN_BATCH_PART = 4  # but no batch is smaller than such a part of what takes BATCH_SECONDS
BATCHES_AHEAD = 2  # batches sent out for each slot, so that none waits for the next message


class Batcher:
    """Queue of jobs that were not sent out, or came back; gives batches by the keys of the jobs."""

    def __init__(self, jobs: Mapping[Any, Any]) -> None:
        self._jobs = jobs
        self._waiting = deque(jobs)
        self._suspects: deque[Any] = deque()
        self._last_suspect: list[Any] = []  # the one that was sent out last, alone
        self._size = FIRST_BATCH_JOBS

    def __bool__(self) -> bool:
        return bool(self._waiting or self._suspects)

    def next(self, slots: int, num_out: int) -> list[dict[Any, Any]]:
        """Return what each slot begins with first, or what may follow that; nothing while there is enough to do.

        slots: how many jobs can run at once; num_out: batches sent out that are not back. A suspect is sent out only
        when none are, after all other jobs
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
        before_the_last = max(1, len(self._waiting) - slots)
        fair = ceil(len(self._waiting) / (BATCHES_PER_SLOT * slots))
        size = min(self._size, max(fair, self._size // MIN_BATCH_PART), before_the_last)
        return {key: self._jobs[key] for key in [self._waiting.popleft() for _ in range(size)]}

    def requeue_rest(self, keys: list[Any], num_done: int, early: bool) -> None:
        """Requeue the unfinished rest of a batch and adapt the batch size.

        num_done: the first so many jobs are done; early: the batch took less than half of BATCH_SECONDS
        """
        self._waiting.extendleft(reversed(keys[num_done:]))
        if num_done < len(keys):
            self._size = max(1, num_done)
        elif early:
            self._size = min(MAX_BATCH_JOBS, max(self._size, 2 * num_done))

    def suspect_jobs(self, keys: list[Any]) -> list[Any]:
        """Return the jobs of a batch that killed its workers: none before each was tried alone.

        Any job that a worker had may be the one, also of another batch.
        """
        if keys == self._last_suspect:
            return keys
        self._suspects.extend(keys)
        return []


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
        except RuntimeError:  # it died between two jobs
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
