"""Records of runs: one JSON line per (pool, instance, protocol, options), appended as results come in.

A record is one write of one whole line, so a run that is killed leaves at most one torn line at the end. It is ignored
when reading and cut off before anything is appended; any other line that is not a record is an error. When a run
completes, the lines are sorted, in a new file that replaces the old one at once: two completed runs of the same thing
differ in `timing` only, whatever the number of workers.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import msgspec
from filelock import FileLock, Timeout

from bench.protocol import Outcome
from dsl.errors import CalibrantError

RECORD_VERSION = 1
FILE_NAME = "records.jsonl"
_UNFINISHED = ".records."  # prefix of the sorted file until it replaces the old one
SYNC_SECONDS = 2.0  # what a power failure may cost; a killed process costs nothing


class Timing(msgspec.Struct, frozen=True):
    """The only part of a record that differs between two runs.

    seconds: wall time of the protocol on the instance, without process start and warm-up
    started: UTC, ISO 8601
    """

    seconds: float
    started: str


class Key(NamedTuple):
    """What a record is about; there is one record for each."""

    pool_digest: str
    instance: str
    protocol: str
    config_digest: str


class Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What one protocol answered to one instance, and how that scores.

    index, pool_size: the instance's place in its pool, and how many there are
    config: the protocol's options and the wall budget
    score: the published scorer's keys without the per-variable ones, the validity funnel and the structure metrics
    """

    pool: str
    pool_digest: str
    pool_size: int
    index: int
    instance: str
    setting: str
    stratum: str
    protocol: str
    config: dict[str, Any]
    outcome: Outcome
    answer: dict[str, Any]
    size: int | None
    score: dict[str, Any]
    provenance: dict[str, Any]
    program: str
    timing: Timing
    version: int = RECORD_VERSION

    @property
    def key(self) -> Key:
        return Key(self.pool_digest, self.instance, self.protocol, config_digest(self.config))


def config_digest(config: dict[str, Any]) -> str:
    """The same for equal options, whatever their order."""
    return hashlib.sha256(msgspec.json.encode(config, order="sorted")).hexdigest()[:16]


_encode = msgspec.json.Encoder().encode
_decoder = msgspec.json.Decoder(Record)


def read_records(path: Path) -> Iterator[Record]:
    """The records of a file; a torn last line is passed over. `CalibrantError` names file and line."""
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if not line.endswith(b"\n"):
                return
            try:
                record = _decoder.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise CalibrantError(f"{path}: line {number}: not a record of a run: {error}") from None
            if record.version != RECORD_VERSION:
                found = f"record version {record.version}; this program reads version {RECORD_VERSION}"
                raise CalibrantError(f"{path}: line {number}: {found}")
            yield record


def folder_records(folder: Path) -> Iterator[Record]:
    """The records in a run's folder."""
    path = folder / FILE_NAME
    if not path.is_file():
        raise CalibrantError(f"{folder}: no {FILE_NAME} there; give the folder that `calibrant run --out` wrote")
    return read_records(path)


class RecordFile:
    """The record file of a folder, open for appending by this process alone.

    keys: what has a record already
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / FILE_NAME
        self._lock = FileLock(folder / "records.lock")
        try:
            self._lock.acquire(timeout=0)
        except Timeout:
            raise CalibrantError(
                f"{folder}: another run is writing there; wait for it or choose another --out"
            ) from None
        try:
            for leftover in folder.glob(f"{_UNFINISHED}*"):  # of a run that was killed while it sorted
                leftover.unlink()
            self._descriptor = self._opened()
            self._cut_torn_line()
            self.keys = {record.key for record in read_records(self.path)}
        except BaseException:
            self._lock.release()
            raise
        self._synced = time.monotonic()

    def __enter__(self) -> RecordFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        os.fsync(self._descriptor)
        os.close(self._descriptor)
        self._lock.release()

    def _cut_torn_line(self) -> None:
        size = os.fstat(self._descriptor).st_size
        kept = size
        while kept:
            start = max(0, kept - 65536)
            newline = os.pread(self._descriptor, kept - start, start).rfind(b"\n")
            if newline >= 0:
                kept = start + newline + 1
                break
            kept = start
        if kept < size:
            os.ftruncate(self._descriptor, kept)

    def append(self, record: Record) -> None:
        """One write of one line. A key that is there already is an error of the caller."""
        assert record.key not in self.keys
        line = _encode(record) + b"\n"
        if os.write(self._descriptor, line) != len(line):
            raise OSError(f"{self.path}: no space left for a whole record")
        self.keys.add(record.key)
        if time.monotonic() - self._synced > SYNC_SECONDS:
            os.fsync(self._descriptor)
            self._synced = time.monotonic()

    def forget_crashes(self) -> None:
        """Drop the records of crashed instances, so that they are run again."""
        records = list(read_records(self.path))
        kept = [record for record in records if record.outcome != "crashed"]
        if len(kept) < len(records):
            self._replace(kept)
            self.keys = {record.key for record in kept}

    def sort(self) -> None:
        """Put the lines into the order of pools, protocols and instances."""
        records = list(read_records(self.path))
        ordered = sorted(records, key=_place)
        if ordered != records:
            self._replace(ordered)

    def _replace(self, records: Iterable[Record]) -> None:
        """A new file with these records takes the place of the old one at once."""
        handle, temporary = tempfile.mkstemp(dir=self.path.parent, prefix=_UNFINISHED)
        try:
            with os.fdopen(handle, "wb") as file:
                file.writelines(_encode(record) + b"\n" for record in records)
                file.flush()
                os.fchmod(file.fileno(), 0o644)
                os.fsync(file.fileno())
            os.replace(temporary, self.path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
        os.close(self._descriptor)
        self._descriptor = self._opened()

    def _opened(self) -> int:
        return os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)


def _place(record: Record) -> tuple[object, ...]:
    return record.pool, record.pool_digest, record.protocol, config_digest(record.config), record.index
