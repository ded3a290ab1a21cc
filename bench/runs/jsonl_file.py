"""Append-only JSONL files of records: what runs, audits, hardening and generation write while they work.

A record is one write of one whole line, so a process that is killed leaves at most one torn line at the end. It is
ignored when reading and cut off before anything is appended; any other line that is not a record is an error. Sorting
writes a new file that replaces the old one at once. A record that replaces another waits in a file beside it until
then, or until the file is opened again: each key has one record at any time.
"""

from __future__ import annotations

import os
import time
from array import array
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain, pairwise
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Generic, Protocol, Self, TypeVar

import msgspec
from filelock import FileLock, Timeout

from calibrant.bench.runs.spill_file import StoredLines
from calibrant.dsl.atomic_write import whole_file
from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.json_objects import MAX_JSON_BYTES, TooLargeError, check_json_text

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
    order: sort key of a completed file
    """

    name: str
    of: str
    type: type[R]
    version: int
    order: Callable[[R], tuple[object, ...]]

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
            self._descriptor = self._open_file()
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
            newline = os.pread(self._descriptor, end - start, start).rfind(b"\n")
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
        beginning = os.pread(self._descriptor, len(begins), start)
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
        with whole_file(self.path) as file:
            file.writelines(self._encode(record) + b"\n" for record in records)
            file.flush()
            os.fsync(file.fileno())
        os.close(self._descriptor)
        self._descriptor = self._open_file()

    def _open_file(self) -> int:
        return os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
