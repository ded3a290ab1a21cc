"""Evaluator of answers that were extracted, or replayed, when they were read."""

from __future__ import annotations

from typing import Any

from calibrant.bench.core.attribution import KEY
from calibrant.bench.core.benchmark import Benchmark
from calibrant.bench.core.scoring import AnswerContext, Prediction, line_head, line_place


class AnswerEvaluator:
    """Gives verdicts on answers to one item by the benchmark's score and attribution."""

    def __init__(self, benchmark: Benchmark[Any], item: Any) -> None:
        self._benchmark = benchmark
        self._item = item

    def evaluate(self, prediction: Prediction, context: AnswerContext) -> dict[str, Any]:
        """Return the line: the benchmark's keys, then problem, replies, attribution and where the answer belongs."""
        answer = prediction.answer
        assert isinstance(answer, dict)
        score = self._benchmark.scoring.score(self._item, answer, prediction.steps)
        return {
            "benchmark": self._benchmark.name,
            **line_head(prediction),
            **score,
            "problem": prediction.problem or prediction.gap,
            **({} if prediction.dialogue is None else {"dialogue": prediction.dialogue}),
            KEY: self._benchmark.attribution(self._item, answer, prediction.steps, score),
            **line_place(context),
            "seconds": prediction.seconds,
        }
