"""Records of audits: one JSON line per (pool, instance, options), appended as instances are done.

The same promises as records of runs (bench.records): one write of one line, a torn last line is cut off, a completed
audit is sorted, and two completed audits of the same thing differ in `timing` only. Counts are texts, because they are
larger than the integers of many readers.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, NamedTuple

import msgspec
from filelock import FileLock, Timeout

from bench.records import Timing, config_digest
from dsl.errors import CalibrantError

RECORD_VERSION = 1
FILE_NAME = "audits.jsonl"
_UNFINISHED = ".audits."  # prefix of the sorted file until it replaces the old one


class ClassCount(msgspec.Struct, frozen=True):
    """What the evidence leaves open in one class.

    members: SCMs of the class that fit the training worlds, in decimal
    heldout_exact: how many of them replay every held-out world; None without held-out worlds
    """

    max_parents: int
    in_words: str
    members: str
    heldout_exact: str | None


class Spectrum(msgspec.Struct, frozen=True):
    """Members by total formula size, in a class with a size cap; by_size: size -> members, ascending."""

    in_words: str
    by_size: dict[int, str]


class Survivors(msgspec.Struct, frozen=True):
    """Two members that differ most among those looked at, and the experiment that tells them apart.

    looked_at: members compared with each other; from which class
    one, other: mechanisms as text; roots are the same
    means_gold: which of them means the same as gold: "one", "other" or ""
    experiment: the best single-variable intervention, None if none separates the two
    witness: root assignment, and the values of both at the variables that differ
    """

    in_words: str
    looked_at: int
    roots: list[str]
    one: dict[str, str]
    other: dict[str, str]
    means_gold: str
    disagreement_rate: float
    cell_rate: float
    experiment: dict[str, Any] | None
    witness: dict[str, Any] | None


class Findings(msgspec.Struct, frozen=True):
    """The audit of one instance.

    classes: by bound of functional parents, ascending; headline: the bound that verdicts are about
    bounded: the paper's searches with budget flags, each with the exact number; None without gold
    exposure, mix, balance: how training and held-out worlds are spread; exposure is None without gold
    survivors: None for at most one member; left_out: part -> why it could not be had
    """

    num_variables: int
    num_roots: int
    num_worlds: int
    num_rows: int
    num_heldout: int
    headline: int
    classes: list[ClassCount]
    spectrum: Spectrum | None
    bounded: dict[str, list[dict[str, Any]]] | None
    exposure: list[dict[str, Any]] | None
    mix: dict[str, Any]
    balance: dict[str, float] | None
    survivors: Survivors | None
    left_out: dict[str, str]

    def members(self, max_parents: int) -> int:
        """The count of a class that was counted."""
        return int(self.counted(max_parents).members)

    def counted(self, max_parents: int) -> ClassCount:
        return next(counted for counted in self.classes if counted.max_parents == max_parents)


class AuditKey(NamedTuple):
    """What a record is about; there is one record for each."""

    pool_digest: str
    instance: str
    config_digest: str


class AuditRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The audit of one instance of a pool, or why there is none."""

    pool: str
    pool_digest: str
    pool_size: int
    index: int
    instance: str
    setting: str
    stratum: str
    config: dict[str, Any]
    outcome: Literal["audited", "out_of_budget", "crashed"]
    findings: Findings | None
    error: str
    program: str
    timing: Timing
    version: int = RECORD_VERSION

    @property
    def key(self) -> AuditKey:
        return AuditKey(self.pool_digest, self.instance, config_digest(self.config))

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON, without the timing: the same for equal pools and options."""
        made: dict[str, Any] = msgspec.to_builtins(self, str_keys=True)
        del made["timing"]
        return made


_encode = msgspec.json.Encoder().encode
_decoder = msgspec.json.Decoder(AuditRecord)


def read_audits(path: Path) -> Iterator[AuditRecord]:
    """The records of a file; a torn last line is passed over. `CalibrantError` names file and line."""
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if not line.endswith(b"\n"):
                return
            try:
                record = _decoder.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise CalibrantError(f"{path}: line {number}: not a record of an audit: {error}") from None
            if record.version != RECORD_VERSION:
                found = f"record version {record.version}; this program reads version {RECORD_VERSION}"
                raise CalibrantError(f"{path}: line {number}: {found}")
            yield record


class AuditFile:
    """The record file of a folder, open for appending by this process alone. keys: what has a record already"""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / FILE_NAME
        self._lock = FileLock(folder / "audits.lock")
        try:
            self._lock.acquire(timeout=0)
        except Timeout:
            raise CalibrantError(f"{folder}: another audit is writing there; wait or choose another --out") from None
        try:
            for leftover in folder.glob(f"{_UNFINISHED}*"):  # of an audit that was killed while it sorted
                leftover.unlink()
            self._descriptor = self._opened()
            self._cut_torn_line()
            self.keys = {record.key for record in read_audits(self.path)}
        except BaseException:
            self._lock.release()
            raise

    def __enter__(self) -> AuditFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        os.fsync(self._descriptor)
        os.close(self._descriptor)
        self._lock.release()

    def append(self, record: AuditRecord) -> None:
        """One write of one line. A key that is there already is an error of the caller."""
        assert record.key not in self.keys
        line = _encode(record) + b"\n"
        if os.write(self._descriptor, line) != len(line):
            raise OSError(f"{self.path}: no space left for a whole record")
        self.keys.add(record.key)

    def forget_unfinished(self) -> None:
        """Drop the records without findings, so that those instances are audited again."""
        kept = [record for record in read_audits(self.path) if record.findings is not None]
        if len(kept) < len(self.keys):
            self._replace(kept)
            self.keys = {record.key for record in kept}

    def sort(self) -> None:
        """Put the lines into the order of pools, options and instances."""
        records = list(read_audits(self.path))
        ordered = sorted(records, key=lambda r: (r.pool, r.pool_digest, config_digest(r.config), r.index))
        if ordered != records:
            self._replace(ordered)

    def of_pool(self, keys: Iterable[AuditKey]) -> list[AuditRecord]:
        """The records with these keys, in the order of their instances."""
        wanted = set(keys)
        return sorted((r for r in read_audits(self.path) if r.key in wanted), key=lambda record: record.index)

    def _cut_torn_line(self) -> None:
        data = self.path.read_bytes()
        whole = data.rfind(b"\n") + 1
        if whole < len(data):
            os.ftruncate(self._descriptor, whole)

    def _replace(self, records: Iterable[AuditRecord]) -> None:
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
