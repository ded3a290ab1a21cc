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
from calibrant.dsl.atomic_write import READABLE, open_appending, read_at, whole_file
from calibrant.dsl.episode import Step
from calibrant.dsl.errors import CalibrantError, in_one_line
from calibrant.dsl.parse_limits import MAX_JSON_BYTES, TooLargeError, check_json_text, decode_json

# --- Append-only JSONL files of records: what runs, audits, hardening and generation write while they work ------------
# A record is one write of one whole line, so a process that is killed leaves at most one torn line at the end. It is
# ignored when reading and cut off before anything is appended; any other line that is not a record is an error. Sorting
# writes a new file that replaces the old one at once. A record that replaces another waits in a file beside it until
# then, or until the file is opened again: each key has one record at any time.
SYNC_SECONDS = 2.0  # what a power failure may cost; a killed process costs nothing


class Keyed(Protocol):
    """A line of a file; there is one for each key."""

    __struct_fields__: ClassVar[tuple[str, ...]]

    @property
    def key(self) -> Hashable: ...

    @property
    def version(self) -> int: ...


R = TypeVar("R", bound=Keyed)


@dataclass(frozen=True)
class RecordKind(Generic[R]):
    """Type and order of the lines of a file.

    name: stem of the file, its lock and its temporary files; of: whose records, in messages
    order: sort key of a completed file; mode: of the file
    """

    name: str
    of: str
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
        """Yield the records of a file; a torn last line is passed over. `CalibrantError` names file and line."""
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
                    raise CalibrantError(f"{path}: line {number}: not a record of {self.of}: {error}") from None
                if record.version != self.version:
                    problem = f"record version {record.version}; this program reads version {self.version}"
                    raise CalibrantError(f"{path}: line {number}: {problem}")
                yield record


class FolderInUseError(CalibrantError):
    """Another process has the file open for appending."""


class JsonlFile(Generic[R]):
    """The record file of a folder, open for appending by this process alone.

    keys: of items that have a record already
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
            writer = kind.of.removeprefix("an ").removeprefix("a ")
            message = f"{folder}: another {writer} is writing there; wait for it or choose another --out"
            raise FolderInUseError(message) from None
        try:
            for leftover in folder.glob(f".{kind.file_name}.????????"):  # of a process that was killed while it sorted
                leftover.unlink()
            self._descriptor = open_appending(self.path, kind.mode)
            self.keys = {record.key for record in self}  # refuses a file of something else before a byte of it is cut
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
        """Write one line at once. A key that is there already is an error of the caller."""
        assert record.key not in self.keys
        line = self._encode(record) + b"\n"
        if os.write(self._descriptor, line) != len(line):
            raise OSError(f"{self.path}: no space left for a whole record")
        self.keys.add(record.key)
        if time.monotonic() - self._synced > SYNC_SECONDS:
            os.fsync(self._descriptor)
            self._synced = time.monotonic()

    def replace(self, record: R) -> None:
        """Write a record in place of the one with its key, which stays until the replacement is whole."""
        assert record.key in self.keys
        with self._replacements.open("ab") as lines:
            lines.write(self._encode(record) + b"\n")

    def sort(self) -> None:
        """Put the lines into their order."""
        self._merge()
        order, places, start = [], array("Q"), 0
        with self.path.open("rb") as lines:
            for record, line in zip(self, lines, strict=False):
                order.append(self.kind.order(record))
                places.append(start)
                start += len(line)
        if any(previous > following for previous, following in pairwise(order)):
            self._replace(self._from(places[i] for i in sorted(range(len(order)), key=order.__getitem__)))

    def find_lines(self, keys: Iterable[Hashable]) -> StoredLines:
        """Return the lines of these keys, in this order, of those that are there."""
        places: dict[Hashable, tuple[int, int] | None] = dict.fromkeys(keys)
        start = 0
        with self.path.open("rb") as lines:
            for record, line in zip(self, lines, strict=False):
                if record.key in places:
                    places[record.key] = start, len(line)
                start += len(line)
        return StoredLines(self._descriptor, [place for place in places.values() if place is not None])

    def _from(self, places: Iterable[int]) -> Iterator[R]:
        """Yield the records of the lines that begin at these bytes."""
        decoder = msgspec.json.Decoder(self.kind.type)
        with self.path.open("rb") as lines:
            for place in places:
                lines.seek(place)
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
        """Refuse to cut off what a record could not begin with: the file may be somebody else's."""
        begins = f'{{"{self.kind.type.__struct_fields__[0]}":'.encode()
        beginning = read_at(self._descriptor, len(begins), start)
        if not begins.startswith(beginning):
            raise CalibrantError(f"{self.path}: its last line is not a record of {self.kind.of}")

    def _merge(self) -> None:
        """Put the records of the file beside this one in their places; repeated after a kill it changes nothing."""
        if not self._replacements.exists():
            return
        by_key = {record.key: record for record in self.kind.read_records(self._replacements)}
        self._replace(chain((by_key.pop(record.key, record) for record in self), self._added(by_key)))
        self._replacements.unlink()

    def _added(self, remaining: dict[Hashable, R]) -> Iterator[R]:
        """Yield the replacements of records that are no longer there."""
        self.keys.update(remaining)
        yield from remaining.values()

    def _replace(self, records: Iterable[R]) -> None:
        """Replace the file by one with these records at once."""
        try:
            with whole_file(self.path, self.kind.mode) as file:
                file.writelines(self._encode(record) + b"\n" for record in records)
                file.flush()
                os.fsync(file.fileno())
                os.close(self._descriptor)  # Windows replaces no file that is open
                self._descriptor = -1
        finally:
            if self._descriptor < 0:
                self._descriptor = open_appending(self.path, self.kind.mode)


# --- Records of runs: one JSON line per (pool, instance, protocol, options), appended as results come in --------------
# The file is append-only (bench.runs.records). When a run completes, its lines are sorted: two completed runs of the
# same thing differ in `timing` only, whatever the number of workers.
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
    """Subject of a record; there is one record for each."""

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
        config = intern(config_digest(self.config))  # one text for the 100,000 records that share it
        return Key(intern(self.pool_digest), self.instance, intern(self.protocol), config)


def config_digest(config: dict[str, Any]) -> str:
    """Return a digest that is equal for equal options, whatever their order."""
    return hashlib.sha256(msgspec.json.encode(config, order="sorted")).hexdigest()[:16]


def step_records(steps: Sequence[Step[Any]]) -> list[StepRecord]:
    """Return steps as a record keeps them."""
    return [StepRecord(dict(step.action), msgspec.to_builtins(step.reading), step.refused, step.cost) for step in steps]


def _place(record: Record) -> tuple[object, ...]:
    """Return the key by which the lines of a completed run are sorted."""
    key = record.key
    return intern(record.pool), key.pool_digest, key.protocol, key.config_digest, record.index


RUN_RECORDS = RecordKind("records", "a run", Record, RECORD_VERSION, _place)
FILE_NAME = RUN_RECORDS.file_name


def read_records(path: Path) -> Iterator[Record]:
    """Yield the records of a file; a torn last line is passed over. `CalibrantError` names file and line."""
    return RUN_RECORDS.read_records(path)


def folder_records(folder: Path) -> Iterator[Record]:
    """Yield the records in a run's folder."""
    path = folder / FILE_NAME
    if not path.is_file():
        raise CalibrantError(f"{folder}: no {FILE_NAME} there; give the folder that `calibrant run --out` wrote")
    return read_records(path)


class _RecordHead(msgspec.Struct):
    benchmark: str | None = None


def stated_benchmarks(folder: Path) -> frozenset[str | None]:
    """Return the benchmarks that the records in a run's folder state; None for records that state none.

    Other fields are passed over, which is faster than reading them. A line that is no record states nothing:
    `read_records` refuses it.
    """
    path = folder / FILE_NAME
    if not path.is_file():
        return frozenset()
    status = path.stat()
    return _stated_benchmarks(path, status.st_size, status.st_mtime_ns)


@lru_cache
def _stated_benchmarks(path: Path, size: int, modified: int) -> frozenset[str | None]:
    """Return what the lines of a file of this size and time of change state."""
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
