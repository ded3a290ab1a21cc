"""Answers of CauSim: reading, scoring and attribution."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from calibrant.bench.causim.api import FUNCTIONS
from calibrant.bench.causim.verdict import CausimVerdict, is_answered, is_right, score_record
from calibrant.bench.core.attribution import attribution_record
from calibrant.bench.core.responses import ReadAnswer
from calibrant.bench.core.scoring import Scorable, last_answer
from calibrant.dsl.causim.item import CausimItem
from calibrant.dsl.causim.score import answer_of, answer_shape, misplaced_answer_message, odd_value_message
from calibrant.dsl.episode import ActionError, Step
from calibrant.dsl.lenient_json import Shape


class CausimScoring(Scorable[CausimItem]):
    """Implements Scorable (bench.core.scoring)."""

    @property
    def verdict_record(self) -> type[msgspec.Struct]:
        return CausimVerdict

    def no_answer(self, item: CausimItem) -> dict[str, Any]:
        """Return an object with a key of no question; an empty object would be right if no key is required."""
        return {"no answer": None}

    def score(self, item: CausimItem, answer: Mapping[str, Any], steps: Sequence[Step[Any]]) -> dict[str, Any]:
        """Return the score of an answer; its flags are computed, not copied from the item's labels."""
        judge = FUNCTIONS.judge(item)
        record = score_record(judge, judge.judge_object(answer), item.vocabulary)
        return record | {"why": "no_object"} if dict(answer) == self.no_answer(item) else record

    def extract(self, item: CausimItem, response: str | Mapping[str, Any]) -> dict[str, Any]:
        """Return the last JSON object that is not inside another; its keys are not checked."""
        return last_answer(response)

    def read_answer(self, item: CausimItem, response: str | Mapping[str, Any]) -> tuple[dict[str, Any], str]:
        """Return the last object, and a message if it is no answer: nested one too deep, or with an invalid value."""
        extracted = self.extract(item, response)
        return extracted, _read_object(item, extracted, response).gap

    def read(self, item: CausimItem, response: str | Mapping[str, Any]) -> ReadAnswer:
        """Return the last object as an answer if it has exactly the required keys, else the reason."""
        try:
            return _read_object(item, self.extract(item, response), response)
        except ActionError as error:
            return ReadAnswer(None, str(error))

    def shape(self, item: CausimItem) -> Shape:
        return answer_shape(_required_keys(item))

    def same_answer(self, item: CausimItem, first: Mapping[str, Any], second: Mapping[str, Any]) -> bool:
        """Return whether two answers are equal; letter case of keys is ignored if unambiguous, `true` is not 1."""
        keys = _required_keys(item)
        answers = answer_of(first, keys), answer_of(second, keys)
        return answers[0] == answers[1] if None not in answers else dict(first) == dict(second)


def _read_object(item: CausimItem, extracted: dict[str, Any], response: str | Mapping[str, Any]) -> ReadAnswer:
    keys = _required_keys(item)
    answer = answer_of(extracted, keys)
    if answer is not None:
        return ReadAnswer(extracted, gap=odd_value_message(answer))
    gap = misplaced_answer_message(response, keys)
    return ReadAnswer(extracted, gap or "another shape", gap)


def _required_keys(item: CausimItem) -> Sequence[str]:
    return item.task.question.required_keys(item.task.model)


SCORING = CausimScoring()


def attribute(
    item: CausimItem, answer: Mapping[str, Any], steps: Sequence[Step[Any]], score: Mapping[str, Any]
) -> dict[str, Any] | None:
    """Return the attribution of an answer to a question labelled as having one answer; None for other questions."""
    from calibrant.audits.causim.items import attribute_item_answer

    fits = is_right(score) if is_answered(score) else None
    result = attribute_item_answer(item, fits=fits)
    return None if result is None else attribution_record(result)
