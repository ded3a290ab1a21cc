"""Results of people: tidy rows for R, means over participants with intervals, learning curves."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from calibrant.bench.core.answer_context import PEOPLE
from calibrant.bench.core.registry import stated_name
from calibrant.bench.play.journal import EVENTS
from calibrant.bench.play.plan import QUESTIONS
from calibrant.bench.report.people.clusters import Value, clustered_mean
from calibrant.bench.report.people.timings import seconds_a_move
from calibrant.bench.runs.records import Record, folder_records


@dataclass(frozen=True)
class PersonRow:
    """One participant on one item.

    position: of the item among those that the participant ended, from 1; hypotheses: how many were still open
    kind: earned, lucky, short or missed; empty where it was not attributed
    """

    participant: str
    position: int
    benchmark: str
    pool: str
    item: str
    setting: str
    study: str
    feedback: str
    correct: int
    kind: str
    hypotheses: str
    moves: int
    refused: int
    seconds: float
    seconds_a_move: float
    started: str


def person_rows(folder: Path) -> list[PersonRow]:
    """Return the rows of a folder of play, by participant in the order in which items were begun."""
    records = [record for record in folder_records(folder) if record.protocol.startswith(PEOPLE)]
    records.sort(key=lambda record: (record.protocol, record.timing.started))
    positions: dict[str, int] = {}
    rows = []
    for record in records:
        positions[record.protocol] = positions.get(record.protocol, 0) + 1
        rows.append(_row(record, positions[record.protocol]))
    return rows


def _row(record: Record, position: int) -> PersonRow:
    steps = record.steps if isinstance(record.steps, list) else []
    attribution = record.attribution if isinstance(record.attribution, dict) else {}
    mean_seconds = seconds_a_move(record)
    return PersonRow(
        record.protocol.removeprefix(PEOPLE),
        position,
        stated_name(record.benchmark),
        record.pool,
        record.instance,
        record.setting,
        str(record.config.get("study", "")),
        str(record.config.get("feedback", "")),
        int(record.score.get("correct") is True),
        str(attribution.get("kind", "")),
        str(attribution.get("members", "")),
        sum(step.cost for step in steps),
        sum(bool(step.refused) for step in steps),
        record.timing.seconds,
        0.0 if mean_seconds is None else round(mean_seconds, 3),
        record.timing.started,
    )


def answers_to_questions(folder: Path) -> Iterator[tuple[str, str, str, object]]:
    """Yield participant, page, question and answer of the pages of questions."""
    for event in EVENTS.read_records(folder / EVENTS.file_name):
        for question, answer in event.event.get("answers", {}).items():
            yield event.participant, event.instance.removeprefix(QUESTIONS), question, answer


def summary_lines(rows: Sequence[PersonRow]) -> Iterator[str]:
    """Yield means over participants by benchmark, then the share of right answers by position (a learning curve)."""
    for benchmark in sorted({row.benchmark for row in rows}):
        chosen = [row for row in rows if row.benchmark == benchmark]
        measures: dict[str, list[Value]] = {
            "right": [_value(row, row.correct) for row in chosen],
            "moves": [_value(row, row.moves) for row in chosen],
            "seconds a move": [_value(row, row.seconds_a_move) for row in chosen],
        }
        for kind in ("earned", "lucky", "short", "missed"):
            measures[kind] = [_value(row, row.kind == kind) for row in chosen if row.kind]
        for name, values in measures.items():
            if values:
                yield f"{benchmark}  {name.ljust(14)}  {_mean_text(values)}"
        for position in sorted({row.position for row in chosen}):
            at = [_value(row, row.correct) for row in chosen if row.position == position]
            yield f"{benchmark}  right at item {position}  {_mean_text(at)}"


def _value(row: PersonRow, value: float) -> Value:
    return row.participant, f"{row.pool} {row.item}", float(value)


def _mean_text(values: Sequence[Value]) -> str:
    mean = clustered_mean(values)
    reach = "" if mean.interval is None else f"  {mean.interval.low:.3f} to {mean.interval.high:.3f}"
    return f"{mean.mean:.3f}{reach}  {mean.num_participants} people, {mean.num_items} items"


def csv_text(rows: Iterable[PersonRow]) -> str:
    """Return rows as CSV with a line of names."""
    text = io.StringIO()
    writer = csv.DictWriter(text, [field.name for field in fields(PersonRow)], lineterminator="\n")
    writer.writeheader()
    writer.writerows(asdict(row) for row in rows)
    return text.getvalue()
