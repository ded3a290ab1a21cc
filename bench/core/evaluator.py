"""Predictions, and evaluators that give verdicts on those about one item, as lines of `calibrant score`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

from calibrant.bench.core.answer_context import AnswerContext
from calibrant.bench.core.attribution import KEY
from calibrant.dsl.episode import Step

Answer: TypeAlias = str | dict[str, Any]


class Prediction(NamedTuple):
    """One answer of a model to an item.

    pool: digest of the pool that has the item; sample: number among the model's answers to it
    seconds: the time that it took, if the line states it
    steps: of an episode, all of them, the submission too; problem: why nothing was submitted
    unread: why the response has no answer; gap: the part that a submitted answer lacks, and why
    """

    pool: str
    instance: str
    model: str | None
    sample: int
    answer: Answer
    seconds: float | None = None
    steps: tuple[Step[Any], ...] = ()
    problem: str = ""
    unread: str = ""
    gap: str = ""


class Evaluator(Protocol):
    """Gives verdicts on answers to one item; it may be expensive to make, and is cached while answers arrive."""

    def evaluate(self, prediction: Prediction, context: AnswerContext) -> Mapping[str, Any]:
        """Return the line of the verdict; a `LazyVerdict` where tables can count it before the line is made."""


class Scorable(Protocol):
    """The parts of a benchmark that score one answer."""

    @property
    def name(self) -> str: ...
    def score(self, item: Any, answer: Mapping[str, Any], steps: Sequence[Step[Any]]) -> dict[str, Any]: ...
    def attribution(
        self, item: Any, answer: Mapping[str, Any], steps: Sequence[Step[Any]], score: Mapping[str, Any]
    ) -> dict[str, Any] | None: ...


class AnswerEvaluator:
    """Evaluator of answers that were extracted, or replayed, when they were read."""

    def __init__(self, benchmark: Scorable, item: Any) -> None:
        self._benchmark = benchmark
        self._item = item

    def evaluate(self, prediction: Prediction, context: AnswerContext) -> dict[str, Any]:
        """Return the line: the benchmark's keys, then problem, attribution and where the answer belongs."""
        answer = prediction.answer
        assert isinstance(answer, dict)
        score = self._benchmark.score(self._item, answer, prediction.steps)
        return {
            "benchmark": self._benchmark.name,
            **line_head(prediction),
            **score,
            "problem": prediction.problem or prediction.gap,
            KEY: self._benchmark.attribution(self._item, answer, prediction.steps, score),
            **line_place(context),
            "seconds": prediction.seconds,
        }


def line_head(prediction: Prediction) -> dict[str, Any]:
    """Return the first fields of a line: who answered what."""
    return {"instanceId": prediction.instance, "model": prediction.model, "sample": prediction.sample}


def line_place(context: AnswerContext) -> dict[str, Any]:
    """Return the fields of a line that place its item."""
    return {
        "pool": context.pool,
        "poolDigest": context.pool_digest,
        "poolSize": context.pool_size,
        "setting": context.setting,
        "stratum": context.stratum,
    }
