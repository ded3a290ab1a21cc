"""Answers with what a report calls their systems, for tables that the paper prints answer by answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from calibrant.bench.answers.names import SystemKey, natural, system_names
from calibrant.bench.core.scoring import AnswerContext
from calibrant.bench.report.rows import Answer
from calibrant.dsl.errors import in_one_line


class NamedAnswer(NamedTuple):
    """One scored answer.

    system: its name in the report, with the options in which its runs differ
    """

    system: str
    context: AnswerContext
    score: Mapping[str, Any]

    @property
    def answer(self) -> Answer:
        return self.context, self.score


def named_answers(answers: Iterable[Answer]) -> list[NamedAnswer]:
    """Return the answers with names of their systems; by system, pool and item, however they came in."""
    answers = list(answers)
    names = system_names({SystemKey.of(context): context.config for context, _ in answers})
    keys = cache(natural)
    with_names = [NamedAnswer(names[SystemKey.of(context)], context, score) for context, score in answers]
    return sorted(
        with_names,
        key=lambda answer: (keys(answer.system), answer.context.pool_digest, keys(answer.context.instance)),
    )


def coverage_notes(answers: Sequence[NamedAnswer]) -> tuple[str, ...]:
    """Return which items of pools systems did not answer, and which answers are crashes."""
    contexts_by_system: dict[tuple[str, str], list[AnswerContext]] = {}
    for answer in answers:
        contexts_by_system.setdefault((answer.system, answer.context.pool_digest), []).append(answer.context)
    notes = []
    for (system, _), contexts in contexts_by_system.items():
        num_answered = len({context.instance for context in contexts})
        num_crashed = sum(context.outcome == "crashed" for context in contexts)
        pool, size = in_one_line(contexts[0].pool), contexts[0].pool_size
        if num_answered < size:
            notes.append(f"{system}: {num_answered} of {size} items of {pool}; rates are over those.")
        if num_crashed:
            notes.append(
                f"{num_crashed} of {len(contexts)} answers of {system} to {pool} are crashes; rates count them."
            )
    return tuple(notes)
