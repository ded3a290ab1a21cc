"""Audit results of exported pools as lines of a card: counts of items, nothing about one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import msgspec

from calibrant.bench.scoring.input.json_lines import json_object, numbered_lines
from calibrant.dsl.errors import CalibrantError

AUDITS_FILE = "audits.jsonl"  # that `calibrant audit --out` writes into its folder
VERDICTS = ("proved", "refuted", "open")


class _Claim(msgspec.Struct):
    """Kind and verdict of a finding; its other fields are of no use here."""

    kind: str
    verdict: str


class _ClassCount(msgspec.Struct):
    max_parents: int
    members: str  # in decimal


class _ClassCounts(msgspec.Struct):
    """Models that fit an item, by class; headline: the bound of the class that the verdict is about."""

    headline: int
    classes: tuple[_ClassCount, ...]


class _AuditLine(msgspec.Struct):
    """Fields of a line of audits.jsonl that a card needs; findings: None of an item that was not audited."""

    pool: str
    pool_digest: str
    pool_size: int
    findings: _ClassCounts | tuple[_Claim, ...] | None


def audit_lines(folder: Path, digests: Collection[str]) -> list[str]:
    """Return lines on the audited items of these pools; `CalibrantError` if the folder has none of them.

    digests: of the pools' files
    """
    path = folder / AUDITS_FILE
    if not path.is_file():
        raise CalibrantError(f"{folder}: no {AUDITS_FILE} in it; `calibrant audit POOL --out DIR` writes one")
    records = [record for record in _read_audits(path) if record.pool_digest in digests]
    if not records:
        raise CalibrantError(f"{folder}: its audits are of other pools than those that are exported")
    by_pool: dict[str, list[_AuditLine]] = {}
    for record in records:
        by_pool.setdefault(record.pool, []).append(record)
    return [line for name, listed in by_pool.items() for line in _pool_lines(name, listed)]


def _read_audits(path: Path) -> Iterator[_AuditLine]:
    """Yield the lines of an audit's file; `CalibrantError` names a line that is no record of an audit."""
    for number, line in numbered_lines(path):
        try:
            yield msgspec.convert(json_object(line), _AuditLine)
        except (msgspec.ValidationError, CalibrantError) as error:
            raise CalibrantError(f"{path}: line {number}: not a record of an audit: {error}") from None


def _pool_lines(name: str, records: Sequence[_AuditLine]) -> Iterator[str]:
    audited = [record.findings for record in records if record.findings is not None]
    yield f"{name}: {len(audited)} of {records[0].pool_size} items audited"
    counts = [result for result in audited if isinstance(result, _ClassCounts)]
    if counts:
        yield from _class_lines(counts)
    kinds = Counter((f.kind, f.verdict) for result in audited if not isinstance(result, _ClassCounts) for f in result)
    for kind in dict.fromkeys(kind for kind, _ in kinds):
        states = ", ".join(f"{verdict} for {kinds[kind, verdict]}" for verdict in VERDICTS if kinds[kind, verdict])
        yield f"{kind}: {states}"


def _class_lines(results: Sequence[_ClassCounts]) -> Iterator[str]:
    """Yield how many items have one, several or no model in the class of their verdict."""
    tally: Counter[tuple[int, str]] = Counter()
    for result in results:
        members = next((c.members for c in result.classes if c.max_parents == result.headline), None)
        word = "an uncounted number of models" if members is None else _number_word(int(members))
        tally[result.headline, word] += 1
    for (bound, word), number in sorted(tally.items()):
        yield f"{word} of at most {bound} functional parents fits: {number}"


def _number_word(members: int) -> str:
    return "no model" if members == 0 else "exactly one model" if members == 1 else "more than one model"
