"""Attribution of answers: whether the answer was correct, and whether the system's own evidence had decided it.

An item is decided if all hypotheses that fit the evidence give the scored question the same answer. This separates
experimenting from inferring: an undecided item is an evidence gap, whether its answer is correct or not. Noisy readings
hardly ever leave one answer; with noise an item is decided once an answer has a posterior of DECIDED_AT.
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
    """Attribution of one answer. Members are the hypotheses of the class that fit the evidence.

    decided: all members give one answer, or under noise an answer has a posterior of at least DECIDED_AT; False
        without members
    correct: the benchmark's own verdict
    fits: whether some member gives this answer; None if unknown, as for an answer that cannot be parsed
    members: number of members
    in_words: the class, in words
    posterior: posterior probability of the most probable answer; None if readings are not noisy
    posterior_upper: certified upper bound on the probability of any answer; None if `posterior` is certified largest
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
    """Return the attribution of an answer, given the space of the hypotheses that fit the evidence.

    answer: of the type of the keys of `space.verdicts()`; None if the system gave none that can be parsed
    posterior: as in `Attribution`
    """
    verdicts = space.verdicts()
    fits = None if answer is None else answer in verdicts
    decided = is_decided(len(verdicts), posterior)
    return Attribution(decided, correct, fits, space.count, space.in_words, posterior)


def is_decided(num_answers: int, posterior: float | None) -> bool:
    """Return whether the question is decided.

    num_answers: number of different answers of the hypotheses that fit; posterior: as in `Attribution`
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
        """Share of items that the evidence decided, which inference without luck can reach; 0 without items."""
        return (self.earned + self.missed) / self.total if self.total else 0.0


def four_counts(kinds: Iterable[Kind]) -> FourCounts:
    """Count the kinds of many answers."""
    counts = Counter(kinds)
    return FourCounts(**{kind.value: counts[kind] for kind in Kind})
