"""Records of audits: one JSON line per (pool, instance, options), appended as instances are done.

The file is append-only (bench.jsonl_file); a completed audit is sorted, and two completed audits of the same thing
differ in `timing` only. Counts are texts, because they are larger than the integers of many readers.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from bench.jsonl_file import JsonlFile, RecordKind
from bench.records import Timing, config_digest

RECORD_VERSION = 1


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


def _place(record: AuditRecord) -> tuple[object, ...]:
    return record.pool, record.pool_digest, config_digest(record.config), record.index


AUDIT_RECORDS = RecordKind("audits", "an audit", AuditRecord, RECORD_VERSION, _place)


class AuditFile(JsonlFile[AuditRecord]):
    """The record file of an audit's folder."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, AUDIT_RECORDS)

    def forget_unfinished(self) -> None:
        """Drop the records without findings, so that those instances are audited again."""
        self.keep(lambda record: record.findings is not None)

    def of_pool(self, keys: Iterable[AuditKey]) -> list[AuditRecord]:
        """The records with these keys, in the order of their instances."""
        wanted = set(keys)
        return sorted((record for record in self if record.key in wanted), key=lambda record: record.index)
