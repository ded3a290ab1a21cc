"""Responses to interactive items: their steps replayed, then their answer submitted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from calibrant.bench.core.benchmark import Benchmark
from calibrant.bench.runs.records import StepRecord
from calibrant.dsl.episode import ActionError, Step, verify_transcript
from calibrant.dsl.errors import CalibrantError, short_repr

NO_ANSWER = "no answer"


class ReplayedAnswer(NamedTuple):
    """An answer with the episode in which it was submitted.

    answer: the answer that was submitted, or would have been; empty if there is none
    steps: all of the episode; problem: why nothing was submitted, empty if something was
    unread: why the response has no answer, where nothing was submitted for that reason
    gap: the part that the submission lacks, and why; empty if the answer is complete
    """

    answer: dict[str, Any]
    steps: tuple[Step[Any], ...]
    problem: str
    unread: str = ""
    gap: str = ""


def replay_answer(
    benchmark: Benchmark[Any], item: Any, response: str | Mapping[str, Any], steps: Sequence[Step[Any]]
) -> ReplayedAnswer:
    """Replay a transcript, then submit the answer of a response unless the steps did so.

    `TranscriptError` names a false step; `CalibrantError` if the answer differs from the one that the steps submit.
    """
    episode = verify_transcript(benchmark.play.open(item), steps)
    answer, unread, gap = extract_answer(benchmark, item, response) if response else ({}, NO_ANSWER, "")
    problem = unread
    submitted = benchmark.play.submitted(episode.steps)
    if submitted is not None:
        if answer and not benchmark.scoring.same_answer(item, answer, submitted):
            raise CalibrantError(
                f"the answer {short_repr(answer)} is not what the steps submit: {short_repr(submitted)}"
            )
        answer, problem, unread = submitted, "", ""
    elif answer:
        actions = benchmark.play.submission(answer, tuple(episode.steps))
        problem = next((step.refused for step in map(episode.act, actions) if step.refused), "")
    omission = "" if problem else benchmark.play.omission(episode.steps)
    return ReplayedAnswer(answer, tuple(episode.steps), problem, unread, ": ".join(filter(None, (omission, gap))))


def extract_answer(
    benchmark: Benchmark[Any], item: Any, response: str | Mapping[str, Any]
) -> tuple[dict[str, Any], str, str]:
    """Return the answer of a response, empty without one; why it has none; the part that could not be read."""
    try:
        answer, gap = benchmark.scoring.read_answer(item, response)
    except ActionError as error:
        return {}, str(error), ""
    return answer, "", gap


def steps_of(value: object) -> list[Step[Any]]:
    """Return the steps of an episode, a record or JSON; none for None. `CalibrantError` names an entry that is none."""
    if value is None:
        return []
    if isinstance(value, str | Mapping) or not isinstance(value, Sequence):
        raise CalibrantError(f"steps is {short_repr(value)}, not a list of steps")
    return [_step(number, entry) for number, entry in enumerate(value)]


def _step(number: int, entry: object) -> Step[Any]:
    if isinstance(entry, Step):
        return entry
    try:
        step = entry if isinstance(entry, StepRecord) else msgspec.convert(entry, StepRecord, strict=True)
    except (msgspec.ValidationError, UnicodeEncodeError) as error:  # half a surrogate pair
        raise CalibrantError(f"step {number}: {' '.join(str(error).split())[:300]}") from None
    return Step(step.action, step.reading, step.refused, step.cost)
