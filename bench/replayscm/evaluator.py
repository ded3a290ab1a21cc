"""Evaluator of answers to a ReplaySCM problem: the published scorer's verdict, as a line that is made when read."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from calibrant.bench.core.scoring import AnswerContext, Prediction, line_head, line_place
from calibrant.bench.core.verdict import LazyVerdict
from calibrant.bench.replayscm.meaning import meaning_digest
from calibrant.bench.replayscm.options import ScoreOptions
from calibrant.bench.replayscm.verdict import MEANING, bulk_key, funnel, structure
from calibrant.bench.scoring.input.answers import UNREAD_STAGES
from calibrant.dsl.replayscm.item import Problem
from calibrant.dsl.replayscm.score import Evaluator, Score

if TYPE_CHECKING:
    from calibrant.bench.replayscm.episodes import ExtendedLineEvaluator


class ReplayScmEvaluator:
    """Extracts the answer of a response and scores it.

    options: `structure` adds metrics that cost as much as all the rest, and are part of no lazy line
    """

    def __init__(self, problem: Problem, options: ScoreOptions) -> None:
        # reading mechanisms is a tenth of a verdict in a table: no reason for 120 MB of compiled code in each process
        self._evaluator = Evaluator(problem, extractor=options.extractor, compiles=False)
        self._with_structure = options.structure

    def evaluate(self, prediction: Prediction, context: AnswerContext) -> Mapping[str, Any]:
        """Return the line; lazy, with a key under which tables count it, unless it has structure metrics."""
        answer = prediction.answer
        evaluator = self._evaluator
        score = evaluator.score_text(answer) if isinstance(answer, str) else evaluator.score_answer(answer)
        meaning = meaning_digest(score)
        make = partial(self._line, prediction, context, score, meaning)
        key = None if self._with_structure else bulk_key(score)
        if key is None:
            return make()
        rejection = score.rejection
        unread = rejection.reason if rejection is not None and rejection.stage in UNREAD_STAGES else ""
        return LazyVerdict(make, key, meaning, unread)

    def _line(
        self, prediction: Prediction, context: AnswerContext, score: Score, meaning: str | None
    ) -> dict[str, Any]:
        line = {
            **line_head(prediction),
            **score.to_dict(),
            **line_place(context),
            MEANING: meaning,
            "seconds": prediction.seconds,
            **funnel(score),
        }
        return line | structure(score) if self._with_structure else line


def make_evaluator(item: Problem, options: ScoreOptions) -> ReplayScmEvaluator | ExtendedLineEvaluator:
    """Return the evaluator of answers to an item."""
    if item.task.extension is None:
        return ReplayScmEvaluator(item, options)
    from calibrant.bench.replayscm.episodes import ExtendedLineEvaluator

    return ExtendedLineEvaluator(item, options)
