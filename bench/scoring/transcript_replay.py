"""A response to an interactive item: its steps replayed, then its answer handed in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from calibrant.bench.core.benchmark import Benchmark
from calibrant.bench.runs.records import StepRecord
from calibrant.dsl.action import ActionError
from calibrant.dsl.episode import Step, verify_transcript
from calibrant.dsl.errors import CalibrantError, short_repr

NO_ANSWER = "no answer"


class Played(NamedTuple):
    """answer: what was submitted, or would have been; empty if there is none
    steps: all of the episode; problem: why nothing was submitted, empty if something was
    unread: why the response has no answer, where nothing was submitted for that reason
    gap: what was submitted without, and why; empty if the answer is complete
    """

    answer: dict[str, Any]
    steps: tuple[Step[Any], ...]
    problem: str
    unread: str = ""
    gap: str = ""


def played(
    benchmark: Benchmark[Any], item: Any, response: str | Mapping[str, Any], steps: Sequence[Step[Any]]
) -> Played:
    """The episode after a transcript and the answer of a response, which is handed in unless the steps did so.

    `TranscriptError` names a false step; `CalibrantError` says that the answer is not what the steps submit.
    """
    episode = verify_transcript(benchmark.episode(item), steps)
    answer, unread, unread_part = _answer(benchmark, item, response)
    problem = unread
    submitted = benchmark.handed_in(episode.steps)
    if submitted is not None:
        if answer and not benchmark.same_answer(item, answer, submitted):
            raise CalibrantError(
                f"the answer {short_repr(answer)} is not what the steps submit: {short_repr(submitted)}"
            )
        answer, problem, unread = submitted, "", ""
    elif answer:
        actions = benchmark.handing_in(answer, tuple(episode.steps))
        problem = next((step.refused for step in map(episode.act, actions) if step.refused), "")
    omission = "" if problem else benchmark.omission(episode.steps)
    return Played(answer, tuple(episode.steps), problem, unread, ": ".join(filter(None, (omission, unread_part))))


def _answer(benchmark: Benchmark[Any], item: Any, response: str | Mapping[str, Any]) -> tuple[dict[str, Any], str, str]:
    """The answer of a response; why it has none; what of it could not be read."""
    if not response:
        return {}, NO_ANSWER, ""
    try:
        answer, unread = benchmark.read_answer(item, response)
    except ActionError as error:
        return {}, str(error), ""
    return answer, "", unread


def steps_of(value: object) -> list[Step[Any]]:
    """Steps of an episode, of a record, or as JSON has them; None for none. `CalibrantError` names what is no step."""
    if value is None:
        return []
    if isinstance(value, str | Mapping) or not isinstance(value, Sequence):
        raise CalibrantError(f"steps is {short_repr(value)}, not a list of steps")
    return [_step(number, one) for number, one in enumerate(value)]


def _step(number: int, one: object) -> Step[Any]:
    if isinstance(one, Step):
        return one
    try:
        read = one if isinstance(one, StepRecord) else msgspec.convert(one, StepRecord, strict=True)
    except msgspec.ValidationError as error:
        raise CalibrantError(f"step {number}: {' '.join(str(error).split())[:300]}") from None
    return Step(read.action, read.reading, read.refused, read.cost)
