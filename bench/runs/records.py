"""Records of a run, and the JSONL files that hold them."""

from __future__ import annotations

import hashlib
import os
import time
from array import array
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import chain, pairwise
from pathlib import Path
from sys import intern
from types import TracebackType
from typing import Annotated, Any, ClassVar, Generic, NamedTuple, Protocol, Self, TypeVar

import msgspec
from filelock import FileLock, Timeout
from msgspec import Meta

from calibrant.bench.protocols import Outcome
from calibrant.bench.runs.spill_file import StoredLines
from calibrant.dsl.atomic_write import READABLE, open_appending, open_atomically, read_at
from calibrant.dsl.episode import Step
from calibrant.dsl.errors import CalibrantError, in_one_line
from calibrant.dsl.parse_limits import MAX_JSON_BYTES, TooLargeError, check_json_text, decode_json

# --- Append-only JSONL files of records, written by runs, audits, hardening and generation ----------------------------
# Each record is written by one call as one whole line, so a killed process leaves at most one torn line, at the end.
# Readers ignore that line, and it is cut off before a record is appended; any other line that is not a record is an
# error. Sorting replaces the file atomically. A record that replaces another waits in a second file until the file is
# sorted or opened again, so that each key has one record at any time.
SYNC_SECONDS = 2.0  # interval of syncs to disk: a power failure may lose the work of this time, a kill loses nothing


class Keyed(Protocol):
    """A record; a file has at most one for each key."""

    __struct_fields__: ClassVar[tuple[str, ...]]

    @property
    def key(self) -> Hashable: ...

    @property
    def version(self) -> int: ...


R = TypeVar("R", bound=Keyed)


@dataclass(frozen=True)
class RecordKind(Generic[R]):
    """Type and order of the records of a file.

    name: stem of the file, its lock and its temporary files; origin: what writes the records, for messages ("a run")
    order: sort key of records in a completed file; mode: permissions of the file
    """

    name: str
    origin: str
    type: type[R]
    version: int
    order: Callable[[R], tuple[object, ...]]
    mode: int = READABLE

    @property
    def file_name(self) -> str:
        return f"{self.name}.jsonl"

    @property
    def replacement_name(self) -> str:
        return f"{self.name}.replaced.jsonl"

    def read_records(self, path: Path) -> Iterator[R]:
        """Yield the records of a file, ignoring a torn last line; `CalibrantError` names file and line of a bad one."""
        decoder = msgspec.json.Decoder(self.type)
        with path.open("rb") as lines:
            for number, line in enumerate(iter(partial(lines.readline, MAX_JSON_BYTES + 1), b""), 1):
                try:
                    check_json_text(line)
                except TooLargeError as error:
                    raise CalibrantError(f"{path}: line {number}: {error}") from None
                if not line.endswith(b"\n"):
                    return
                try:
                    record = decoder.decode(line)
                except (msgspec.DecodeError, UnicodeDecodeError) as error:
                    raise CalibrantError(f"{path}: line {number}: not a record of {self.origin}: {error}") from None
                if record.version != self.version:
                    problem = f"record version {record.version}; this program reads version {self.version}"
                    raise CalibrantError(f"{path}: line {number}: {problem}")
                yield record


class FolderInUseError(CalibrantError):
    """Another process has the file open for appending."""


class JsonlFile(Generic[R]):
    """The record file of a folder, open for appending by this process alone.

    keys: keys of the records in the file
    """

    def __init__(self, folder: Path, kind: RecordKind[R]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.kind = kind
        self.path = folder / kind.file_name
        self._replacements = folder / kind.replacement_name
        self._encode = msgspec.json.Encoder().encode
        self._lock = FileLock(folder / f"{kind.name}.lock")
        try:
            self._lock.acquire(timeout=0)
        except Timeout:
            writer = kind.origin.removeprefix("an ").removeprefix("a ")
            message = f"{folder}: another {writer} is writing there; wait for it or choose another --out"
            raise FolderInUseError(message) from None
        try:
            for leftover in folder.glob(f".{kind.file_name}.????????"):  # from a process killed while sorting
                leftover.unlink()
            self._descriptor = open_appending(self.path, kind.mode)
            self.keys = {record.key for record in self}  # raises for another kind of file before anything is cut off
            self._cut_torn_line()
            self._merge()
        except BaseException:
            self._lock.release()
            raise
        self._synced = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            self._merge()
            os.fsync(self._descriptor)
        finally:
            os.close(self._descriptor)
            self._lock.release()

    def __iter__(self) -> Iterator[R]:
        return self.kind.read_records(self.path)

    def append(self, record: R) -> None:
        """Write one line with one call of the system. The key must be new."""
        assert record.key not in self.keys
        line = self._encode(record) + b"\n"
        if os.write(self._descriptor, line) != len(line):
            raise OSError(f"{self.path}: no space left for a whole record")
        self.keys.add(record.key)
        if time.monotonic() - self._synced > SYNC_SECONDS:
            os.fsync(self._descriptor)
            self._synced = time.monotonic()

    def replace(self, record: R) -> None:
        """Store a record that replaces the one with its key at the next merge."""
        assert record.key in self.keys
        with self._replacements.open("ab") as lines:
            lines.write(self._encode(record) + b"\n")

    def sort(self) -> None:
        """Sort the lines by `RecordKind.order`."""
        self._merge()
        order, offsets, start = [], array("Q"), 0
        with self.path.open("rb") as lines:
            for record, line in zip(self, lines, strict=False):
                order.append(self.kind.order(record))
                offsets.append(start)
                start += len(line)
        if any(previous > following for previous, following in pairwise(order)):
            self._replace(self._records_at(offsets[i] for i in sorted(range(len(order)), key=order.__getitem__)))

    def find_lines(self, keys: Iterable[Hashable]) -> StoredLines:
        """Return the lines of the records with these keys, in this order; keys without a record are skipped."""
        spans: dict[Hashable, tuple[int, int] | None] = dict.fromkeys(keys)
        start = 0
        with self.path.open("rb") as lines:
            for record, line in zip(self, lines, strict=False):
                if record.key in spans:
                    spans[record.key] = start, len(line)
                start += len(line)
        return StoredLines(self._descriptor, [span for span in spans.values() if span is not None])

    def _records_at(self, offsets: Iterable[int]) -> Iterator[R]:
        """Yield the records of the lines that begin at these bytes."""
        decoder = msgspec.json.Decoder(self.kind.type)
        with self.path.open("rb") as lines:
            for offset in offsets:
                lines.seek(offset)
                yield decoder.decode(lines.readline())

    def _cut_torn_line(self) -> None:
        size = os.fstat(self._descriptor).st_size
        end = size
        while end:
            start = max(0, end - 65536)
            newline = read_at(self._descriptor, end - start, start).rfind(b"\n")
            if newline >= 0:
                end = start + newline + 1
                break
            end = start
        if end < size:
            self._require_torn_record(end)
            os.ftruncate(self._descriptor, end)

    def _require_torn_record(self, start: int) -> None:
        """Raise `CalibrantError` if the last line does not begin like a record: the file may be another program's."""
        expected = f'{{"{self.kind.type.__struct_fields__[0]}":'.encode()
        beginning = read_at(self._descriptor, len(expected), start)
        if not expected.startswith(beginning):
            raise CalibrantError(f"{self.path}: its last line is not a record of {self.kind.origin}")

    def _merge(self) -> None:
        """Replace records by those in the file of replacements; idempotent, so it can be repeated after a kill."""
        if not self._replacements.exists():
            return
        by_key = {record.key: record for record in self.kind.read_records(self._replacements)}
        self._replace(chain((by_key.pop(record.key, record) for record in self), self._remaining_replacements(by_key)))
        self._replacements.unlink()

    def _remaining_replacements(self, remaining: dict[Hashable, R]) -> Iterator[R]:
        """Yield the replacements of records that the file lacks, and add their keys."""
        self.keys.update(remaining)
        yield from remaining.values()

    def _replace(self, records: Iterable[R]) -> None:
        """Replace the file atomically by one with these records."""
        try:
            with open_atomically(self.path, self.kind.mode) as file:
                file.writelines(self._encode(record) + b"\n" for record in records)
                file.flush()
                os.fsync(file.fileno())
                os.close(self._descriptor)  # Windows replaces no file that is open
                self._descriptor = -1
        finally:
            if self._descriptor < 0:
                self._descriptor = open_appending(self.path, self.kind.mode)


# --- Records of runs: one JSON line per (pool, instance, protocol, options), appended as results arrive ---------------
# When a run completes, its lines are sorted: two completed runs with equal keys differ in `timing` only, whatever the
# number of workers.
RECORD_VERSION = 1


class Timing(msgspec.Struct, frozen=True, omit_defaults=True):
    """The only part of a record that differs between two runs."""

    seconds: Annotated[
        float, Meta(description="wall time of the protocol on the instance, without process start and warm-up")
    ]
    started: Annotated[str, Meta(description="UTC, ISO 8601")]
    moves: Annotated[
        list[float] | msgspec.UnsetType,
        Meta(description="of a person, seconds before each step, or before the one answer; absent elsewhere"),
    ] = msgspec.UNSET


class Key(NamedTuple):
    """Key of a record; a file has at most one record per key."""

    pool_digest: str
    instance: str
    protocol: str
    config_digest: str


class StepRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One step of an episode (dsl.episode.Step), ready for JSON."""

    action: Annotated[dict[str, Any], Meta(description="what was done")]
    reading: Annotated[Any, Meta(description="what was shown")] = None
    refused: Annotated[str, Meta(description="why nothing was done; empty if it was")] = ""
    cost: Annotated[int, Meta(description="what it took from the item's allowance")] = 0


class ItemHead(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """First fields of every record about an item of a pool."""

    pool: Annotated[str, Meta(description="name of the pool")]
    pool_digest: Annotated[str, Meta(description="SHA-256 of what the pool's file holds, decompressed")]
    pool_size: Annotated[int, Meta(description="how many items the pool has")]
    index: Annotated[int, Meta(description="place of the item in its pool, from 0")]
    instance: Annotated[str, Meta(description="id of the item")]
    setting: Annotated[
        str, Meta(description="row group of tables: the disclosure, or the published table that the pool belongs to")
    ]
    stratum: Annotated[str, Meta(description="the finer group of the generator; empty if there is none")]


class TiedScore(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A score that some of the equally good answers have."""

    times: Annotated[int, Meta(description="how many of the scored answers have it")]
    score: Annotated[dict[str, Any], Meta(description="as the record's own")]


class TiedScores(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Scores of all answers that are as good as the one given: their mean is what tables print."""

    count: Annotated[str | None, Meta(description="how many such answers there are; null where they are not counted")]
    scored: Annotated[int, Meta(description="how many of them were scored: all, or uniform draws")]
    scores: Annotated[list[TiedScore], Meta(description="their distinct scores")]
    note: Annotated[str, Meta(description="what is not counted, and why; empty if all is")] = ""


class Record(ItemHead, frozen=True, forbid_unknown_fields=True):
    """What one protocol answered to one instance, and how that scores."""

    protocol: Annotated[str, Meta(description="name of the protocol")]
    config: Annotated[
        dict[str, Any],
        Meta(description="the protocol's options and the wall budget; `code` says whose code it is if it is not ours"),
    ]
    outcome: Annotated[
        Outcome, Meta(description="what the protocol says; `crashed` also where it says nothing that could be kept")
    ]
    answer: Annotated[dict[str, Any], Meta(description="the answer object, or what stands in for one")]
    size: Annotated[int | None, Meta(description="total formula size of the answer, where it has one")]
    score: Annotated[
        dict[str, Any],
        Meta(
            description=(
                "what the benchmark keeps of the verdict; of ReplaySCM the published scorer's keys without the "
                "per-variable ones, the validity funnel and the structure metrics"
            )
        ),
    ]
    provenance: Annotated[
        dict[str, Any], Meta(description="how the protocol came by it; of a crash `error`, `at` and `traceback`")
    ]
    program: Annotated[str, Meta(description="version of the program")]
    timing: Annotated[Timing, Meta(description="when, and how long")]
    version: Annotated[int, Meta(description="version of the format")] = RECORD_VERSION
    benchmark: Annotated[str | msgspec.UnsetType, Meta(description="absent for ReplaySCM")] = msgspec.UNSET
    steps: Annotated[
        list[StepRecord] | msgspec.UnsetType, Meta(description="of an episode, everything that was done in it")
    ] = msgspec.UNSET
    attribution: Annotated[
        dict[str, Any] | msgspec.UnsetType, Meta(description="of an episode, what its readings decided")
    ] = msgspec.UNSET
    ties: Annotated[
        TiedScores | msgspec.UnsetType, Meta(description="of rows that choose by a tie rule, all equally good answers")
    ] = msgspec.UNSET

    def __repr__(self) -> str:
        names = [in_one_line(name)[:40] for name in (self.protocol, self.instance, self.pool)]
        return f"<Record: {names[0]} on {names[1]} of {names[2]}: {self.outcome}>"

    @property
    def key(self) -> Key:
        config = intern(config_digest(self.config))  # one object for the 100,000 records with these options
        return Key(intern(self.pool_digest), self.instance, intern(self.protocol), config)


def config_digest(config: dict[str, Any]) -> str:
    """Return a digest of options that does not depend on their order, 16 hexadecimal digits."""
    return hashlib.sha256(msgspec.json.encode(config, order="sorted")).hexdigest()[:16]


def step_records(steps: Sequence[Step[Any]]) -> list[StepRecord]:
    """Return steps in the form of records."""
    return [StepRecord(dict(step.action), msgspec.to_builtins(step.reading), step.refused, step.cost) for step in steps]


def _sort_key(record: Record) -> tuple[object, ...]:
    """Return the sort key of a record in a completed run."""
    key = record.key
    return intern(record.pool), key.pool_digest, key.protocol, key.config_digest, record.index


RUN_RECORDS = RecordKind("records", "a run", Record, RECORD_VERSION, _sort_key)
FILE_NAME = RUN_RECORDS.file_name


def read_records(path: Path) -> Iterator[Record]:
    """Yield the records of a file, ignoring a torn last line; `CalibrantError` names file and line of a bad one."""
    return RUN_RECORDS.read_records(path)


def folder_records(folder: Path) -> Iterator[Record]:
    """Yield the records in a run's folder; `CalibrantError` if it has no file of records."""
    path = folder / FILE_NAME
    if not path.is_file():
        raise CalibrantError(f"{folder}: no {FILE_NAME} there; give the folder that `calibrant run --out` wrote")
    return read_records(path)


class _RecordHead(msgspec.Struct):
    benchmark: str | None = None


def stated_benchmarks(folder: Path) -> frozenset[str | None]:
    """Return the benchmarks stated by the records in a run's folder; None stands for records that state none.

    Other fields are not decoded, to save time. Lines that are no records are ignored here; `read_records` refuses them.
    """
    path = folder / FILE_NAME
    if not path.is_file():
        return frozenset()
    status = path.stat()
    return _stated_benchmarks(path, status.st_size, status.st_mtime_ns)


@lru_cache
def _stated_benchmarks(path: Path, size: int, modified: int) -> frozenset[str | None]:
    """Return the stated benchmarks of a file, cached by its size and time of change."""
    names = set[str | None]()
    with path.open("rb") as lines:
        for line in iter(partial(lines.readline, MAX_JSON_BYTES + 1), b""):
            with suppress(msgspec.DecodeError, UnicodeDecodeError, TooLargeError):
                names.add(decode_json(line, _RecordHead).benchmark)
    return frozenset(names)


class RunFile(JsonlFile[Record]):
    """The record file of a run's folder."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, RUN_RECORDS)
