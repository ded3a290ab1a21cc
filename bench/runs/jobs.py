"""Independent jobs and how they are executed; a job that fails costs the others nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol, TypeVar

from calibrant.dsl.errors import CalibrantError, MissingExtraError, in_one_line

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
    """

    workers: int = 1
    wall_budget: float | None = None
    cluster: str | None = None


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
