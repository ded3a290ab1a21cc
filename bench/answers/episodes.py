"""Predictions about interactive items: steps that are replayed before they count, or an answer submitted at once.

A line may have `steps`, as records have them. Each is played again; the first that the item does not answer so is
refused with its line and number. An answer is submitted after the steps, if these have not submitted the same already.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from bench.answers.fields import AnswerField, answer_field
from bench.answers.played import played
from bench.answers.predictions import Prediction
from bench.answers.replies import ReplyPredictions, ReplyScorer
from bench.runs.records import StepRecord
from dsl.episode import Step
from dsl.errors import CalibrantError, shown

STEPS_FIELD = "steps"


class EpisodeScorer(ReplyScorer):
    """Scores predictions for pools of one interactive benchmark."""

    def read(self, prediction: Prediction, line: Mapping[str, Any]) -> Prediction:
        """The prediction after the line's steps were replayed and its answer was submitted.

        `TranscriptError` names a false step; `CalibrantError` says that the answer is not what the steps submit.
        """
        found = played(self.benchmark, self.item(prediction), prediction.answer, _steps(line.get(STEPS_FIELD)))
        return prediction._replace(answer=found.answer, steps=found.steps, problem=found.problem)


class EpisodePredictions(ReplyPredictions):
    """The predictions of a file, played: `CalibrantError` names file, line and step of the first that is not true."""

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
