"""Predictions scored on a cluster, in groups; the verdicts come in the order of the predictions.

Processes of this machine are started for a long file only, and send back less: bench.scoring.parallel.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice

from calibrant.bench.core.scoring import Prediction
from calibrant.bench.runs.executors.opening import open_executor
from calibrant.bench.runs.jobs import Execution, Executor, Failure, error_line
from calibrant.bench.scoring.scorer import PoolScorer, ScoredPrediction
from calibrant.dsl.errors import CalibrantError, short_repr

GROUP_SIZE = 50  # predictions of one job: a verdict takes a millisecond, to send one alone takes longer
GROUPS_AHEAD = 100  # that are read before all of them are scored


def score_on_cluster(
    scorer: PoolScorer, predictions: Iterable[Prediction], execution: Execution
) -> Iterator[ScoredPrediction]:
    """Yield each prediction's verdict; scored in this process if `execution` has no cluster."""
    if execution.cluster is None:
        yield from map(scorer.score, predictions)
        return
    remaining = iter(predictions)
    with open_executor(_prepare_nothing, execution) as executor:
        while groups := _groups(islice(remaining, GROUP_SIZE * GROUPS_AHEAD)):
            yield from _score_in_order(executor, scorer, groups)


def _groups(predictions: Iterable[Prediction]) -> list[list[Prediction]]:
    listed = list(predictions)
    return [listed[start : start + GROUP_SIZE] for start in range(0, len(listed), GROUP_SIZE)]


def _score_in_order(
    executor: Executor, scorer: PoolScorer, groups: list[list[Prediction]]
) -> Iterator[ScoredPrediction]:
    verdicts_by_group: dict[int, list[ScoredPrediction]] = {}
    for number, verdicts in executor.as_completed(partial(_score_group, scorer), dict(enumerate(groups))):
        if isinstance(verdicts, Failure):
            first, last = groups[number][0].instance, groups[number][-1].instance
            raise CalibrantError(f"predictions from {short_repr(first)} to {short_repr(last)}: {verdicts.error}")
        verdicts_by_group[number] = verdicts
    for number in range(len(groups)):
        yield from verdicts_by_group[number]


def _score_group(scorer: PoolScorer, group: list[Prediction]) -> list[ScoredPrediction]:
    return [score_prediction(scorer, prediction) for prediction in group]


def score_prediction(scorer: PoolScorer, prediction: Prediction) -> ScoredPrediction:
    """Return the verdict; an exception names the instance."""
    try:
        return scorer.score(prediction)
    except Exception as error:
        raise CalibrantError(f"{short_repr(prediction.instance)}: {error_line(error)}") from error


def _prepare_nothing() -> None:
    pass
