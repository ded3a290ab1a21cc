"""Attribution of answers: the benchmark's verdict beside what the evidence at hand decided.

`decided`: all hypotheses that fit the system's own evidence give the scored question the same answer. This separates
experimenting from inferring: an undecided item is an evidence gap, whether its answer is correct or not. Noisy readings
hardly ever leave one answer; there a question is decided once an answer has a posterior of DECIDED_AT.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeVar

from calibrant.solvers.space import Space

M = TypeVar("M")

DECIDED_AT = 0.99  # posterior from which noisy readings decide; exact learners of the blickets stop there too


class Kind(StrEnum):
    """The four combinations of decided and correct."""

    EARNED = "earned"  # decided and correct
    MISSED = "missed"  # decided and wrong: an inference error
    LUCKY = "lucky"  # undecided and correct
    SHORT = "short"  # undecided and wrong: an evidence gap


@dataclass(frozen=True, slots=True)
class Attribution:
    """Attribution of one answer. A hypothesis that fits the evidence is a member of the class's version space.

    decided: the evidence left one answer, or under noise one with a posterior of at least DECIDED_AT; False also where
        it left no member at all
    correct: the benchmark's own verdict
    fits: whether some member gives this answer; None if that is not known, as for an answer that cannot be parsed
    members: number of members that the evidence left
    in_words: the class, in words
    posterior: posterior probability of the most probable answer, where readings are noisy; else None
    posterior_upper: certified upper bound on the probability of any answer, where a more probable one than that of
        `posterior` is not excluded; else None
    """

    decided: bool
    correct: bool
    fits: bool | None
    members: int
    in_words: str
    posterior: float | None = None
    posterior_upper: float | None = None

    @property
    def kind(self) -> Kind:
        if self.decided:
            return Kind.EARNED if self.correct else Kind.MISSED
        return Kind.LUCKY if self.correct else Kind.SHORT


def attribute_answer(
    space: Space[Any, Any, Any, M], answer: M | None, *, correct: bool, posterior: float | None = None
) -> Attribution:
    """Return the attribution of an answer, from the space of the hypotheses that fit the evidence.

    answer: one of the type of the space's verdicts; None if the system gave none that can be parsed as such
    posterior: as in `Attribution`
    """
    verdicts = space.verdicts()
    fits = None if answer is None else answer in verdicts
    decided = is_decided(len(verdicts), posterior)
    return Attribution(decided, correct, fits, space.count, space.in_words, posterior)


def is_decided(num_answers: int, posterior: float | None) -> bool:
    """Return whether evidence that left so many answers decided the question.

    posterior: as in `Attribution`
    """
    return num_answers == 1 or (posterior is not None and posterior >= DECIDED_AT)


@dataclass(frozen=True, slots=True)
class FourCounts:
    """Numbers of answers by kind."""

    earned: int
    missed: int
    lucky: int
    short: int

    @property
    def total(self) -> int:
        return self.earned + self.missed + self.lucky + self.short

    @property
    def ceiling(self) -> float:
        """The share of items that the evidence decided: what inference without luck can reach. 0 of 0 is 0."""
        return (self.earned + self.missed) / self.total if self.total else 0.0


def four_counts(kinds: Iterable[Kind]) -> FourCounts:
    """Count the kinds of many answers."""
    counts = Counter(kinds)
    return FourCounts(**{kind.value: counts[kind] for kind in Kind})
