"""Audits of a pool of ReplaySCM: exact counts of what each problem leaves open, recorded by bench.runs.audits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec import UNSET

from calibrant.audits.replayscm.findings import Findings
from calibrant.audits.replayscm.items import AuditOptions, audit_instance
from calibrant.bench.core.registry import benchmark
from calibrant.bench.pools.certificates import FindingRecord
from calibrant.bench.replayscm.audit.extended import finding_records
from calibrant.bench.replayscm.audit.generator_ceiling import GeneratorCeiling, generator_ceiling
from calibrant.bench.replayscm.audit.records import AUDIT_RECORDS, AuditRecord
from calibrant.bench.runs.audits import Audited, AuditedPool, audit_items
from calibrant.bench.runs.jobs import HERE, Execution, Progress
from calibrant.bench.runs.jsonl_file import RecordKind
from calibrant.bench.runs.runner import EVERYTHING, Selection
from calibrant.bench.version import program_version
from calibrant.dsl.replayscm.item import Problem


@dataclass(frozen=True)
class ScmAudit:
    """Implements AuditWork (bench.runs.audits)."""

    options: AuditOptions

    @property
    def kind(self) -> RecordKind[AuditRecord]:
        return AUDIT_RECORDS

    @property
    def config(self) -> Mapping[str, Any]:
        return self.options.to_dict()

    def audit(self, item: Problem) -> tuple[Findings, GeneratorCeiling] | tuple[FindingRecord, ...]:
        if item.task.extension is not None:
            return tuple(finding_records(item))
        return audit_instance(item, self.options), generator_ceiling(item)

    def record(self, head: Mapping[str, Any], audited: Audited) -> AuditRecord:
        result = audited.result
        is_plain = isinstance(result, tuple) and len(result) == 2 and isinstance(result[0], Findings)
        findings, generator = result if is_plain else (None, None)
        return AuditRecord(
            **head,
            findings=findings,
            generator=generator,
            extended=UNSET if is_plain or result is None else result,
            error=audited.error,
            program=program_version(),
            timing=audited.timing,
            why=audited.why,
        )


def audit_pool(
    path: Path,
    folder: Path,
    options: AuditOptions,
    selection: Selection = EVERYTHING,
    *,
    execution: Execution = HERE,
    progress: Progress = lambda name, done, total: None,
) -> AuditedPool[AuditRecord]:
    """Audit every selected problem that has no record in the folder yet, and append its record."""
    work, replayscm = ScmAudit(options), benchmark("replayscm")
    return audit_items(replayscm, path, folder, work, selection, execution=execution, progress=progress)
