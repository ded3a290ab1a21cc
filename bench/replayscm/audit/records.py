"""Records of audits: one JSON line per (pool, instance, options), appended as instances are done.

The file is append-only (bench.runs.jsonl_file); a completed audit is sorted, and two completed audits of the same thing
differ in `timing` only.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from sys import intern
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
from msgspec import Meta

from calibrant.audits.replayscm.findings import Findings
from calibrant.bench.replayscm.audit.generator_ceiling import GeneratorCeiling
from calibrant.bench.runs.jsonl_file import JsonlFile, RecordKind
from calibrant.bench.runs.records import Timing, config_digest

RECORD_VERSION = 4


class AuditKey(NamedTuple):
    """What a record is about; there is one record for each."""

    pool_digest: str
    instance: str
    config_digest: str


class AuditRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The audit of one instance of a pool, or why there is none."""

    pool: Annotated[str, Meta(description="name of the pool")]
    pool_digest: Annotated[str, Meta(description="SHA-256 of what the pool's file holds, decompressed")]
    pool_size: Annotated[int, Meta(description="how many items the pool has")]
    index: Annotated[int, Meta(description="place of the item in its pool, from 0")]
    instance: Annotated[str, Meta(description="id of the item")]
    setting: Annotated[
        str, Meta(description="row group of tables: the disclosure, or the published table that the pool belongs to")
    ]
    stratum: Annotated[str, Meta(description="the finer group of the generator; empty if there is none")]
    config: Annotated[dict[str, Any], Meta(description="what was asked for")]
    outcome: Annotated[Literal["audited", "out_of_budget", "crashed"], Meta(description="whether it was audited")]
    findings: Annotated[Findings | None, Meta(description="null if it was not")]
    generator: Annotated[
        GeneratorCeiling | None,
        Meta(description="the ceiling under the process that published items are drawn from; None without findings"),
    ]
    error: Annotated[str, Meta(description="why it was not; empty otherwise")]
    program: Annotated[str, Meta(description="version of the program")]
    timing: Annotated[Timing, Meta(description="when, and how long")]
    version: Annotated[int, Meta(description="version of the format")] = RECORD_VERSION

    @property
    def key(self) -> AuditKey:
        config = intern(config_digest(self.config))  # one text for all records that share it
        return AuditKey(intern(self.pool_digest), self.instance, config)

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON, without the timing: the same for equal pools and options."""
        made: dict[str, Any] = msgspec.to_builtins(self, str_keys=True)
        del made["timing"]
        return made


def _place(record: AuditRecord) -> tuple[object, ...]:
    key = record.key
    return intern(record.pool), key.pool_digest, key.config_digest, record.index


AUDIT_RECORDS = RecordKind("audits", "an audit", AuditRecord, RECORD_VERSION, _place)


class AuditFile(JsonlFile[AuditRecord]):
    """The record file of an audit's folder."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, AUDIT_RECORDS)

    def forget_unfinished(self) -> None:
        """Drop the records without findings, so that those instances are audited again."""
        self.keep(lambda record: record.findings is not None)

    def of_pool(self, keys: Iterable[AuditKey]) -> Sequence[AuditRecord]:
        """The records with these keys, in this order; many of them stay in the file."""
        return self.stored(keys).read_as(msgspec.json.Decoder(AuditRecord).decode)
