"""The schemas that `calibrant schema NAME` prints, one for the lines of each kind of file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from calibrant.bench.core.registry import DEFAULT, benchmark
from calibrant.bench.schemas.described import line_schema


def records(of: str = DEFAULT) -> dict[str, Any]:
    """The same of every benchmark."""
    from calibrant.bench.runs.records import Record

    return line_schema("A line of records.jsonl, which `calibrant run` writes", Record)


def verdicts(of: str = DEFAULT) -> dict[str, Any]:
    return line_schema("A line that `calibrant score` writes", benchmark(of).verdict_record)


def audits(of: str = DEFAULT) -> dict[str, Any]:
    if of != DEFAULT:
        from calibrant.bench.schemas.certificates import FindingRecord

        return line_schema("A finding, of the list that `calibrant audit --json` writes", FindingRecord)
    from calibrant.bench.replayscm.audit.records import AuditRecord

    return line_schema("A line of audits.jsonl, which `calibrant audit` writes", AuditRecord)


def certificates(of: str = DEFAULT) -> dict[str, Any]:
    from calibrant.bench.schemas.certificates import CertificateFile, ClaimFile

    kind = CertificateFile if of == DEFAULT else ClaimFile
    return line_schema("A certificate, which `calibrant audit --certificates` writes", kind)


def pools(of: str = DEFAULT) -> dict[str, Any]:
    title = "A line of a native pool file: the header first, then the instances"
    return line_schema(title, *benchmark(of).pool_records)


def training(of: str = DEFAULT) -> dict[str, Any]:
    """Of CauSim, which alone has them, whatever the benchmark."""
    from calibrant.audits.causim.training import TrainingHeader, TrainingRecord

    return line_schema(
        "A line that `calibrant training` writes: the header first, then the examples", TrainingHeader, TrainingRecord
    )


SCHEMAS: Mapping[str, Callable[..., dict[str, Any]]] = {
    made.__name__: made for made in (records, verdicts, audits, certificates, pools, training)
}
