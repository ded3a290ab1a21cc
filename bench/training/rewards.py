"""Rewards: pure functions of an item's record and of a model's completion. No clock, no visible state.

Items and their attribution are cached by record, because a trainer asks for the same ones again.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from calibrant.bench.core.attribution import POSTERIOR
from calibrant.bench.core.benchmark import Benchmark
from calibrant.bench.core.registry import benchmark
from calibrant.bench.training.conversation import ConversationResult, score_replies
from calibrant.bench.training.replies import replies
from calibrant.dsl.errors import CalibrantError, PoolError, short_repr
from calibrant.dsl.parse_limits import load_json

UNDECIDED = 0.5  # reward of an answer that fits, where others fit too
MAX_KEPT = 4096

Worth = Callable[["Lesson", ConversationResult], float | None]


class Lesson:
    """An item that answers are rewarded for.

    record: its native record, as JSON
    """

    def __init__(self, name: str, record: str) -> None:
        self.of: Benchmark[Any] = benchmark(name)
        try:
            value = load_json(record)
        except (ValueError, RecursionError):
            raise CalibrantError(f"record is {short_repr(record)}, not JSON") from None
        if not isinstance(value, dict):
            raise CalibrantError(f"record is {short_repr(value)}, not an object")
        try:
            self.item = self.of.items.item_of_record(value)
        except PoolError as error:
            where = f"record of {short_repr(value['id'])}" if "id" in value else "a record without an id"
            raise CalibrantError(f"{where}: {error}") from None
        self._decided: tuple[bool | None] | None = None

    def score_completion(self, completion: object) -> ConversationResult | None:
        """Score a completion; None if it is no completion."""
        texts = replies(completion)
        return None if texts is None else score_replies(self.of, self.item, texts)

    @property
    def decided(self) -> bool | None:
        """Return whether the item's evidence decides the question; None where that is not computed. Cached."""
        if self._decided is None:
            nothing = self.of.scoring.no_answer(self.item)
            attribution = self.of.attribution(self.item, nothing, (), self.of.scoring.score(self.item, nothing, ()))
            self._decided = (None if attribution is None else bool(attribution["decided"]),)
        return self._decided[0]


@lru_cache(maxsize=MAX_KEPT)
def lesson(name: str, record: str) -> Lesson:
    """Return the item of a record; `CalibrantError` for an invalid record."""
    return Lesson(name, record)


def verdict(task: Lesson, answer: ConversationResult) -> float | None:
    """Return 1 if the benchmark counts the answer as correct, else 0; None of an item with nothing held out."""
    is_defined = task.of.metrics.success.is_defined(answer.verdict.to_dict(), task.item.setting)
    return float(answer.verdict.correct) if is_defined else None


def shaped(task: Lesson, answer: ConversationResult) -> float:
    """Return how much of the answer is right (`Training.share` of its benchmark), 0 to 1."""
    return task.of.training.share(task.item, answer.verdict)


def attributed(task: Lesson, answer: ConversationResult) -> float | None:
    """Return 1 for an earned answer, 0 for one that the evidence excludes, UNDECIDED for one that fits among others.

    A lucky answer and a short one that fit get the same: the evidence cannot distinguish them. None where it is not
    computed what the evidence decides.
    """
    if not answer.answered:
        return 0.0
    if task.of.is_interactive(task.item):
        attribution = task.of.attribution(task.item, {}, answer.steps, answer.verdict.to_dict())
        if attribution is None:
            return None
        decided, fits, right = (
            attribution["decided"],
            # noisy readings exclude no answer of the class
            attribution["fits"] is True or (attribution["fits"] is None and POSTERIOR in attribution),
            attribution["kind"] in ("earned", "lucky"),
        )
    else:
        if task.decided is None:
            return None
        decided, training = task.decided, task.of.training
        fits, right = training.fits(answer.verdict), training.agrees(answer.verdict)
    if decided:
        return float(right)
    return UNDECIDED if fits else 0.0
