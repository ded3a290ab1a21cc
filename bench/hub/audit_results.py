"""Audit results of exported pools as lines of a card: counts of items, nothing about one."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from calibrant.dsl.errors import CalibrantError

AUDITS_FILE = "audits.jsonl"  # that `calibrant audit --out` writes into its folder
VERDICTS = ("proved", "refuted", "open")


def audit_lines(folder: Path, digests: Collection[str]) -> list[str]:
    """Return lines on the audited items of these pools; `CalibrantError` if the folder has none of them.

    digests: of the pools' files
    """
    path = folder / AUDITS_FILE
    if not path.is_file():
        raise CalibrantError(f"{folder}: no {AUDITS_FILE} in it; `calibrant audit POOL --out DIR` writes one")
    records = [record for record in map(json.loads, path.read_bytes().splitlines()) if record["pool_digest"] in digests]
    if not records:
        raise CalibrantError(f"{folder}: its audits are of other pools than those that are exported")
    by_pool: dict[str, list[Mapping[str, Any]]] = {}
    for record in records:
        by_pool.setdefault(record["pool"], []).append(record)
    return [line for name, listed in by_pool.items() for line in _pool_lines(name, listed)]


def _pool_lines(name: str, records: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    audited = [record["findings"] for record in records if record.get("findings") is not None]
    yield f"{name}: {len(audited)} of {records[0]['pool_size']} items audited"
    counts = [result for result in audited if isinstance(result, Mapping)]
    if counts:
        yield from _class_lines(counts)
    kinds = Counter((f["kind"], f["verdict"]) for result in audited if isinstance(result, list) for f in result)
    for kind in dict.fromkeys(kind for kind, _ in kinds):
        states = ", ".join(f"{verdict} for {kinds[kind, verdict]}" for verdict in VERDICTS if kinds[kind, verdict])
        yield f"{kind}: {states}"


def _class_lines(results: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield how many items have one, several or no model in the class of their verdict."""
    tally: Counter[tuple[int, str]] = Counter()
    for result in results:
        bound = result["headline"]
        members = next((c["members"] for c in result["classes"] if c["max_parents"] == bound), None)
        word = "an uncounted number of models" if members is None else _number_word(int(members))
        tally[bound, word] += 1
    for (bound, word), number in sorted(tally.items()):
        yield f"{word} of at most {bound} functional parents fits: {number}"


def _number_word(members: int) -> str:
    return "no model" if members == 0 else "exactly one model" if members == 1 else "more than one model"
