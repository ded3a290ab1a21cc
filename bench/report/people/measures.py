"""Measures of a group of people, and of other systems on the same items."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum, sqrt

from calibrant.bench.report.intervals import Interval
from calibrant.bench.report.overview.results import Outcome, Results, SystemResult
from calibrant.bench.report.people.clusters import ClusteredMean, clustered_mean
from calibrant.bench.report.people.group import participant_of
from calibrant.bench.report.people.timings import PersonTiming, Subject
from calibrant.bench.statistics import NORMAL_95, wilson

Reading = Callable[[Outcome], float | None]


@dataclass(frozen=True)
class PersonAnswer:
    """An answer of a participant.

    position: of the item among those that they began, from 1; 0 where it is not known
    """

    outcome: Outcome
    participant: str
    position: int
    seconds_a_move: float | None


def person_answers(system: SystemResult, timings: Mapping[Subject, PersonTiming]) -> list[PersonAnswer]:
    """Return a group's answers with their times and positions."""
    by_person: dict[str, list[tuple[str, float | None, Outcome]]] = {}
    for outcome in system.outcomes:
        context = outcome.context
        subject = context.pool_digest, context.instance, context.system, context.options
        timing = timings.get(subject, PersonTiming("", None))
        by_person.setdefault(participant_of(context.system), []).append(
            (timing.started, timing.seconds_a_move, outcome)
        )
    answers = []
    for participant, listed in by_person.items():
        ordered = sorted(listed, key=lambda entry: entry[0])  # stable: of equal times in the order of items
        for position, (started, seconds, outcome) in enumerate(ordered, 1):
            answers.append(PersonAnswer(outcome, participant, position if started else 0, seconds))
    return answers


def group_mean(answers: Iterable[PersonAnswer], read: Callable[[PersonAnswer], float | None]) -> ClusteredMean | None:
    """Return the mean over participants of what is read off their answers; None where nothing is."""
    values = [
        (answer.participant, f"{answer.outcome.context.pool_digest} {answer.outcome.context.instance}", value)
        for answer in answers
        if (value := read(answer)) is not None
    ]
    return clustered_mean(values) if values else None


def read_right(answer: PersonAnswer) -> float:
    return float(answer.outcome.is_right)


def right_mean(system: SystemResult) -> ClusteredMean:
    """Return the mean share of right answers over the participants of a group."""
    mean = group_mean(person_answers(system, {}), read_right)
    assert mean is not None
    return mean


@dataclass(frozen=True)
class ItemMean:
    """A mean over the items of a system that is no group, each the mean of its answers. interval: 95 %, or None."""

    mean: float
    interval: Interval | None


def item_mean(outcomes: Sequence[Outcome], read: Reading, *, is_share: bool) -> ItemMean | None:
    """Return a mean over items; of shares with Wilson's interval, of others with a normal one; None without any."""
    by_item: dict[int, list[float]] = {}
    for outcome in outcomes:
        value = read(outcome)
        if value is not None:
            by_item.setdefault(outcome.item, []).append(value)
    if not by_item:
        return None
    means = [fsum(values) / len(values) for values in by_item.values()]
    mean = fsum(means) / len(means)
    if is_share:
        return ItemMean(mean, Interval(*wilson(fsum(means), len(means))))
    if len(set(means)) < 2:
        return ItemMean(mean, None)
    deviation = sqrt(fsum((value - mean) ** 2 for value in means) / (len(means) - 1))
    half_width = NORMAL_95 * deviation / sqrt(len(means))
    return ItemMean(mean, Interval(mean - half_width, mean + half_width))


def outcomes_on(system: SystemResult, items: frozenset[int]) -> list[Outcome]:
    """Return a system's answers to some items."""
    return [outcome for outcome in system.outcomes if outcome.item in items]


def groups_of(results: Results) -> list[SystemResult]:
    """Return the groups of people among the systems."""
    return [system for system in results.systems if system.is_group]
