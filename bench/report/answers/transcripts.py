"""Whole episodes out of folders of runs and files of predictions, each with whose it is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from calibrant.bench.answers.names import differing_names, option_suffix
from calibrant.bench.core.scoring import AnswerContext
from calibrant.bench.report.scored_answers import context_of
from calibrant.bench.runs.records import folder_records
from calibrant.bench.scoring.answers import FieldNames
from calibrant.bench.scoring.predictions import Predictions
from calibrant.bench.scoring.scorer import PoolScorer, steps_of
from calibrant.dsl.episode import Step
from calibrant.dsl.errors import in_one_line


class Transcript(NamedTuple):
    """The steps of one episode. They are as somebody wrote them: what draws or scores them replays them first."""

    context: AnswerContext
    steps: Sequence[Step[Any]]


def transcripts(
    sources: Iterable[Path], pools: Sequence[Path], fields: FieldNames | None = None
) -> Iterator[Transcript]:
    """Yield every episode of the folders of runs, and of the files of predictions about items of these pools.

    pools: of one interactive benchmark; fields: what the predictions call their fields
    """
    scorer = PoolScorer(pools)
    for source in sources:
        if source.is_dir():
            for record in folder_records(source):
                if record.steps is not msgspec.UNSET:
                    yield Transcript(context_of(record), steps_of(record.steps))
        else:
            for prediction in Predictions(source, scorer, skip_unknown=True, fields=fields):
                yield Transcript(scorer.context(prediction), prediction.steps)


def named_systems(origins: Iterable[AnswerContext]) -> list[str]:
    """Return each answer's system with its sample and the options in which systems of one name differ."""
    origins = list(origins)
    names = []
    for origin in origins:
        of_system = [answer for answer in origins if answer.system == origin.system]
        name = origin.system + option_suffix(origin.config, differing_names([answer.config for answer in of_system]))
        alike = [answer for answer in of_system if answer.config == origin.config]
        names.append(in_one_line(name + (f" (sample {origin.sample})" if len(alike) > 1 else "")))
    return names
