"""Answers to one item out of folders of runs and files of predictions, each with what its system is called."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from calibrant.bench.core.scoring import AnswerContext
from calibrant.bench.report.answers.transcripts import named_systems
from calibrant.bench.report.scored_answers import context_of
from calibrant.bench.runs.records import Record, folder_records
from calibrant.bench.scoring.answers import FieldNames
from calibrant.bench.scoring.predictions import Predictions
from calibrant.bench.scoring.scorer import PoolScorer
from calibrant.dsl.errors import CalibrantError, in_one_line
from calibrant.dsl.records import pool_digest


def submitted_answers(
    sources: Sequence[Path], pool: Path, instance: str, system: str | None, fields: FieldNames | None = None
) -> list[tuple[str, str | Mapping[str, Any]]]:
    """Return the answers to an item with their systems; `CalibrantError` if there are none.

    An answer is an object, or the text of a response that is read when it is scored.
    """
    digest = pool_digest(pool)
    answered = [
        (context, answer)
        for context, answer in read_answers(sources, [pool], fields)
        if (context.pool_digest, context.instance) == (digest, instance) and context.outcome != "crashed"
    ]
    matching = [(context, answer) for context, answer in answered if system in (None, context.system)]
    if not matching:
        of_system = "" if system is None else f" of {system}"
        systems = ", ".join(dict.fromkeys(in_one_line(context.system) for context, _ in answered))
        others = f"; there are answers of {systems}" if systems else ""
        raise CalibrantError(
            f"no answer{of_system} to {instance} of this pool in {', '.join(map(str, sources))}{others}"
        )
    names = named_systems(context for context, _ in matching)
    return [(name, answer) for name, (_, answer) in zip(names, matching, strict=True)]


def crashes_on(sources: Sequence[Path], pool: Path, instance: str, system: str | None) -> tuple[list[Record], bool]:
    """Return the crashes of runs on an item, and whether there may be other answers to it."""
    digest, has_others = pool_digest(pool), any(not source.is_dir() for source in sources)
    crashes: list[Record] = []
    for record in (record for source in sources if source.is_dir() for record in folder_records(source)):
        if (record.pool_digest, record.instance) == (digest, instance) and system in (None, record.protocol):
            if record.outcome == "crashed":
                crashes.append(record)
            else:
                has_others = True
    return crashes, has_others


def read_answers(
    sources: Sequence[Path], pools: Sequence[Path], fields: FieldNames | None
) -> Iterator[tuple[AnswerContext, str | Mapping[str, Any]]]:
    """Yield the answers of folders of runs, and those of files of predictions to items of these pools."""
    scorer = PoolScorer(pools)
    for source in sources:
        if source.is_dir():
            yield from ((context_of(record), record.answer or {}) for record in folder_records(source))
        else:
            for prediction in Predictions(source, scorer, skip_unknown=True, fields=fields):
                yield scorer.context(prediction), prediction.answer
