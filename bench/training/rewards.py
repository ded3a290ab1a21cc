"""Rewards: pure functions of an item's record and of what a model said. No clock, no state that shows.

Items, and what their evidence decides, are kept by their records, because a trainer asks for the same ones again.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from calibrant.bench.core.benchmark import Benchmark
from calibrant.bench.core.registry import benchmark
from calibrant.bench.training.conversation import Said, said
from calibrant.bench.training.replies import replies
from calibrant.dsl.errors import CalibrantError, PoolError, short_repr
from calibrant.dsl.parse_limits import load_json

UNDECIDED = 0.5  # what an answer is worth that fits evidence which leaves others
MAX_KEPT = 4096

Worth = Callable[["Lesson", Said], float | None]


class Lesson:
    """An item that answers are rewarded for. record: its native record, as JSON"""

    def __init__(self, name: str, record: str) -> None:
        self.of: Benchmark[Any] = benchmark(name)
        try:
            found = load_json(record)
        except (ValueError, RecursionError):
            raise CalibrantError(f"record is {short_repr(record)}, not JSON") from None
        if not isinstance(found, dict):
            raise CalibrantError(f"record is {short_repr(found)}, not an object")
        try:
            self.item = self.of.item_of_record(found)
        except PoolError as error:
            raise CalibrantError(f"record of {short_repr(found.get('id'))}: {error}") from None
        self._decided: tuple[bool | None] | None = None

    def said(self, completion: object) -> Said | None:
        """The verdict on a completion; None for what is none."""
        texts = replies(completion)
        return None if texts is None else said(self.of, self.item, texts)

    @property
    def decided(self) -> bool | None:
        """Return whether what the item shows decides what is asked; None where that is not known. Worked out once."""
        if self._decided is None:
            nothing = self.of.no_answer(self.item)
            found = self.of.attribution(self.item, nothing, (), self.of.score(self.item, nothing, ()))
            self._decided = (None if found is None else bool(found["decided"]),)
        return self._decided[0]


@lru_cache(maxsize=MAX_KEPT)
def lesson(name: str, record: str) -> Lesson:
    """The item of a record; `CalibrantError` says why there is none."""
    return Lesson(name, record)


def verdict(asked: Lesson, answer: Said) -> float:
    """1 if the benchmark counts the answer as correct, else 0."""
    return float(answer.verdict.correct)


def shaped(asked: Lesson, answer: Said) -> float:
    """Return how much of the answer is right (`Training.share` of its benchmark), 0 to 1."""
    return asked.of.training.share(asked.item, answer.verdict)


def attributed(asked: Lesson, answer: Said) -> float | None:
    """1 for an answer that was earned, 0 for one that the evidence at hand excludes, UNDECIDED for what it leaves open.

    A lucky answer and a short one that fit are paid alike: nothing that the model could know tells them apart. None
    where it is not known what the evidence decides.
    """
    if not answer.answered:
        return 0.0
    if asked.of.transcripts:
        found = asked.of.attribution(asked.item, {}, answer.steps, answer.verdict.to_dict())
        if found is None:
            return None
        decided, fits, right = found["decided"], found["fits"] is True, found["kind"] in ("earned", "lucky")
    else:
        if asked.decided is None:
            return None
        decided, training = asked.decided, asked.of.training
        fits, right = training.fits(answer.verdict), training.agrees(answer.verdict)
    if decided:
        return float(right)
    return UNDECIDED if fits else 0.0
