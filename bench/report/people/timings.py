"""Times of people's answers, which tables of other systems do not read: when an item was begun, seconds a move."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple, TypeAlias

from calibrant.bench.answers.rates import mean_if_known
from calibrant.bench.core.scoring import PEOPLE, options_text
from calibrant.bench.runs.records import Record, folder_records

Subject: TypeAlias = tuple[str, str, str, str]  # pool digest, item, system, terms


class PersonTiming(NamedTuple):
    """Times of one answer. started: UTC, ISO 8601; seconds_a_move: mean; None of an answer without any move."""

    started: str
    seconds_a_move: float | None


def seconds_a_move(record: Record) -> float | None:
    """Return the mean seconds before each move of a record; None where it has none."""
    moves = record.timing.moves if isinstance(record.timing.moves, list) else []
    acted = [seconds for seconds in moves if seconds > 0]  # an episode's opening readings take none
    return mean_if_known(acted)


def read_timings(sources: Iterable[Path]) -> dict[Subject, PersonTiming]:
    """Return the times of all answers of people in folders of runs and of play; other sources have none."""
    timings = {}
    for folder in (source for source in sources if source.is_dir()):
        for record in folder_records(folder):
            if record.protocol.startswith(PEOPLE):
                subject = record.pool_digest, record.instance, record.protocol, options_text(record.config)
                timings[subject] = PersonTiming(record.timing.started, seconds_a_move(record))
    return timings
