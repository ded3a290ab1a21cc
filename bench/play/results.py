"""Results of people: tidy rows for R, means over participants with intervals, learning curves.

The interval of a mean is clustered by participant and by item: both are drawn with replacement, and an answer counts as
often as its participant times its item was drawn (the pigeonhole bootstrap of A. B. Owen 2007).
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import numpy as np

from calibrant.bench.core.registry import stated_name
from calibrant.bench.play.journal import EVENTS
from calibrant.bench.play.plan import QUESTIONS
from calibrant.bench.play.record import PEOPLE
from calibrant.bench.runs.records import Record, folder_records

NUM_DRAWS = 2_000
SEED = 1


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
    moves = record.timing.moves if isinstance(record.timing.moves, list) else []
    acted = [seconds for seconds in moves if seconds > 0]
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
        round(sum(acted) / len(acted), 3) if acted else 0.0,
        record.timing.started,
    )


def answers_to_questions(folder: Path) -> Iterator[tuple[str, str, str, object]]:
    """Yield participant, page, question and answer of the pages of questions."""
    for event in EVENTS.read_records(folder / EVENTS.file_name):
        for question, answer in event.event.get("answers", {}).items():
            yield event.participant, event.instance.removeprefix(QUESTIONS), question, answer


@dataclass(frozen=True)
class ClusteredMean:
    """A mean over participants, each the mean of their items, with a 95% interval."""

    mean: float
    low: float
    high: float
    num_participants: int
    num_items: int


def clustered_mean(values: Sequence[tuple[str, str, float]]) -> ClusteredMean:
    """Return the mean of (participant, item, value); `ValueError` without any."""
    if not values:
        raise ValueError("no values")
    people = {name: k for k, name in enumerate(sorted({value[0] for value in values}))}
    items = {name: k for k, name in enumerate(sorted({value[1] for value in values}))}
    table = np.full((len(people), len(items)), np.nan)
    for person, item, value in values:
        table[people[person], items[item]] = value
    present = ~np.isnan(table)
    filled = np.where(present, table, 0.0)
    mean = float((filled.sum(1) / present.sum(1)).mean())
    rng = np.random.default_rng(SEED)
    draws = []
    for _ in range(NUM_DRAWS):
        weights = np.bincount(rng.integers(len(items), size=len(items)), minlength=len(items))
        chosen = rng.integers(len(people), size=len(people))
        totals, counts = (filled[chosen] * weights).sum(1), (present[chosen] * weights).sum(1)
        if (counts > 0).any():
            draws.append(float((totals[counts > 0] / counts[counts > 0]).mean()))
    low, high = np.quantile(draws, (0.025, 0.975))
    return ClusteredMean(mean, float(low), float(high), len(people), len(items))


def summary_lines(rows: Sequence[PersonRow]) -> Iterator[str]:
    """Yield means over participants by benchmark, then the share of right answers by position (a learning curve)."""
    for benchmark in sorted({row.benchmark for row in rows}):
        chosen = [row for row in rows if row.benchmark == benchmark]
        measures: dict[str, list[tuple[str, str, float]]] = {
            "right": [(r.participant, r.item, float(r.correct)) for r in chosen],
            "moves": [(r.participant, r.item, float(r.moves)) for r in chosen],
            "seconds a move": [(r.participant, r.item, r.seconds_a_move) for r in chosen],
        }
        for kind in ("earned", "lucky", "short", "missed"):
            measures[kind] = [(r.participant, r.item, float(r.kind == kind)) for r in chosen if r.kind]
        for name, values in measures.items():
            if values:
                mean = clustered_mean(values)
                size = f"{mean.num_participants} people, {mean.num_items} items"
                yield f"{benchmark}  {name.ljust(14)}  {mean.mean:.3f}  {mean.low:.3f} to {mean.high:.3f}  {size}"
        for position in sorted({row.position for row in chosen}):
            at = [(r.participant, r.item, float(r.correct)) for r in chosen if r.position == position]
            mean = clustered_mean(at)
            yield f"{benchmark}  right at item {position}  {mean.mean:.3f}  {mean.low:.3f} to {mean.high:.3f}"


def csv_text(rows: Iterable[PersonRow]) -> str:
    """Return rows as CSV with a line of names."""
    text = io.StringIO()
    writer = csv.DictWriter(text, [field.name for field in fields(PersonRow)], lineterminator="\n")
    writer.writeheader()
    writer.writerows(asdict(row) for row in rows)
    return text.getvalue()
