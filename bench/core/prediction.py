"""One answer of a model to an item, as it was read from a file or a log."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

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
