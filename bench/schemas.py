"""JSON Schemas of one line of each kind of file, with fields described by the `Meta` of the records."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Set
from typing import Any

import msgspec

from calibrant.bench.core.capabilities import LINE_RECORDS
from calibrant.bench.core.registry import NAMES, benchmark

TAG_DESCRIPTION = "kind of this record"
DIALECT = "https://json-schema.org/draft/2020-12/schema"


def line_schema(title: str, *records: Any) -> dict[str, Any]:
    """Return the schema of one line of a file that holds these records."""
    schemas, parts = msgspec.json.schema_components(records, ref_template="#/$defs/{name}")
    schema: dict[str, Any] = {"$schema": DIALECT, "title": title}
    schema |= schemas[0] if len(schemas) == 1 else {"anyOf": list(schemas)}
    tags = {part["discriminator"]["propertyName"] for part in _parts_of(parts) if "discriminator" in part}
    return schema | {"$defs": {name: _describe_definition(part, tags) for name, part in sorted(parts.items())}}


def _describe_definition(part: dict[str, Any], tags: Set[str]) -> dict[str, Any]:
    """Return a definition with its docstring as one line and a description of its tag, which is no field of the record.

    tags: names of properties that distinguish the records of a union
    """
    properties = {
        name: value | {"description": TAG_DESCRIPTION} if name in tags and "description" not in value else value
        for name, value in part.get("properties", {}).items()
    }
    text = {"description": " ".join(part.get("description", "").split())}
    return part | text | ({"properties": properties} if properties else {})


def _parts_of(value: Any) -> Iterator[dict[str, Any]]:
    """Yield every JSON object in a schema."""
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    for part in value if isinstance(value, list) else ():
        yield from _parts_of(part)


def records(name: str) -> dict[str, Any]:
    """Return the schema of records of runs, the same for every benchmark."""
    from calibrant.bench.runs.records import Record

    return line_schema("A line of records.jsonl, which `calibrant run` writes", Record)


def verdicts(name: str) -> dict[str, Any]:
    """Return the schema of lines of `calibrant score`."""
    return line_schema("A line that `calibrant score` writes", benchmark(name).scoring.verdict_record)


def audits(name: str) -> dict[str, Any]:
    """Return the schema of lines of `calibrant audit --out`."""
    from calibrant.bench.pools.findings_audit import FindingsRecord

    records = _own_records(name, "audits") or (FindingsRecord,)
    return line_schema("A line of audits.jsonl, which `calibrant audit` writes", *records)


def certificates(name: str) -> dict[str, Any]:
    """Return the schema of a certificate file."""
    from calibrant.bench.pools.findings_audit import ClaimFile

    title = "A certificate, which `calibrant audit --certificates` writes"
    return line_schema(title, *(_own_records(name, "certificates") or (ClaimFile,)))


def pools(name: str) -> dict[str, Any]:
    """Return the schema of lines of native pool files."""
    title = "A line of a native pool file: the header first, then the instances"
    return line_schema(title, *benchmark(name).items.pool_records)


def training(name: str) -> dict[str, Any]:
    """Return the schema of lines of `calibrant training`, the same for every benchmark."""
    records_by_benchmark = (_own_records(candidate, "training") for candidate in NAMES)
    title = "A line that `calibrant training` writes: the header first, then the examples"
    return line_schema(title, *next(filter(None, records_by_benchmark)))


def _own_records(name: str, kind: str) -> tuple[type[msgspec.Struct], ...]:
    """Return the Structs of a kind of file that a benchmark declares, possibly none."""
    return (benchmark(name).capability(LINE_RECORDS) or {}).get(kind, ())


SCHEMAS: Mapping[str, Callable[[str], dict[str, Any]]] = {
    make.__name__: make for make in (records, verdicts, audits, certificates, pools, training)
}
