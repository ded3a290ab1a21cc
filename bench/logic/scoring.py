"""Answers of logic models: how they are read, scored and attributed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from calibrant.bench.core.attribution import attribution_record
from calibrant.bench.core.scoring import Scorable, last_answer
from calibrant.bench.logic.verdict import LogicVerdict, score_record
from calibrant.bench.scoring.evaluator_cache import EvaluatorCache
from calibrant.dsl.episode import Step
from calibrant.dsl.logic.grading import AnswerError, grade, parse_answer
from calibrant.dsl.logic.item import LogicItem

if TYPE_CHECKING:
    from calibrant.audits.logic.items import HeldoutDecision


class LogicScoring(Scorable[LogicItem]):
    """Implements Scorable (bench.core.scoring)."""

    @property
    def verdict_record(self) -> type[msgspec.Struct]:
        return LogicVerdict

    def no_answer(self, item: LogicItem) -> dict[str, Any]:
        """Return an object that is no answer: the empty model may be right."""
        return {}

    def score(self, item: LogicItem, answer: Mapping[str, Any], steps: Sequence[Step[Any]]) -> dict[str, Any]:
        return score_record(item, grade(item, dict(answer)), answer)

    def extract(self, item: LogicItem, response: str | Mapping[str, Any]) -> dict[str, Any]:
        """Return the last object that is not inside another; the verdict checks its form."""
        return last_answer(response)

    def read_answer(self, item: LogicItem, response: str | Mapping[str, Any]) -> tuple[dict[str, Any], str]:
        """Return the object, and why it is no model or table of the item."""
        answer = self.extract(item, response)
        try:
            parse_answer(answer, item.task)
        except AnswerError as error:
            return answer, str(error)
        return answer, ""

    def same_answer(self, item: LogicItem, first: Mapping[str, Any], second: Mapping[str, Any]) -> bool:
        """Return whether two answers are the same model or table, in any order of clauses."""
        try:
            return parse_answer(first, item.task) == parse_answer(second, item.task)
        except AnswerError:
            return dict(first) == dict(second)


class LogicAttribution:
    """Implements Attribute (bench.core.scoring): all models that fit give the same held-out answers, or not."""

    def __init__(self) -> None:
        self._decisions: EvaluatorCache[HeldoutDecision | None] = EvaluatorCache()

    def decide_heldout(self, item: LogicItem) -> HeldoutDecision | None:
        """Return what the data decide about the held-out answers, counted once an item; None where not counted."""
        from calibrant.audits.logic.items import heldout_decision

        return self._decisions.get_for(item, lambda: heldout_decision(item))

    def __call__(
        self, item: LogicItem, answer: Mapping[str, Any], steps: Sequence[Step[Any]], score: Mapping[str, Any]
    ) -> dict[str, Any] | None:
        decision = self.decide_heldout(item)
        if decision is None:
            return None
        if score["correct"] is None:
            return None  # neither right nor wrong
        return attribution_record(decision.attribution(fits=score["fits"], correct=score["correct"] is True))


SCORING = LogicScoring()
ATTRIBUTE = LogicAttribution()
