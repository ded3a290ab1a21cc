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
    """A share of episodes: `hits` of `total`."""

    hits: int
    total: int

    @property
    def rate(self) -> float:
        """Return `hits / total`; `ZeroDivisionError` without episodes."""
        return self.hits / self.total

    @property
    def interval(self) -> tuple[float, float]:
        """95 % score (Wilson) interval of the rate."""
        return wilson(self.hits, self.total)


@dataclass(frozen=True, slots=True)
class Counts:
    """Numbers of episodes of one agent under one condition; None if unknown.

    The rule switches after N activations. An episode ends before the switch, at exactly N, or after it.

    episodes: number of all, also those without an answer; correct: number answered right
    eligible: number with more than N activations ("reasoning-eligible"); eligible_correct: right ones among these
    exactly_n: number with exactly N activations
    pre_correct: right ones before the switch; None if not reported, then all of these, as the paper states
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
        """Share of all episodes in which the rule switched, those with at least N activations."""
        if self.eligible is None or self.exactly_n is None:
            return None
        return Share(self.eligible + self.exactly_n, self.episodes)

    @property
    def pre_switch(self) -> tuple[int, int] | None:
        """Numbers of correct and wrong episodes before the switch, by subtraction; None if unknown."""
        if self.eligible is None or self.eligible_correct is None or self.exactly_n is None:
            return None
        episodes = self.episodes - self.eligible - self.exactly_n
        correct = self.correct - self.eligible_correct if self.pre_correct is None else self.pre_correct
        return correct, episodes - correct

    @property
    def switched_accuracy(self) -> Share | None:
        """Accuracy over all episodes in which the rule switched."""
        if self.eligible is None or self.exactly_n is None:
            return None
        switched = self.eligible + self.exactly_n
        pre_correct = self.episodes - switched if self.pre_correct is None else self.pre_correct
        return Share(self.correct - pre_correct, switched)


def count_classes(grades: Iterable[Graded]) -> Counts:
    """Count episodes by class; an episode without an answer is not correct. Without a switch classes are None."""
    episodes = list(grades)
    correct = sum(grade.correct is True for grade in episodes)
    if not episodes or any(grade.exposed is None for grade in episodes):
        return Counts(len(episodes), correct)
    eligible = [grade for grade in episodes if grade.exposed is Exposed.RE]
    return Counts(
        episodes=len(episodes),
        correct=correct,
        eligible=len(eligible),
        eligible_correct=sum(grade.correct is True for grade in eligible),
        exactly_n=sum(grade.exposed is Exposed.EXACTLY_N for grade in episodes),
        pre_correct=sum(grade.correct is True for grade in episodes if grade.exposed is Exposed.PRE),
    )


@dataclass(frozen=True, slots=True)
class Detections:
    """Detection of the change of rule by the firing of a behaviour (the paper's appendix B.2).

    switched: episodes in which the rule switched; firings: episodes in which the behaviour fired
    true_positives: firings in eligible episodes with a correct answer; false_positives: all other firings
    false_negatives: eligible and correct episodes in which it did not fire
    """

    switched: int
    firings: int
    true_positives: int
    false_positives: int
    false_negatives: int

    @property
    def sensitivity(self) -> Share:
        return Share(self.true_positives, self.true_positives + self.false_negatives)

    @property
    def precision(self) -> Share:
        return Share(self.true_positives, self.firings)


def count_detections(episodes: Iterable[tuple[Graded, bool]]) -> Detections:
    """Count detections; episodes: (grade, whether the behaviour fired). An episode without an answer is not correct."""
    pairs = list(episodes)
    fired_when_right = [fired for grade, fired in pairs if grade.exposed is Exposed.RE and grade.correct]
    firings = sum(fired for _, fired in pairs)
    return Detections(
        switched=sum(grade.exposed in (Exposed.EXACTLY_N, Exposed.RE) for grade, _ in pairs),
        firings=firings,
        true_positives=sum(fired_when_right),
        false_positives=firings - sum(fired_when_right),
        false_negatives=len(fired_when_right) - sum(fired_when_right),
    )


@dataclass(frozen=True, slots=True)
class Errors:
    """Numbers of episodes without a right answer, by class; detail: faults of the eligible ones, as text."""

    errors: int
    exactly_n: int
    eligible: int
    detail: str


def count_errors(grades: Iterable[Graded]) -> Errors:
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
