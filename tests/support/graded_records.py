"""Records of made-up blicket episodes, for tests of tables and reports."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from calibrant.bench.runs.records import FILE_NAME, Record, StepRecord, Timing


def graded(*, correct: bool = True, exposed: str | None = "pre", steps: int = 4, **extra: Any) -> dict[str, Any]:
    """Return a score as a record keeps it."""
    rule = {"rule": "conjunctive", "blickets": ["A", "B"]}
    return {
        "correct": correct,
        "errors": [] if correct else ["mixed"],
        "strict": correct,
        "rule_in_force": rule,
        "closed": "answered",
        "steps": steps,
        "refused": 0,
        "activations": 1,
        "class": exposed,
        "split": exposed and "pre",
        "post_evidence": None if exposed is None else 0,
        "distinct_configurations": 3,
        "first_activation": 2,
        "answer": rule,
    } | extra


def blicket_record(index: int, score: dict[str, Any], **changes: Any) -> Record:
    """One record; `changes` are to its fields."""
    kind = "earned" if score["correct"] else "short"
    said = {"kind": kind, "decided": score["correct"], "fits": True, "members": "1", "class": "one rule"}
    moves = [({"place": "A"}, "INACTIVE"), ({"place": "B"}, "ACTIVE")]
    record = Record(
        pool="p",
        pool_digest="d" * 64,
        pool_size=4,
        index=index,
        instance=f"I{index}",
        setting="moderator",
        stratum="easy-3",
        protocol="static",
        config={},
        outcome="found",
        answer={},
        size=None,
        score=score,
        provenance={},
        program="test",
        timing=Timing(0.5, "2026-01-01T00:00:00Z"),
        benchmark="blickets",
        steps=[*(StepRecord(*move, cost=1) for move in moves), StepRecord({"check": score["answer"]})],
        attribution=said,
    )
    return msgspec.structs.replace(record, **changes)


def write_records(folder: Path, records: Iterable[Record]) -> Path:
    """Return a run's folder with these records, in this order."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / FILE_NAME).write_bytes(b"".join(msgspec.json.encode(record) + b"\n" for record in records))
    return folder
