"""Resumable generation of pools: every instance is appended to a file beside the pool as soon as it is done.

While OUT is generated there is a folder OUT.unfinished, from which the same command resumes after an interruption; it
is removed once OUT is written. The pool depends on the request alone: not on the number of workers, the order in which
they finish, or interruptions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec

from calibrant.bench.runs.executors import HERE, Execution, Failure, Jobs, Progress
from calibrant.bench.runs.records import JsonlFile, RecordKind, config_digest
from calibrant.bench.runs.workers import as_completed
from calibrant.bench.version import program_version
from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.replayscm.item import Problem
from calibrant.dsl.replayscm.pools.files import file_record
from calibrant.dsl.replayscm.pools.records import ProblemRecord, problem_from_record

J = TypeVar("J")


class Made(NamedTuple):
    """An instance, and the report of its generation, ready for JSON."""

    problem: Problem
    report: dict[str, Any]


class MadeInstances(NamedTuple):
    """The instances of a pool and their reports, in order; long pools are read from the file as needed."""

    problems: Sequence[Problem]
    reports: Sequence[dict[str, Any]]


class _Key(NamedTuple):
    work: str
    place: int


class _Line(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A line of the file of finished instances.

    work: digest of the request and of the program's version; place: index of the instance in the new pool
    """

    work: str
    place: int
    problem: ProblemRecord
    report: dict[str, Any] = msgspec.field(name="told")
    version: int = 1

    @property
    def key(self) -> _Key:
        return _Key(self.work, self.place)


class _Problem(msgspec.Struct):
    """Instance of a line."""

    problem: ProblemRecord


class _Report(msgspec.Struct):
    """Report of a line."""

    report: dict[str, Any] = msgspec.field(name="told")


def _problem(line: bytes) -> Problem:
    return problem_from_record(msgspec.json.decode(line, type=_Problem).problem)


def _report(line: bytes) -> dict[str, Any]:
    return msgspec.json.decode(line, type=_Report).report


_LINES = RecordKind("instances", "an unfinished pool", _Line, 1, lambda line: line.key)


class UnfinishedPool:
    """Finished instances of a pool that is not yet written to its file."""

    def __init__(self, folder: Path, request: Mapping[str, Any]) -> None:
        """Open the folder of a request.

        request: everything that decides the output, ready for JSON
        """
        self._file = JsonlFile(folder, _LINES)
        self._work = config_digest({**request, "program": program_version()})

    def make(
        self,
        name: str,
        jobs: Mapping[str, J],
        make: Callable[[J], Made],
        *,
        execution: Execution = HERE,
        progress: Progress = lambda name, done, total: None,
    ) -> MadeInstances:
        """Return the instances in the order of their jobs; jobs: name of an instance in errors -> job.

        `CalibrantError` for an instance that cannot be made; the others are kept for the next attempt.
        """
        names = list(jobs)
        keys = [_Key(self._work, place) for place in range(len(names))]
        pending = Jobs((key for key in keys if key not in self._file.keys), lambda key: jobs[names[key.place]])
        progress(name, len(keys) - len(pending), len(keys))
        failures: dict[str, str] = {}
        for done, (key, result) in enumerate(as_completed(make, pending, execution), len(keys) - len(pending) + 1):
            if isinstance(result, Failure):
                failures[names[key.place]] = result.error
            else:
                self._file.append(_Line(self._work, key.place, file_record(result.problem), result.report))
            progress(name, done, len(keys))
        if failures:
            instance = min(failures, key=names.index)
            more_text = f", and {len(failures) - 1} more instances" if len(failures) > 1 else ""
            raise CalibrantError(
                f"{instance}: {failures[instance]}{more_text}; nothing is written, what is done is kept"
            )
        lines = self._file.find_lines(keys)
        return MadeInstances(lines.read_as(_problem), lines.read_as(_report))

    def close(self) -> None:
        self._file.__exit__(None, None, None)


@contextmanager
def unfinished_pool(out: Path, request: Mapping[str, Any]) -> Iterator[UnfinishedPool]:
    """Open the unfinished pool of `out`; its folder is removed when the block, which writes `out`, succeeds."""
    if out.is_dir() or not out.parent.is_dir():  # before the work
        raise CalibrantError(f"{out}: {'it is a folder' if out.is_dir() else 'no such folder'}")
    folder = out.with_name(f"{out.name}.unfinished")
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()) or _has_foreign_files(folder):
        conflict = "something else of that name is there; move it, or choose another name"
        raise CalibrantError(f"{folder}: unfinished work is kept there, but {conflict}")
    work = UnfinishedPool(folder, request)
    try:
        yield work
    finally:
        work.close()
    for path in folder.iterdir():
        if path.name in _OWN_NAMES:
            path.unlink()
    if not any(folder.iterdir()):  # another process may have written here since
        folder.rmdir()


_OWN_NAMES = (_LINES.file_name, f"{_LINES.name}.lock")


def _has_foreign_files(folder: Path) -> bool:
    """Return whether the folder holds a file of another origin; such a folder is neither used nor deleted."""
    names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    return any(name not in _OWN_NAMES and not fnmatch(name, f".{_LINES.file_name}.????????") for name in names)
