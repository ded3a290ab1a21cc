"""Measures of a group of people, and of other systems on the same items."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from calibrant.bench.answers.frame import Estimate, estimate
from calibrant.bench.answers.intervals import ClusteredMean, Interval, clustered_mean
from calibrant.bench.core.metrics import MetricSet
from calibrant.bench.core.scoring import participant_of
from calibrant.bench.report.overview.results import Outcome, Results, SystemResult
from calibrant.bench.report.people.timings import PersonTiming, Subject

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


def right_interval(system: SystemResult, metrics: MetricSet) -> Interval | None:
    """Return the 95 % interval of a system's share of right answers."""
    if system.is_group:
        mean = group_mean(person_answers(system, {}), read_right)
        return None if mean is None else mean.interval
    rate = item_mean(system.outcomes, lambda o: float(o.right), metrics, is_share=True)
    return None if rate is None else rate.interval


def item_mean(outcomes: Sequence[Outcome], read: Reading, metrics: MetricSet, *, is_share: bool) -> Estimate | None:
    """Return a mean over items of a system that is no group; None without any."""
    return estimate(((o.item, metrics.unit(o.context.instance), read(o)) for o in outcomes), is_share=is_share)


def outcomes_on(system: SystemResult, items: frozenset[int]) -> list[Outcome]:
    """Return a system's answers to some items."""
    return [outcome for outcome in system.outcomes if outcome.item in items]


def groups_of(results: Results) -> list[SystemResult]:
    """Return the groups of people among the systems."""
    return [system for system in results.systems if system.is_group]
