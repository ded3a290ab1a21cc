"""The schemas that `calibrant schema NAME` prints, one for the lines of each kind of file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from bench.schemas.described import line_schema


def records() -> dict[str, Any]:
    from bench.runs.records import Record

    return line_schema("A line of records.jsonl, which `calibrant run` writes", Record)


def verdicts() -> dict[str, Any]:
    from bench.schemas.verdicts import VerdictLine

    return line_schema("A line that `calibrant score` writes", VerdictLine)


def audits() -> dict[str, Any]:
    from bench.audit.records import AuditRecord

    return line_schema("A line of audits.jsonl, which `calibrant audit` writes", AuditRecord)


def certificates() -> dict[str, Any]:
    from bench.schemas.certificates import CertificateFile

    return line_schema("A certificate, which `calibrant audit --certificates` writes", CertificateFile)


def pools() -> dict[str, Any]:
    from dsl.replayscm.pools.records import HeaderRecord, ProblemRecord

    return line_schema(
        "A line of a native pool file: the header first, then the instances", HeaderRecord, ProblemRecord
    )


SCHEMAS: Mapping[str, Callable[[], dict[str, Any]]] = {
    made.__name__: made for made in (records, verdicts, audits, certificates, pools)
}
