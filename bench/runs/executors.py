"""Jobs of a run, and executors: in this process, in processes of this machine, and workers of a cluster."""

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
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from concurrent.futures import TimeoutError as OutOfTime
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import Enum
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version
from itertools import islice
from multiprocessing import resource_tracker
from multiprocessing.connection import wait as wait_for_any
from multiprocessing.context import ForkProcess, SpawnContext, SpawnProcess
from multiprocessing.process import BaseProcess
from pathlib import Path
from threading import Thread
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeVar

from calibrant.bench.version import program_version
from calibrant.dsl.errors import CalibrantError, MissingExtraError, in_one_line
from calibrant.dsl.kernel_cache import CompileListener
from calibrant.dsl.memory import collect_rarely

if TYPE_CHECKING:
    from pebble import ProcessPool  # not at runtime: it imports asyncio, 60 ms

# --- Independent jobs and their execution; a failing job does not affect others ---------------------------------------
Progress = Callable[[str, int, int], None]
"""Progress callback: (name of the pool, number of instances done, number in all)."""

# types of jobs, of their keys, and of their results
J = TypeVar("J")
K = TypeVar("K")
T = TypeVar("T")

MAX_ERROR_CHARS = 300  # length of an exception's text in a record


@dataclass(frozen=True, slots=True)
class Execution:
    """Executor and time limit of jobs. Results depend on it only through the time limit.

    workers: number of processes on this machine; ignored with a cluster
    wall_budget: seconds after which the process of a job is killed; None for no limit
    cluster: address of a dask.distributed scheduler, whose workers run the jobs
    max_local_jobs: largest number of jobs that run in this process if there is no wall budget
    may_copy: the processes of a `SharingExecutor` may be copies of this one; only for the command, which knows that no
        library in its process has threads that a copy would miss
    """

    workers: int = 1
    wall_budget: float | None = None
    cluster: str | None = None
    max_local_jobs: int = 0
    may_copy: bool = False


HERE = Execution()  # one process of this machine, without a time limit


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a job has no result. error: one line.

    outcome: out_of_budget if the process was killed after `wall_budget` seconds; crashed if the job raised an
        exception or its process ended by itself
    """

    outcome: Literal["out_of_budget", "crashed"]
    error: str


class Executor(Protocol):
    """Executor of jobs; yields each result exactly once, in any order. Its processes may start with the call."""

    def as_completed(self, do: Callable[[J], T], jobs: Mapping[K, J]) -> Iterator[tuple[K, T | Failure]]: ...


class Jobs(Mapping[K, J]):
    """Jobs that are made when they are run, so that only running ones are in memory."""

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


def prepare_nothing() -> None:
    """Do nothing; for jobs that need no setup."""


def run_job(do: Callable[[J], T], job: J) -> T | Failure:
    """Run a job in this process; return its result or a `Failure`."""
    try:
        return do(job)
    except MissingExtraError:  # every job would fail: the user has to install a package first
        raise
    except Exception as error:  # becomes the job's result, so that the other jobs run
        return Failure("crashed", error_line(error))


def error_line(error: BaseException) -> str:
    """Return type and text of an exception in one line; only the text of a `CalibrantError`, which is for users."""
    text = one_line(error)
    return text if isinstance(error, CalibrantError) else f"{type(error).__name__}: {text}"


def one_line(error: BaseException) -> str:
    """Return the text of an exception with white space joined, cut to MAX_ERROR_CHARS."""
    try:
        text = str(error)
    except Exception:  # `__str__` of a foreign class may fail
        text = "its text cannot be read"
    return in_one_line(" ".join(text.split()))[:MAX_ERROR_CHARS]


# --- End a spawned process with its parent, however the parent ended --------------------------------------------------
PR_SET_PDEATHSIG = 1  # option of prctl(2): signal to this process when the thread that started it ends


def end_with_parent() -> None:
    """End this spawned process when its parent ends; called first in it.

    On Linux the kernel kills it at once. Elsewhere a thread does, which has to wait until compiled code returns.
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
    """Make Linux kill this process, even in compiled code, when the thread that started it ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _watch(parent: int) -> None:
    wait_for_any([parent])
    os._exit(1)


# --- Jobs in processes of this machine --------------------------------------------------------------------------------
# A job in its own process can be killed at its time limit, can crash alone, and leaves the cluster's worker free to
# answer the scheduler while compiled code runs. The process is reused for later jobs, also of other runs.
JOBS_AHEAD = 64  # jobs scheduled ahead for each process
SHARED_JOBS_AHEAD = 2  # fewer if this process runs jobs too: it cannot take back a job scheduled for another process
# The thread that runs jobs lets the pool's threads send a job to a process after this time. After Python's 5 ms each of
# four threads waits as long as a short job takes: of 4,000 audits of 5 ms the other process got 500, now 2,100.
SHARED_SWITCH_SECONDS = 0.001


class InProcessExecutor:
    """Executor that runs jobs one after the other in this process."""

    def as_completed(self, do: Callable[[J], T], jobs: Mapping[K, J]) -> Iterator[tuple[K, T | Failure]]:
        for key, job in jobs.items():
            yield key, run_job(do, job)


class SpawnedExecutor:
    """Executor in spawned processes, started at first use. Leaving the context stops them at once.

    prepare: called once in each process before its first job
    """

    def __init__(self, prepare: Callable[[], None], execution: Execution) -> None:
        self._prepare = prepare
        self._num_workers = execution.workers
        self._jobs_ahead = JOBS_AHEAD * execution.workers
        self._wall_budget = execution.wall_budget
        self._max_local_jobs = execution.max_local_jobs if execution.wall_budget is None else 0
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
        """Yield keys and results. If a process dies between two jobs, a new pool runs the remaining jobs."""
        if self._pool is None and len(jobs) <= self._max_local_jobs:
            if not self._is_prepared:
                self._prepare()
            self._is_prepared = True
            return InProcessExecutor().as_completed(do, jobs)
        self._pool = self._pool or self._make_pool()
        return self._run(self._pool, do, jobs)

    def _run(self, pool: ProcessPool, do: Callable[[J], T], jobs: Mapping[K, J]) -> Iterator[tuple[K, T | Failure]]:
        remaining = dict.fromkeys(jobs)
        while remaining:
            num_before = len(remaining)
            for key, result in self._run_until_broken(pool, do, jobs, tuple(remaining)):
                del remaining[key]
                yield key, result
            if remaining:
                stop_pool(pool)
                if len(remaining) == num_before:
                    raise CalibrantError("worker processes die before they answer anything; try --workers 1")
                pool = self._pool = self._make_pool()

    def _make_pool(self) -> ProcessPool:
        return spawn_pool(self._num_workers, self._prepare)

    def _run_until_broken(
        self, pool: ProcessPool, do: Callable[[J], T], jobs: Mapping[K, J], keys: Iterable[K]
    ) -> Iterator[tuple[K, T | Failure]]:
        """Yield keys and results until all jobs are done or the pool breaks."""
        scheduled: dict[Future[T | Failure], K] = {}
        waiting, is_broken = iter(keys), False
        while True:
            for key in () if is_broken else islice(waiting, self._jobs_ahead - len(scheduled)):
                job = jobs[key]
                try:
                    scheduled[self._schedule(pool, do, job)] = key
                except RuntimeError:  # the pool broke, but no future has raised an error yet
                    is_broken = True
                    break
            if not scheduled:
                return
            for future in wait(scheduled, return_when=FIRST_COMPLETED).done:
                key = scheduled.pop(future)
                try:
                    result = outcome_of(future, self._wall_budget)
                except BrokenExecutor:
                    is_broken = True
                    continue
                yield key, result

    def _schedule(self, pool: ProcessPool, do: Callable[[J], T], job: J) -> Future[T | Failure]:
        with _ignore_control_c():
            return pool.schedule(run_job, args=(do, job), timeout=self._wall_budget)


class SharingExecutor(SpawnedExecutor):
    """A `SpawnedExecutor` with one process less, for jobs without setup: a thread of this process runs jobs too.

    If `may_copy`, its processes begin as copies of this one where that is safe (`_CopyContext`). No job can be killed:
    there is no wall budget, and the thread's job goes on when the context is left, until it or the process ends.
    """

    def __init__(self, execution: Execution) -> None:
        super().__init__(prepare_nothing, replace(execution, workers=execution.workers - 1, wall_budget=None))
        self._jobs_ahead = SHARED_JOBS_AHEAD * execution.workers
        self._may_copy = execution.may_copy
        self._here: Future[Any] | None = None

    def as_completed(self, do: Callable[[J], T], jobs: Mapping[K, J]) -> Iterator[tuple[K, T | Failure]]:
        before = sys.getswitchinterval()
        sys.setswitchinterval(SHARED_SWITCH_SECONDS)
        try:
            yield from super().as_completed(do, jobs)
        finally:
            sys.setswitchinterval(before)

    def _make_pool(self) -> ProcessPool:
        if not self._may_copy:
            return super()._make_pool()
        pool = _make_process_pool(self._num_workers, self._prepare, _CopyContext())
        with _ignore_control_c():
            _ = pool.active  # starts the processes, before this process has a thread for jobs
        return pool

    def _schedule(self, pool: ProcessPool, do: Callable[[J], T], job: J) -> Future[T | Failure]:
        if self._here is not None and not self._here.done():
            return super()._schedule(pool, do, job)
        self._here = future = Future[T | Failure]()
        Thread(target=_fulfil, args=(future, do, job), daemon=True).start()
        return future


def _fulfil(future: Future[T | Failure], do: Callable[[J], T], job: J) -> None:
    try:
        future.set_result(run_job(do, job))
    except BaseException as error:
        future.set_exception(error)


class _CopyContext(SpawnContext):
    """Context whose processes are copies of this one (`fork`) as long as it has one thread, else spawned.

    A copy has no threads but the locks that they held, so it could wait for one forever. It needs no imports, which
    take a spawned process .9 s.
    """

    @staticmethod
    def Process(*arguments: Any, **named: Any) -> BaseProcess:  # type: ignore[override]  # noqa: N802  # their name
        if sys.platform == "linux" and threading.active_count() == 1:  # elsewhere libraries of the system use threads
            return ForkProcess(*arguments, **named)
        return SpawnProcess(*arguments, **named)


def spawn_pool(workers: int, prepare: Callable[[], None]) -> ProcessPool:
    """Make a pool of spawned processes, which unlike copies of this process inherit no threads and locks."""
    return _make_process_pool(workers, prepare, multiprocessing.get_context("spawn"))


def _make_process_pool(workers: int, prepare: Callable[[], None], context: SpawnContext) -> ProcessPool:
    from pebble import ProcessPool

    return ProcessPool(workers, initializer=partial(_start, prepare, CompileListener.listener), context=context)


@contextmanager
def _ignore_control_c() -> Iterator[None]:
    """Block Control-C in processes that are started within the context; this process handles it and ends them.

    Otherwise a process that is starting would print a traceback.
    """
    if sys.platform == "win32" or not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # before the signal is blocked: its start would unblock it
    previous_mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, previous_mask)


def stop_pool(pool: ProcessPool) -> None:
    """End the processes of a pool at once."""
    pool.stop()  # type: ignore[no-untyped-call]
    pool.join()


def outcome_of(future: Future[T | Failure], wall_budget: float | None) -> T | Failure:
    """Return the result of a job in a pool, or a `Failure`; `BrokenExecutor` if a new pool has to run the job again."""
    from pebble import ProcessExpired

    try:
        return future.result()
    except OutOfTime:
        return Failure("out_of_budget", f"not done in {wall_budget} seconds")
    except ProcessExpired as error:
        return Failure("crashed", f"the worker process ended with exit code {error.exitcode}")


# Free memory that a process keeps, in glibc. By default it returns all over 128 kB after an array and asks for it again
# for the next: these page faults took an eighth of the processor time of `run exact` on blickets.
KEPT_BYTES = 32 << 20


def _start(prepare: Callable[[], None], listener: Callable[[str], None] | None) -> None:
    end_with_parent()
    collect_rarely()  # saves a tenth of the time with many items
    bytearray(KEPT_BYTES // 2)  # freed at once: from then on the C library keeps twice as much
    CompileListener.listener = listener
    prepare()


# --- Versions that must be equal on all machines of a run, because results depend on them -----------------------------
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
    """Return the versions of Python, this program's code, and the libraries that results depend on."""
    return {
        "Python": ".".join(platform.python_version_tuple()[:2]),
        "calibrant": f"{program_version()} with code {digest_sources()}",
        **{name: _version(name) for name in LIBRARIES},
    }


def difference(local: Mapping[str, str], remote: Mapping[str, str]) -> str:
    """Return the first difference, such as "numpy 2.4.6 here, 2.3.0 there"; empty if there is none."""
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


_ROOT = Path(__file__).resolve().parents[2]  # root of a checkout, or the folder of the installed package


def digest_sources(root: Path = _ROOT) -> str:
    """Return a digest of the sources of a checkout or installation: different sources may have one version number."""
    digest = hashlib.sha256()
    for name in PACKAGES:
        for path in sorted((root / name).rglob("*.py")):
            digest.update(f"{path.relative_to(root).as_posix()}\n".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


# --- Jobs of a batch on a worker of a cluster -------------------------------------------------------------------------
BATCH_SECONDS = 0.5  # after this time a worker begins no further job of a batch (`calibrant.bench.runs.cluster`)
MAX_SETUPS = 2  # setups that a process keeps; one may hold whole pools
MAX_ATTEMPTS = 3  # deaths of a process during setup before an error
# Dask's nanny sets this variable so that its worker returns memory early. A process of jobs would then return the
# memory of each array and request it again for the next: thousands of page faults a second.
TRIM_VARIABLE = "MALLOC_TRIM_THRESHOLD_"


class _Missing(Enum):
    """Result of a process that lacks the setup because it is new or was replaced."""

    SETUP = "setup"


@dataclass(frozen=True)
class JobSetup:
    """Functions shared by the jobs of one run.

    functions: pickled (prepare, do); only the process that runs the jobs unpickles them, and so imports their modules
    digest: digest of `functions`
    """

    functions: bytes
    digest: str
    wall_budget: float | None
    versions: Mapping[str, str]


class BatchResult(NamedTuple):
    """Results of a batch.

    results: result or `Failure` of each job, in order, without the jobs that had not begun after BATCH_SECONDS
    early: whether the batch took less than half of BATCH_SECONDS, so that the next one may be larger
    """

    results: list[Any]
    early: bool


def do_jobs(batch: bytes, setup: bytes) -> BatchResult | CalibrantError:
    """Return the results of jobs, or the error why no job can run on this worker.

    batch: pickled list of pickled jobs; setup: pickled `JobSetup`; both are bytes, which the scheduler passes unread
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
            result = _thread_local.process().run(job, job_setup)
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
    """The process that runs the jobs of a worker's thread; a new one replaces it if it dies."""

    def __init__(self) -> None:
        multiprocessing.current_process().daemon = False  # Dask's worker is a daemon, which may have no children
        self._pool: ProcessPool | None = None

    def run(self, job: bytes, setup: JobSetup) -> Any:
        """Return the result of a job, after setting up the process if necessary; `CalibrantError` if that fails."""
        for _ in range(MAX_ATTEMPTS):
            result = self._call(_run, setup.wall_budget, job, setup.digest)
            if result is not _Missing.SETUP:
                return result
            self._call(_set_up, None, setup.functions, setup.digest)  # if this fails too, the next attempt sees it
        raise CalibrantError("worker processes die before they answer anything")

    def _call(self, do: Callable[..., T], wall_budget: float | None, *arguments: object) -> T | Failure | _Missing:
        if self._pool is None:
            os.environ.pop(TRIM_VARIABLE, None)
            self._pool = spawn_pool(1, prepare_nothing)
        try:
            return outcome_of(self._pool.schedule(do, args=arguments, timeout=wall_budget), wall_budget)
        except RuntimeError:  # it died between two jobs
            stop_pool(self._pool)
            self._pool = None
            return _Missing.SETUP


class _ThreadLocal(threading.local):
    def __init__(self) -> None:
        self._process: _WorkerProcess | None = None

    def process(self) -> _WorkerProcess:
        if self._process is None:
            self._process = _WorkerProcess()
        return self._process


_thread_local = _ThreadLocal()
_functions_by_digest: dict[str, Callable[[Any], Any] | CalibrantError] = {}


def _set_up(functions: bytes, digest: str) -> None:
    """Prepare this process for the jobs of a setup; an error becomes the result of each of them."""
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
    """Run a job in this process; return `_Missing.SETUP` if the process lacks the setup of that digest."""
    do = _functions_by_digest.get(digest)
    if do is None:
        return _Missing.SETUP
    if isinstance(do, CalibrantError):
        return do
    try:
        return run_job(lambda pickled: do(pickle.loads(pickled)), job)
    except MissingExtraError as error:
        return error
