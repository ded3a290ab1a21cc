"""Why a question about a program has several right answers: which noise is not given, and what its values give."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, islice
from typing import TypeAlias

import msgspec

from calibrant.audits.why import (
    Count,
    Experiment,
    Fact,
    Outcome,
    Span,
    State,
    Why,
    experiment,
    listed,
    number_text,
    spans,
)
from calibrant.dsl.causim.item import CausimItem
from calibrant.solvers.budget import Budget, BudgetSpent
from calibrant.solvers.causim.answers import AnswerSet
from calibrant.solvers.outcome import Found

MAX_WORLDS = 2_000  # worlds that are listed and grouped by their answers
MAX_REVEALED = 3  # values that are revealed together
STATES = 200_000

World: TypeAlias = Mapping[str, str]


class AnswerGroup(msgspec.Struct, frozen=True):
    """Worlds with one answer: values that the unknown noise has in them, and values of the nodes that differ."""

    answer: dict[str, str]
    worlds: str
    noise: dict[str, tuple[str, ...]]


class QuestionWhy(Why, frozen=True, kw_only=True):
    """The reason for a question: answers grouped, noise that is not given, values that decide if revealed.

    groups: every answer, where the worlds that fit are listed; unknown: noise that is not given and differs
    reveal: the fewest unknown noise variables whose values, whatever they are, leave one answer; () where not decided
    """

    num_worlds: str
    unknown: tuple[str, ...]
    groups: tuple[AnswerGroup, ...]
    experiments: tuple[Experiment, ...]
    reveal: tuple[str, ...]


def explain(item: CausimItem) -> QuestionWhy:
    """Return the reason for a question; nothing that is sealed is read. `BudgetSpent` where worlds are not counted."""
    model, question = item.task.model, item.task.question
    members = AnswerSet(model, question)
    size = members.size(Budget(STATES))
    number = size.value if isinstance(size, Found) else None
    worlds = list(_worlds(members)) if members.fitting <= MAX_WORLDS else []
    groups = _groups(members, worlds)
    state: State = "uncounted" if number is None else "empty" if not number else "decided" if number == 1 else "open"
    keys = members.keys
    open_keys = tuple(k for k in keys if len({group.answer[k] for group in groups}) > 1)
    unknown = tuple(u for u in question.unknown if len({world[u] for world in worlds}) > 1)
    experiments = tuple(sorted((_revealed(members, worlds, u) for u in unknown), key=lambda entry: entry.rank))
    reveal = _fewest(members, worlds, unknown) if state == "open" and worlds else ()
    counted = Count(lower=str(number or 0), upper=str(members.fitting if number is None else number))
    return QuestionWhy(
        benchmark="causim",
        item=item.id,
        title="Why is one answer right?"
        if state == "decided"
        else f"Why are {number_text(number or 0)} answers right?",
        state=state,
        reason=_reason(state, number, members, unknown, open_keys, reveal),
        facts=_facts(state, number, members, open_keys, keys, reveal),
        open=open_keys,
        decided=tuple(k for k in keys if worlds and k not in open_keys),
        count=counted,
        class_in_words="worlds that agree with the given noise and with what was observed",
        num_worlds=str(members.fitting),
        unknown=unknown,
        groups=tuple(groups),
        experiments=experiments,
        reveal=reveal,
    )


def _worlds(members: AnswerSet) -> Iterator[World]:
    try:
        for positions in islice(members.fitting_worlds(Budget(STATES)), MAX_WORLDS):
            yield {node.noise: node.support[k] for node, k in zip(members.model.nodes, positions, strict=True)}
    except BudgetSpent:
        return


def _key(members: AnswerSet, world: World) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(members.answer_of(world).items()))


def _groups(members: AnswerSet, worlds: Sequence[World]) -> list[AnswerGroup]:
    by_answer: dict[tuple[tuple[str, str], ...], list[World]] = {}
    for world in worlds:
        by_answer.setdefault(_key(members, world), []).append(world)
    unknown = members.question.unknown
    return [
        AnswerGroup(dict(key), str(len(group)), {u: tuple(sorted({world[u] for world in group})) for u in unknown})
        for key, group in sorted(by_answer.items())
    ]


def _revealed(members: AnswerSet, worlds: Sequence[World], name: str) -> Experiment:
    """Count what each value of a noise variable leaves, if it is revealed."""
    by_value: dict[str, list[World]] = {}
    for world in worlds:
        by_value.setdefault(world[name], []).append(world)
    outcomes = [
        Outcome(value, str(len(group)), len({_key(members, world) for world in group}))
        for value, group in by_value.items()
    ]
    return experiment(f"reveal {name}", outcomes)


def _fewest(members: AnswerSet, worlds: Sequence[World], unknown: Sequence[str]) -> tuple[str, ...]:
    """Return the fewest noise variables whose values always leave one answer.

    () if more than MAX_REVEALED are needed.
    """
    answers = [_key(members, world) for world in worlds]
    for number in range(1, MAX_REVEALED + 1):
        for chosen in combinations(unknown, number):
            met: dict[tuple[str, ...], tuple[tuple[str, str], ...]] = {}
            values = (tuple(world[u] for u in chosen) for world in worlds)
            if all(met.setdefault(value, answer) == answer for value, answer in zip(values, answers, strict=True)):
                return chosen
    return ()


def _reason(
    state: State,
    number: int | None,
    members: AnswerSet,
    unknown: Sequence[str],
    open_keys: Sequence[str],
    reveal: Sequence[str],
) -> tuple[Span, ...]:
    if state == "empty":
        return spans("No world agrees with what was observed, so nothing is right.")
    if state == "decided":
        return spans("All worlds that fit give the same answer.")
    if state == "uncounted" or number is None:
        return spans(f"{number_text(members.fitting)} worlds fit; their answers were not all listed.")
    if reveal:
        names = listed(list(reveal))
        verb = "is not given, and its value decides" if len(reveal) == 1 else "are not given, and their values decide"
        return spans((names,), f" {verb} {listed(list(open_keys))}.")
    if unknown:
        return spans(
            (listed(list(unknown)),), f" are not given; {number_text(number)} answers follow from their values."
        )
    return spans(f"{number_text(members.fitting)} worlds fit, and {number_text(number)} answers follow from them.")


def _facts(
    state: State,
    number: int | None,
    members: AnswerSet,
    open_keys: Sequence[str],
    keys: Sequence[str],
    reveal: Sequence[str],
) -> tuple[Fact, ...]:
    text = "answers not counted" if number is None else f"{number_text(number)} answer{'s' * (number != 1)} right"
    facts = [Fact(text, "good" if state == "decided" else "warn")]
    facts.append(Fact(f"{number_text(members.fitting)} world{' fits' if members.fitting == 1 else 's fit'}"))
    if open_keys:
        facts.append(Fact(f"open: {listed(list(open_keys))}"))
        rest = [k for k in keys if k not in open_keys]
        if rest:
            facts.append(Fact(f"decided: {listed(rest)}"))
    if reveal:
        amount = "one value" if len(reveal) == 1 else f"{len(reveal)} values"
        facts.append(Fact(f"revealing {amount} leaves one answer, whatever the value"))
    return tuple(facts)
