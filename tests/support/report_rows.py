"""Made-up scored answers for tests of tables and reports, and folders of runs that hold them."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from calibrant.bench.core.metrics import InvalidHandling
from calibrant.bench.core.scoring import AnswerContext
from calibrant.bench.replayscm.paper import report_rows
from calibrant.bench.report.layout import Source, Table
from calibrant.bench.report.rows import Grouping, Row
from calibrant.bench.runs.records import FILE_NAME, Record, StepRecord, Timing

INVALID: dict[str, Any] = {"valid": False, "correct": False}


def answer(train: float, heldout: float, local_match: float | None = None, **extra: Any) -> dict[str, Any]:
    """Return a valid answer with these shares of exact worlds and of mechanisms that mean the same as gold."""
    exact = {"trainExact": train == 1, "heldoutExact": train == 1 and heldout == 1, "correct": train == 1}
    rates = {"trainWorldExactAccuracy": train, "heldoutWorldExactAccuracy": heldout}
    structure = None if local_match is None else {"local_match": local_match}
    return {"valid": True, **exact, **rates, "structure": structure, "goldAstSize": 20, **extra}


class Answers(NamedTuple):
    """What one system scored on one pool; instances are numbered.

    is_run: a search's, with an outcome and seconds; stratum: by default one of the published generator
    """

    system: str
    scores: Sequence[Mapping[str, Any]]
    setting: str = "Ordered"
    pool: str = "p"
    is_run: bool = True
    suffix: str = ""
    seconds: float = 0.5
    stratum: str = "hs_n8_bridge"

    def answers(self) -> Iterable[tuple[AnswerContext, Mapping[str, Any]]]:
        for i, score in enumerate(self.scores):
            outcome, seconds = ("found", self.seconds * (i + 1)) if self.is_run else (None, None)
            yield (
                AnswerContext(
                    self.system,
                    self.pool,
                    f"digest of {self.pool}",
                    len(self.scores),
                    f"I{i}{self.suffix}",
                    self.setting,
                    self.stratum,
                    {},
                    outcome,
                    seconds,
                ),
                score,
            )


def rows_of(
    *answers: Answers, by: Grouping = Grouping.POOL, means: InvalidHandling = InvalidHandling.PUBLISHED
) -> list[Row]:
    return report_rows((answer for one in answers for answer in one.answers()), by, means)


def row_of(scores: Sequence[Mapping[str, Any]], **options: Any) -> Row:
    (row,) = rows_of(Answers("s", scores, **options))
    return row


def ours(table: Table | None) -> list[dict[str, str]]:
    """Return the rows of a table that are not the paper's: label and column keys to printed texts, intervals apart."""
    assert table is not None
    made = []
    for row in table.rows:
        if row.source is Source.OURS:
            line = dict(zip((h.key for h in table.labels), row.labels, strict=True))
            for heading, cell in zip(table.headings, row.cells, strict=True):
                line[heading.key] = cell.text
                line[f"{heading.key} interval"] = cell.interval
            made.append(line)
    return made


def write_run(folder: Path, *answers: Answers, order: int = 0, started: str = "2026-01-01T00:00:00Z") -> Path:
    """Return a folder as `calibrant run` leaves it; `order` shuffles its lines."""
    lines = []
    for one in answers:
        for index, (origin, score) in enumerate(one.answers()):
            record = Record(
                pool=origin.pool,
                pool_digest=origin.pool_digest,
                pool_size=origin.pool_size,
                index=index,
                instance=origin.instance,
                setting=origin.setting,
                stratum=origin.stratum,
                protocol=origin.system,
                config={},
                outcome="found",
                answer={},
                size=None,
                score=dict(score),
                provenance={},
                program="test",
                timing=Timing(origin.seconds or 0.0, started),
            )
            lines.append(msgspec.json.encode(record) + b"\n")
    random.Random(order).shuffle(lines)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / FILE_NAME).write_bytes(b"".join(lines))
    return folder


# --- Records of made-up blicket episodes, for tests of tables and reports ---------------------------------------------
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
