"""Findings about extended items as text, and as a report of pages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from msgspec import UNSET

from calibrant.audits.replayscm.extended.findings import Finding
from calibrant.bench.pools.claim_records import FindingRecord
from calibrant.bench.pools.findings_audit import FindingsRecord, FindingsReport, findings_lines
from calibrant.bench.replayscm.audit.records import AuditRecord
from calibrant.bench.runs.audits import AuditedPool

OPEN = (Finding.AMBIGUOUS.value, Finding.UNWINNABLE.value)
TITLE = "ReplaySCM"


def record_findings(record: AuditRecord) -> tuple[FindingRecord, ...]:
    """Return the findings of a record; none of a plain item."""
    return () if record.extended is UNSET else record.extended


def is_open(record: AuditRecord) -> bool:
    """Return whether an item leaves several held-out behaviours: on its worlds, or on all that may be asked for."""
    return any(finding.kind in OPEN for finding in record_findings(record))


def extended_lines(records: Sequence[AuditRecord], width: int | None) -> Iterator[str]:
    """Yield the table of findings, and how many items have which."""
    yield from findings_lines((finding for record in records for finding in record_findings(record)), width)
    counts = Counter(finding.kind for record in records for finding in record_findings(record))
    without = sum(not record_findings(record) for record in records)
    listed = [f"{number} {kind}" for kind, number in sorted(counts.items())]
    yield ""
    yield f"{', '.join([*listed, f'{without} without a finding'])}, of {len(records)} instances with a stated class"


def findings_report(audited: AuditedPool[AuditRecord], records: Sequence[AuditRecord]) -> FindingsReport:
    """Return the report of extended items: their records as other benchmarks have them."""
    heads = ("pool", "pool_digest", "pool_size", "index", "instance", "setting", "stratum", "config", "outcome")
    rewritten = [
        FindingsRecord(
            **{field: getattr(record, field) for field in heads if hasattr(record, field)},
            findings=record_findings(record),
            error=record.error,
            program=record.program,
            timing=record.timing,
            why=record.why,
        )
        for record in records
    ]
    rewritten_pool = AuditedPool(audited.name, audited.digest, audited.items, rewritten, audited.skipped)
    return FindingsReport(rewritten_pool, TITLE, None)
