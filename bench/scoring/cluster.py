"""Predictions scored on a cluster, in groups; the verdicts come in the order of the predictions.

Processes of this machine are started for a long file only, and send back less: bench.scoring.parallel.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice
from typing import Protocol

from calibrant.bench.report.rate_rows import AnswerOrigin
from calibrant.bench.runs.executors.opening import open_crew
from calibrant.bench.runs.jobs import Crew, Execution, Failure, error_line
from calibrant.bench.scoring.predictions import Prediction
from calibrant.bench.scoring.scorer import ScoredPrediction
from calibrant.dsl.errors import CalibrantError, short_repr

GROUP = 50  # predictions of one job: a verdict takes a millisecond, to send one alone takes longer
AT_ONCE = 100  # groups that are read before all of them are scored


class Scorer(Protocol):
    """What has a verdict on each prediction. It can be pickled."""

    def origin(self, prediction: Prediction) -> AnswerOrigin: ...

    def score(self, prediction: Prediction) -> ScoredPrediction: ...

    def forget(self) -> None:
        """Drop what is kept of scored predictions to score others sooner."""


def scored(scorer: Scorer, predictions: Iterable[Prediction], execution: Execution) -> Iterator[ScoredPrediction]:
    """Each prediction's verdict; in this process where there is no cluster."""
    if execution.cluster is None:
        yield from map(scorer.score, predictions)
        return
    left = iter(predictions)
    with open_crew(_nothing, execution) as crew:
        while groups := _groups(islice(left, GROUP * AT_ONCE)):
            yield from _in_order(crew, scorer, groups)


def _groups(predictions: Iterable[Prediction]) -> list[list[Prediction]]:
    all_of_them = list(predictions)
    return [all_of_them[start : start + GROUP] for start in range(0, len(all_of_them), GROUP)]


def _in_order(crew: Crew, scorer: Scorer, groups: list[list[Prediction]]) -> Iterator[ScoredPrediction]:
    found: dict[int, list[ScoredPrediction]] = {}
    for number, verdicts in crew.completed(partial(_verdicts, scorer), dict(enumerate(groups))):
        if isinstance(verdicts, Failure):
            first, last = groups[number][0].instance, groups[number][-1].instance
            raise CalibrantError(f"predictions from {short_repr(first)} to {short_repr(last)}: {verdicts.error}")
        found[number] = verdicts
    for number in range(len(groups)):
        yield from found[number]


def _verdicts(scorer: Scorer, group: list[Prediction]) -> list[ScoredPrediction]:
    return [judged(scorer, prediction) for prediction in group]


def judged(scorer: Scorer, prediction: Prediction) -> ScoredPrediction:
    """The verdict; an exception names the instance."""
    try:
        return scorer.score(prediction)
    except Exception as error:
        raise CalibrantError(f"{short_repr(prediction.instance)}: {error_line(error)}") from error


def _nothing() -> None:
    pass
