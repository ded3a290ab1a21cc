"""Results of people: tidy rows for R or pandas, means over participants with intervals, learning curves."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import msgspec

from calibrant.bench.answers.intervals import Value, clustered_mean
from calibrant.bench.core.benchmark import load_benchmark
from calibrant.bench.core.registry import stated_name
from calibrant.bench.core.scoring import PEOPLE
from calibrant.bench.play.folder import EVENTS, check_participant, evidence_attribution, protocol_of
from calibrant.bench.play.game import QUESTIONS, PlayPool
from calibrant.bench.play.review import ReviewedItem
from calibrant.bench.report.people import seconds_a_move
from calibrant.bench.report.remaining import MAX_EXPORTED, Remaining, RemainingLists
from calibrant.bench.runs.records import Record, folder_records
from calibrant.bench.runs.workers import exact_episode
from calibrant.bench.scoring.scorer import steps_of
from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.text import plural

SEPARATOR = " | "  # between hypotheses in a cell


@dataclass(frozen=True)
class PersonRow:
    """One participant on one item.

    position: of the item among those that the participant ended, from 1
    correct: 1 if the answer is right, else 0; None where nothing is held out
    kind: earned, lucky, short or missed; empty where it was not attributed
    hypotheses: how many were still open at the answer; remaining: the first MAX_EXPORTED of them in words
    answers: of the participant to the pages of questions, by page and question
    """

    participant: str
    position: int
    benchmark: str
    pool: str
    item: str
    setting: str
    study: str
    feedback: str
    correct: int | None
    kind: str
    hypotheses: str
    moves: int
    refused: int
    seconds: float
    seconds_a_move: float
    started: str
    remaining: Remaining | None = None
    answers: Mapping[str, Any] = field(default_factory=dict)

    def cells(self) -> dict[str, Any]:
        """Return the row for CSV; hypotheses that are not listed are counted at the end of the list."""
        named = {name: getattr(self, name) for name in NAMES}
        open_text = "" if self.remaining is None else SEPARATOR.join(self.remaining.lines())
        return named | {"open": open_text} | dict(self.answers)

    def to_dict(self) -> dict[str, Any]:
        """Return the row, ready for JSON."""
        return self.cells() | {"open": None if self.remaining is None else self.remaining.to_dict()}


NAMES = [entry.name for entry in fields(PersonRow) if entry.name not in ("remaining", "answers")]


def person_rows(folder: Path, pools: Sequence[PlayPool] = ()) -> list[PersonRow]:
    """Return the rows of a folder of play, by participant in the order in which items were begun.

    pools: of whose items the hypotheses that were open are listed
    """
    if not any(folder.glob("*.jsonl")):
        raise CalibrantError(f"{folder}: no item has been ended there yet")
    answers: dict[str, dict[str, Any]] = {}
    for participant, page, question, answer in answers_to_questions(folder):
        answers.setdefault(participant, {})[f"{page}.{question}"] = answer
    by_digest = {pool.digest: (pool, RemainingLists(pool.benchmark, MAX_EXPORTED)) for pool in pools}
    records = [record for record in folder_records(folder) if record.protocol.startswith(PEOPLE)]
    records.sort(key=lambda record: (record.protocol, record.timing.started))
    positions: dict[str, int] = {}
    rows = []
    for record in records:
        positions[record.protocol] = positions.get(record.protocol, 0) + 1
        attribution = record.attribution if isinstance(record.attribution, dict) else {}
        remaining = None
        if record.pool_digest in by_digest:
            pool, lists = by_digest[record.pool_digest]
            item = pool.item(record.instance)
            attribution = evidence_attribution(pool.benchmark, item, record)
            taken = [] if record.steps is msgspec.UNSET else steps_of(record.steps)
            remaining = lists.get(pool.digest, pool.public.shown(item), taken)
        row = _row(record, positions[record.protocol], attribution, remaining)
        rows.append(replace(row, answers=answers.get(row.participant, {})))
    return rows


def _row(record: Record, position: int, attribution: Mapping[str, Any], remaining: Remaining | None) -> PersonRow:
    steps = record.steps if isinstance(record.steps, list) else []
    mean_seconds = seconds_a_move(record)
    counted = "" if remaining is None else str(remaining.count)
    is_right = load_benchmark(stated_name(record.benchmark)).metrics.success.judge(record.score, record.setting)
    return PersonRow(
        record.protocol.removeprefix(PEOPLE),
        position,
        stated_name(record.benchmark),
        record.pool,
        record.instance,
        record.setting,
        str(record.config.get("study", "")),
        str(record.config.get("feedback", "")),
        None if is_right is None else int(is_right),
        str(attribution.get("kind", "")),
        str(attribution.get("members", counted)),
        sum(step.cost for step in steps),
        sum(bool(step.refused) for step in steps),
        record.timing.seconds,
        0.0 if mean_seconds is None else round(mean_seconds, 3),
        record.timing.started,
        remaining,
    )


def answers_to_questions(folder: Path) -> Iterator[tuple[str, str, str, object]]:
    """Yield participant, page, question and answer of the pages of questions.

    Pages are called by their files, with the number of the block where a study has one twice.
    """
    events = [e for e in EVENTS.read_records(folder / EVENTS.file_name) if e.instance.startswith(QUESTIONS)]
    blocks = {event.instance: event.instance.removeprefix(QUESTIONS).partition("-") for event in events}
    times = Counter(file for _, _, file in blocks.values())
    names = {key: file if times[file] == 1 else f"{file}{number}" for key, (number, _, file) in blocks.items()}
    for event in events:
        for question, answer in event.event.get("answers", {}).items():
            yield event.participant, names[event.instance], question, answer


def summary_lines(rows: Sequence[PersonRow]) -> Iterator[str]:
    """Yield means over participants by benchmark, then the share of right answers by position (a learning curve)."""
    for benchmark in sorted({row.benchmark for row in rows}):
        chosen = [row for row in rows if row.benchmark == benchmark]
        judged = [(row, row.correct) for row in chosen if row.correct is not None]
        measures: dict[str, list[Value]] = {"right": [_value(row, correct) for row, correct in judged]}
        seconds = [_value(row, row.seconds_a_move) for row in chosen]
        if any(row.moves for row in chosen):
            measures |= {"moves": [_value(row, row.moves) for row in chosen], "seconds a move": seconds}
        else:  # questions are answered at once
            measures["seconds an answer"] = seconds
        for kind in ("earned", "lucky", "short", "missed"):
            measures[kind] = [_value(row, row.kind == kind) for row in chosen if row.kind]
        for name, values in measures.items():
            if values:
                yield f"{benchmark}  {name.ljust(17)}  {_mean_text(values)}"
        for position in sorted({row.position for row, _ in judged}):
            at = [_value(row, correct) for row, correct in judged if row.position == position]
            yield f"{benchmark}  right at item {position}  {_mean_text(at)}"


def _value(row: PersonRow, value: float) -> Value:
    return row.participant, f"{row.pool} {row.item}", float(value)


def _mean_text(values: Sequence[Value]) -> str:
    mean = clustered_mean(values)
    reach = "" if mean.interval is None else f"  {mean.interval.low:.3f} to {mean.interval.high:.3f}"
    people = f"{mean.num_participants} {'person' if mean.num_participants == 1 else 'people'}"
    return f"{mean.mean:.3f}{reach}  {people}, {plural(mean.num_items, 'items')}"


def csv_text(rows: Iterable[PersonRow]) -> str:
    """Return rows as CSV with a line of names."""
    text = io.StringIO()
    listed = [row.cells() for row in rows]
    questions = dict.fromkeys(name for cells in listed for name in cells if name not in NAMES and name != "open")
    writer = csv.DictWriter(text, [*NAMES, "open", *questions], lineterminator="\n")
    writer.writeheader()
    writer.writerows(listed)
    return text.getvalue()


def json_text(rows: Iterable[PersonRow]) -> str:
    """Return rows as one JSON list."""
    return json.dumps([row.to_dict() for row in rows], ensure_ascii=False, indent=1) + "\n"


# --- Reviews from the records of a folder, which nobody has to play or serve meanwhile --------------------------------


def stored_reviews(folder: Path, pools: Sequence[PlayPool], participant: str) -> list[ReviewedItem]:
    """Return what a participant ended, under the pools' own ids, in the order in which it was begun.

    `CalibrantError` if that is nothing.
    """
    protocol = protocol_of(check_participant(participant))
    by_digest = {pool.digest: pool for pool in pools}
    records = [record for record in folder_records(folder) if record.pool_digest in by_digest]
    chosen = sorted((r for r in records if r.protocol == protocol), key=lambda record: record.timing.started)
    if not chosen:
        names = sorted({record.protocol for record in records if record.protocol.startswith(protocol_of(""))})
        listed = ", ".join(name.removeprefix(protocol_of("")) for name in names[:20]) or "none"
        raise CalibrantError(f"{folder}: {participant} ended no item of these pools; who did: {listed}")
    return [_review(by_digest[record.pool_digest], record) for record in chosen]


def _review(pool: PlayPool, record: Record) -> ReviewedItem:
    """Return the item of a record; what the evidence of a question decided is counted here."""
    item = pool.item(record.instance)
    attribution = evidence_attribution(pool.benchmark, item, record)
    return ReviewedItem(pool.benchmark, item, record, exact_episode(pool.benchmark, item), attribution)
