"""Predictions about interactive items: steps that are replayed before they count, or an answer submitted at once.

A line may have `steps`, as records have them. Each is played again; the first that the item does not answer so is
refused with its line and number. An answer is submitted after the steps, if these have not submitted the same already.
A line with `item`, `agent` and `steps` is a trace in the benchmark's own format; all that it says has to be so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from calibrant.bench.core.registry import one_benchmark
from calibrant.bench.scoring.input.answer_fields import AnswerField, answer_field
from calibrant.bench.scoring.predictions import Prediction
from calibrant.bench.scoring.replies import ReplyPredictions, ReplyScorer
from calibrant.bench.scoring.transcript_replay import played, steps_of
from calibrant.dsl.errors import CalibrantError

STEPS_FIELD = "steps"
ITEM_FIELD, AGENT_FIELD = "item", "agent"  # of a trace


class EpisodeScorer(ReplyScorer):
    """Scores predictions for pools of one interactive benchmark."""

    def read(self, prediction: Prediction, line: Mapping[str, Any]) -> Prediction:
        """The prediction after the line's steps were replayed and its answer was submitted.

        `TranscriptError` names a false step; `CalibrantError` says that the answer is not what the steps submit.
        """
        item = self.item(prediction)
        steps = self.benchmark.traced(item, line) if is_trace(line) else steps_of(line.get(STEPS_FIELD))
        found = played(self.benchmark, item, prediction.answer, steps)
        return prediction._replace(
            answer=found.answer,
            steps=found.steps,
            problem=found.problem,
            unread=found.unread if prediction.answer or not found.steps else "",
            gap=found.gap,
        )


class EpisodePredictions(ReplyPredictions):
    """The predictions of a file, played: `CalibrantError` names file, line and step of the first that is not true."""

    def _instance(self, line: Mapping[str, Any]) -> tuple[str, str]:
        if is_trace(line) and not self._fields.id:
            return ITEM_FIELD, str(line[ITEM_FIELD])
        return super()._instance(line)

    def _model(self, line: Mapping[str, Any]) -> str | None:
        if is_trace(line) and not self._fields.model:
            self.recognised.found["model"][AGENT_FIELD] += 1
            return str(line[AGENT_FIELD])
        return super()._model(line)

    def _answers(self, line: Mapping[str, Any]) -> AnswerField:
        if is_trace(line):
            return AnswerField(STEPS_FIELD, "trace", ("",))
        try:
            return answer_field(line, self._fields.text)
        except CalibrantError:
            if line.get(STEPS_FIELD) is None or self._fields.text:
                raise
            return AnswerField(STEPS_FIELD, "transcript", ("",))


def reply_reader(pools: Sequence[Path]) -> tuple[ReplyScorer, Callable[..., ReplyPredictions]]:
    """Return what scores predictions for pools of one benchmark, and what reads them.

    Of any benchmark but ReplaySCM.
    """
    if one_benchmark(pools).transcripts:
        episodes = EpisodeScorer(pools)
        return episodes, partial(EpisodePredictions, scorer=episodes)
    replies = ReplyScorer(pools)
    return replies, partial(ReplyPredictions, scorer=replies)


def is_trace(line: Mapping[str, Any]) -> bool:
    """Return whether a line is one in a benchmark's own trace format."""
    return isinstance(line.get(ITEM_FIELD), str) and isinstance(line.get(AGENT_FIELD), str) and STEPS_FIELD in line
