"""Verdicts on replies to one question: reward, reason for a reward of 0, and the faults of an answer node by node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias

from calibrant.dsl.causim.item import Task
from calibrant.dsl.causim.model import ModelError
from calibrant.dsl.causim.question import Answer
from calibrant.dsl.causim.score import Reason, answer_of, extract, reasons
from calibrant.solvers.causim.answers import AnswerSet

Why: TypeAlias = Literal["no_object", "wrong_keys", "wrong_answer"]


@dataclass(frozen=True)
class Judgement:
    """Verdict on a reply.

    reward: 1 or 0; why: None iff the reward is 1
    answer: as extracted, None if there was none
    nodes: a reason for every node, for answers over V where the allowed noise is a product; else None
    """

    reward: int
    why: Why | None
    answer: Answer | None
    nodes: dict[str, Reason] | None = None


@dataclass(frozen=True)
class Flags:
    """Properties that make a question easy, independent of its labels; None where one does not apply.

    trivial: `do` covers every required key; copyable: the evidence, overwritten by `do`, is right
    vacuous: nothing outside `do` changes in any fitting world
    """

    trivial: bool | None
    copyable: bool | None
    vacuous: bool | None


class Judge:
    """Judge of replies to one task; no side effects, no time limits."""

    def __init__(self, task: Task) -> None:
        self.task = task

    @cached_property
    def members(self) -> AnswerSet:
        return AnswerSet(self.task.model, self.task.question)

    @cached_property
    def flags(self) -> Flags:
        question, effect = self.task.question, self.members.effect
        trivial = question.is_trivial(self.task.model) if question.do else None
        return Flags(trivial, self.members.copy, None if effect is None else not effect[1])

    def judge_reply(self, text: str) -> Judgement:
        """Judge a reply of a system under test."""
        extraction = extract(text, self.members.keys)
        if extraction.answer is None:
            return Judgement(0, extraction.failure, None)
        return self.judge_answer(extraction.answer)

    def judge_object(self, record: Mapping[str, Any]) -> Judgement:
        """Judge a JSON object."""
        answer = answer_of(record, self.members.keys)
        return Judgement(0, "wrong_keys", None) if answer is None else self.judge_answer(answer)

    def judge_answer(self, answer: Answer) -> Judgement:
        """Judge an answer with exactly the required keys."""
        right = self.members.contains(answer)
        return Judgement(int(right), None if right else "wrong_answer", answer, self._nodes(answer))

    def _nodes(self, answer: Answer) -> dict[str, Reason] | None:
        model, question = self.task.model, self.task.question
        if not set(model.position) <= set(answer):
            return None
        try:
            return reasons(model, question, answer)
        except ModelError:  # the noise that partial evidence allows is no product
            return None
