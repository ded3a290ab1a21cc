"""Counts of blicket episodes for tables, and rates derived from them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from calibrant.bench.answers.rates import wilson
from calibrant.dsl.blickets.score import Exposed, Fault


class Graded(Protocol):
    """Countable fields of a grade (dsl.blickets.score.Grade), computed or read from a record."""

    @property
    def correct(self) -> bool | None: ...
    @property
    def faults(self) -> tuple[Fault, ...]: ...
    @property
    def exposed(self) -> Exposed | None: ...
    @property
    def steps(self) -> int: ...


class Share(NamedTuple):
    """Some of a number of episodes."""

    hits: int
    number: int

    @property
    def rate(self) -> float:
        """`ZeroDivisionError` where there is no episode."""
        return self.hits / self.number

    @property
    def interval(self) -> tuple[float, float]:
        """95 % score interval."""
        return wilson(self.hits, self.number)


@dataclass(frozen=True, slots=True)
class Counts:
    """Episodes of one agent under one condition; a count that is not known is None.

    episodes: all, also those without an answer; correct: of these
    eligible: more than N activations ("reasoning-eligible"); eligible_correct: of these
    exactly_n: ended with exactly N activations
    pre_correct: correct before the switch; None: all of them, as the paper reports without a count
    The three classes exclude each other; the rest ended before the switch.
    """

    episodes: int
    correct: int
    eligible: int | None = None
    eligible_correct: int | None = None
    exactly_n: int | None = None
    pre_correct: int | None = None

    @property
    def accuracy(self) -> Share:
        return Share(self.correct, self.episodes)

    @property
    def eligible_rate(self) -> Share | None:
        return None if self.eligible is None else Share(self.eligible, self.episodes)

    @property
    def eligible_accuracy(self) -> Share | None:
        if self.eligible is None or self.eligible_correct is None:
            return None
        return Share(self.eligible_correct, self.eligible)

    @property
    def exactly_n_rate(self) -> Share | None:
        return None if self.exactly_n is None else Share(self.exactly_n, self.episodes)

    @property
    def switch_rate(self) -> Share | None:
        """Episodes with N activations or more, in which the rule switched."""
        if self.eligible is None or self.exactly_n is None:
            return None
        return Share(self.eligible + self.exactly_n, self.episodes)

    @property
    def pre_switch(self) -> tuple[int, int] | None:
        """Correct and wrong before the switch: what the other classes leave of all correct and wrong episodes."""
        if self.eligible is None or self.eligible_correct is None or self.exactly_n is None:
            return None
        episodes = self.episodes - self.eligible - self.exactly_n
        correct = self.correct - self.eligible_correct if self.pre_correct is None else self.pre_correct
        return correct, episodes - correct

    @property
    def switched_accuracy(self) -> Share | None:
        """Over all episodes that the switch came in, whatever the agent did then."""
        if self.eligible is None or self.exactly_n is None:
            return None
        switched = self.eligible + self.exactly_n
        pre_correct = self.episodes - switched if self.pre_correct is None else self.pre_correct
        return Share(self.correct - pre_correct, switched)


def count_classes(grades: Iterable[Graded]) -> Counts:
    """Count episodes by class; one that ended without an answer is not correct. Without a switch, no classes."""
    episodes = list(grades)
    correct = sum(grade.correct is True for grade in episodes)
    if not episodes or any(grade.exposed is None for grade in episodes):
        return Counts(len(episodes), correct)
    eligible = [grade for grade in episodes if grade.exposed is Exposed.RE]
    return Counts(
        len(episodes),
        correct,
        len(eligible),
        sum(grade.correct is True for grade in eligible),
        sum(grade.exposed is Exposed.EXACTLY_N for grade in episodes),
        sum(grade.correct is True for grade in episodes if grade.exposed is Exposed.PRE),
    )


@dataclass(frozen=True, slots=True)
class Detections:
    """Detection of the change of rule by the firing of a behaviour (the paper's appendix B.2).

    switched: episodes that the switch came in; firings: episodes that it fired in
    true: it fired in an eligible episode whose answer is correct; false: any other firing
    missed: eligible and correct, and it did not fire
    """

    switched: int
    firings: int
    true: int
    false: int
    missed: int

    @property
    def sensitivity(self) -> Share:
        return Share(self.true, self.true + self.missed)

    @property
    def precision(self) -> Share:
        return Share(self.true, self.firings)


def count_detections(episodes: Iterable[tuple[Graded, bool]]) -> Detections:
    """Count detections from episodes and whether the behaviour fired; one without an answer is not correct."""
    pairs = list(episodes)
    right = [fired for grade, fired in pairs if grade.exposed is Exposed.RE and grade.correct]
    firings = sum(fired for _, fired in pairs)
    return Detections(
        sum(grade.exposed in (Exposed.EXACTLY_N, Exposed.RE) for grade, _ in pairs),
        firings,
        sum(right),
        firings - sum(right),
        len(right) - sum(right),
    )


@dataclass(frozen=True, slots=True)
class Errors:
    """Episodes without a right answer by class, and what was wrong with the eligible ones."""

    errors: int
    exactly_n: int
    eligible: int
    detail: str


def errors_of(grades: Iterable[Graded]) -> Errors:
    wrong = [grade for grade in grades if grade.correct is not True]
    eligible = [grade for grade in wrong if grade.exposed is Exposed.RE]
    exactly_n = sum(grade.exposed is Exposed.EXACTLY_N for grade in wrong)
    kinds = [" and ".join(_NAMES[fault] for fault in grade.faults) or NO_ANSWER for grade in eligible]
    detail = ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(sorted(kinds)))
    return Errors(len(wrong), exactly_n, len(eligible), detail)


NO_ANSWER = "no answer"
_NAMES = {
    Fault.TYPE: "type",
    Fault.OVER: "over-inclusion",
    Fault.UNDER: "under-inclusion",
    Fault.MIXED: "mixed",
    Fault.TIMEOUT: "timeout",
}
