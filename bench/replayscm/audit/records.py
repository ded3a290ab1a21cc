"""Records of ReplaySCM's audits: one JSON line per (pool, instance, options), appended as instances are done."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from calibrant.audits.replayscm.certificates.verify import CertificateFile
from calibrant.audits.replayscm.findings import Findings
from calibrant.bench.pools.certificates import FindingRecord
from calibrant.bench.replayscm.audit.generator_ceiling import GeneratorCeiling
from calibrant.bench.runs.audits import AuditHead, ReasonRecord, record_order
from calibrant.bench.runs.jsonl_file import RecordKind
from calibrant.bench.runs.records import Timing

RECORD_VERSION = 4


class AuditRecord(AuditHead, frozen=True, forbid_unknown_fields=True):
    """The audit of one instance of a pool, or why there is none."""

    findings: Annotated[Findings | None, Meta(description="null if it was not")]
    generator: Annotated[
        GeneratorCeiling | None,
        Meta(description="the ceiling under the process that published items are drawn from; None without findings"),
    ]
    error: Annotated[str, Meta(description="why it was not; empty otherwise")]
    program: Annotated[str, Meta(description="version of the program")]
    timing: Annotated[Timing, Meta(description="when, and how long")]
    version: Annotated[int, Meta(description="version of the format")] = RECORD_VERSION
    extended: Annotated[
        tuple[FindingRecord, ...] | UnsetType,
        Meta(description="findings about an item with a stated class: an episode, noise or hidden variables"),
    ] = UNSET
    why: Annotated[ReasonRecord | None, Meta(description="why the item is open; null without results")] = None


AUDIT_RECORDS = RecordKind("audits", "an audit", AuditRecord, RECORD_VERSION, record_order)


LINE_RECORDS = {"audits": (AuditRecord,), "certificates": (CertificateFile,)}
