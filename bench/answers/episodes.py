"""Predictions about interactive items: steps that are replayed before they count, or an answer submitted at once.

A line may have `steps`, as records have them. Each is played again; the first that the item does not answer so is
refused with its line and number. An answer is submitted after the steps, if these have not submitted the same already.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from bench.answers.attribution import KEY
from bench.answers.fields import AnswerField, FieldNames, answer_field
from bench.answers.predictions import PoolItems, Prediction, Predictions, Samples
from bench.answers.verdicts import ScoredPrediction, origin_of_line
from bench.benchmarks.base import Benchmark
from bench.benchmarks.registry import one_benchmark
from bench.runs.records import StepRecord
from dsl.action import ActionError
from dsl.episode import Step, verified
from dsl.errors import CalibrantError, shown
from dsl.item import Item
from dsl.pool_text import pool_digest

STEPS_FIELD = "steps"
NO_ANSWER = "no answer"


@dataclass(frozen=True)
class _EpisodePool:
    name: str
    file: str
    digest: str
    items: Mapping[str, Item[Any, Any]]


class EpisodeScorer:
    """Scores predictions for pools of one interactive benchmark."""

    def __init__(self, pools: Sequence[Path]) -> None:
        self.benchmark: Benchmark[Any] = one_benchmark(pools)
        self._pools: dict[str, _EpisodePool] = {}
        for path in pools:
            pool, digest = self.benchmark.read_pool(path), pool_digest(path)
            self._pools[digest] = _EpisodePool(pool.name, path.name, digest, {item.id: item for item in pool.items})

    @property
    def items(self) -> list[PoolItems]:
        """What predictions may be about."""
        return [
            PoolItems(pool.digest, tuple(dict.fromkeys((pool.name, pool.file))), pool.items.keys())
            for pool in self._pools.values()
        ]

    def played(self, prediction: Prediction, steps: Sequence[Step[Any]]) -> Prediction:
        """The prediction after its steps were replayed and its answer was submitted.

        `TranscriptError` names a false step; `CalibrantError` says that the answer is not what the steps submit.
        """
        item = self._pools[prediction.pool].items[prediction.instance]
        episode = verified(self.benchmark.episode(item), steps)
        answer, problem = self._answer(item, prediction)
        submitted = self.benchmark.handed_in(episode.steps)
        if submitted is not None:
            if answer and not self.benchmark.same_answer(item, answer, submitted):
                raise CalibrantError(f"the answer {shown(answer)} is not what the steps submit: {shown(submitted)}")
            answer, problem = submitted, ""
        elif answer:
            actions = self.benchmark.handing_in(answer, tuple(episode.steps))
            problem = next((step.refused for step in map(episode.act, actions) if step.refused), "")
        return prediction._replace(answer=answer, steps=tuple(episode.steps), problem=problem)

    def _answer(self, item: Item[Any, Any], prediction: Prediction) -> tuple[dict[str, Any], str]:
        if not prediction.answer:
            return {}, NO_ANSWER
        try:
            return self.benchmark.extract(item, prediction.answer), ""
        except ActionError as error:
            return {}, str(error)

    def score(self, prediction: Prediction) -> ScoredPrediction:
        """The verdict on a prediction that was played: the benchmark's keys, then where it belongs."""
        pool = self._pools[prediction.pool]
        item = pool.items[prediction.instance]
        assert isinstance(prediction.answer, dict)
        score = self.benchmark.score(item, prediction.answer, prediction.steps)
        line = {
            "benchmark": self.benchmark.name,
            "instanceId": item.id,
            "model": prediction.model,
            "sample": prediction.sample,
            **score,
            "problem": prediction.problem,
            KEY: self.benchmark.attribution(item, prediction.answer, prediction.steps, score),
            "pool": pool.name,
            "poolDigest": pool.digest,
            "poolSize": len(pool.items),
            "setting": item.setting,
            "stratum": item.stratum,
            "seconds": prediction.seconds,
        }
        return ScoredPrediction(origin_of_line(line), line)


class EpisodePredictions(Predictions):
    """The predictions of a file, played: `CalibrantError` names file, line and step of the first that is not true."""

    def __init__(
        self,
        path: Path,
        scorer: EpisodeScorer,
        *,
        skip_unknown: bool = False,
        hint: str = "",
        fields: FieldNames | None = None,
    ) -> None:
        super().__init__(path, scorer.items, skip_unknown=skip_unknown, hint=hint, fields=fields)
        self._scorer = scorer

    def _of_line(self, line: Mapping[str, Any], samples: Samples) -> Iterator[Prediction]:
        steps = _steps(line.get(STEPS_FIELD))
        for prediction in super()._of_line(line, samples):
            played = self._scorer.played(prediction, steps)
            self.num_unread += bool(played.problem)
            yield played

    def _answers(self, line: Mapping[str, Any]) -> AnswerField:
        try:
            return answer_field(line, self._fields.text)
        except CalibrantError:
            if line.get(STEPS_FIELD) is None or self._fields.text:
                raise
            return AnswerField(STEPS_FIELD, "transcript", ("",))


def _steps(value: Any) -> list[Step[Any]]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise CalibrantError(f"steps is {shown(value)}, not a list of steps")
    found: list[Step[Any]] = []
    for number, one in enumerate(value):
        try:
            read = msgspec.convert(one, StepRecord, strict=True)
        except msgspec.ValidationError as error:
            raise CalibrantError(f"step {number}: {' '.join(str(error).split())[:300]}") from None
        found.append(Step(read.action, read.reading, read.refused, read.cost))
    return found
