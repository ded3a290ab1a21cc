"""Traces: what an agent did in an episode, as one JSON object, and the check that all of it is so.

The activations are what the agent can count itself. What only the sealed side knows, the rule in force, is in a trace
only where it was asked for (`sealed_view`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from calibrant.dsl.blickets.item import BlicketItem
from calibrant.dsl.blickets.reference import ACTIVE, INACTIVE, History, run
from calibrant.dsl.blickets.score import Grade, grade
from calibrant.dsl.episode import Action, Step, TranscriptError
from calibrant.dsl.errors import PoolError, short_repr
from calibrant.dsl.records import convert_object, decode_line


class Transition(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A change of state in an agent's context graph: asked for, and the state it then was in."""

    asked: str | None
    taken: str | None


class Monitor(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A dynamic behaviour's score at a step, from 0 to 10, and whether it fired."""

    name: str
    score: float
    fired: bool


class Notes(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The internal events of an agent at a step; empty for agents that report none."""

    transition: Transition | UnsetType = UNSET
    monitors: tuple[Monitor, ...] = ()
    notice: str = ""


class TraceStep(msgspec.Struct, forbid_unknown_fields=True, frozen=True, omit_defaults=True):
    """One step.

    t: moves up to and with it
    state: what is on the detector after it, sorted
    refused: why it was refused, if it was
    rule_in_force: of the next reading, in the sealed view only
    """

    t: int
    action: dict[str, Any]
    reading: str | None
    activations: int
    state: list[str]
    refused: str = ""
    transition: Transition | UnsetType = UNSET
    monitors: tuple[Monitor, ...] = ()
    notice: str = ""
    rule_in_force: dict[str, Any] | UnsetType = UNSET


class TraceVerdict(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """`correct` is None while an episode is open."""

    correct: bool | None
    errors: list[str]


class Trace(msgspec.Struct, forbid_unknown_fields=True, frozen=True, rename={"exposed": "class"}):
    """One episode of an agent. `class` is pre, exactly-N or RE, or null without a switch."""

    item: str
    agent: str
    steps: list[TraceStep]
    answer: dict[str, Any] | None
    verdict: TraceVerdict
    exposed: str | None


def trace_of(
    item: BlicketItem, agent: str, steps: Sequence[Step[str]], notes: Mapping[int, Notes] | None = None
) -> Trace:
    """Return the trace of an episode's steps.

    notes: what the agent's machinery did, by number of the step in `steps`
    """
    return _trace(item, agent, _history(item, [step.action for step in steps]), grade(item, steps), steps, notes or {})


def _trace(
    item: BlicketItem,
    agent: str,
    history: History,
    grade: Grade,
    steps: Sequence[Step[str]],
    notes: Mapping[int, Notes],
) -> Trace:
    recorded = []
    for number, (step, moment) in enumerate(zip(steps, history.moments, strict=True)):
        note = notes.get(number, Notes())
        recorded.append(
            TraceStep(
                moment.t,
                dict(step.action),
                moment.reading,
                moment.activations,
                sorted(moment.placed),
                moment.refused,
                note.transition,
                note.monitors,
                note.notice,
            )
        )
    stated = grade.as_json(item.task.objects)
    verdict = TraceVerdict(grade.correct, stated["errors"])
    return Trace(item.id, agent, recorded, stated["answer"], verdict, stated["class"])


def _history(item: BlicketItem, actions: Sequence[Action]) -> History:
    return run(item, actions if item.sealed.start_on is None else actions[1:])


def check_trace(trace: Trace, item: BlicketItem) -> Grade:
    """Return the grade of a trace whose every step, answer, verdict and class is what the item gives.

    `TranscriptError` names the first step that is not; `PoolError` names another field that is not.
    """
    return _check_trace(trace, item)[1]


def checked_steps(trace: Trace, item: BlicketItem) -> list[Step[str]]:
    """Return the steps of a trace, if it is one that `check_trace` accepts."""
    return _check_trace(trace, item)[0]


def _check_trace(trace: Trace, item: BlicketItem) -> tuple[list[Step[str]], Grade]:
    steps, grade = _replay_trace(trace, item)
    _check_result(trace, grade.as_json(item.task.objects))
    _check_rules(trace, item)
    return steps, grade


def _replay_trace(trace: Trace, item: BlicketItem) -> tuple[list[Step[str]], Grade]:
    """Replay the actions; `TranscriptError` where the item's response differs from the trace."""
    if trace.item != item.id:
        raise PoolError(f"a trace of {short_repr(trace.item)}, not of {short_repr(item.id)}", field="item")
    moments = _history(item, [step.action for step in trace.steps]).moments
    for number, (step, moment) in enumerate(zip_longest(trace.steps, moments)):
        if step is None:
            raise TranscriptError(number, "missing")
        recorded = (step.t, step.reading, bool(step.refused), step.activations, step.state)
        actual = (moment.t, moment.reading, bool(moment.refused), moment.activations, sorted(moment.placed))
        if recorded != actual:
            raise TranscriptError(number, f"recorded as {_step_text(recorded)}; was {_step_text(actual)}")
    replayed = [Step(s.action, m.reading, m.refused, m.cost) for s, m in zip(trace.steps, moments, strict=True)]
    return replayed, grade(item, replayed)


def _step_text(step: tuple[int, str | None, bool, int, list[str]]) -> str:
    t, reading, refused, activations, state = step
    reading_text = reading if reading in (ACTIVE, INACTIVE, None) else short_repr(reading)
    outcome = "refused" if refused else reading_text or "no reading"
    on_detector = short_repr(", ".join(state))
    return f"t = {short_repr(t)}, {outcome}, {short_repr(activations)} activations, {on_detector} on the detector"


def _check_result(trace: Trace, grade: Mapping[str, Any]) -> None:
    comparisons = {
        "answer": (trace.answer, grade["answer"]),
        "verdict.correct": (trace.verdict.correct, grade["correct"]),
        "verdict.errors": (trace.verdict.errors, grade["errors"]),
        "class": (trace.exposed, grade["class"]),
    }
    for field, (recorded, actual) in comparisons.items():
        if recorded != actual:
            raise PoolError(
                f"{short_repr(recorded)} recorded, was {short_repr(actual)}", instance=trace.item, field=field
            )


def _check_rules(trace: Trace, item: BlicketItem) -> None:
    for number, (step, rule) in enumerate(zip(trace.steps, _rules(trace, item), strict=True)):
        if step.rule_in_force is not UNSET and step.rule_in_force != rule:
            raise TranscriptError(
                number, f"rule_in_force {short_repr(step.rule_in_force)} recorded, was {short_repr(rule)}"
            )


def _rules(trace: Trace, item: BlicketItem) -> list[dict[str, Any]]:
    """Return the rule of the next reading after each step."""
    moments = _history(item, [step.action for step in trace.steps]).moments
    phases = (item.sealed.phase(moment.activations, moment.t) for moment in moments)
    return [item.sealed.mechanisms[phase].rule.as_json(item.task.objects) for phase in phases]


def sealed_view(trace: Trace, item: BlicketItem) -> Trace:
    """Return a checked trace with the rule in force after each step."""
    check_trace(trace, item)
    rules = _rules(trace, item)
    steps = [msgspec.structs.replace(step, rule_in_force=rule) for step, rule in zip(trace.steps, rules, strict=True)]
    return msgspec.structs.replace(trace, steps=steps)


def trace_from_line(line: str) -> Trace:
    """Return a trace as written by `trace_line`; `PoolError` names the field of what cannot be meant."""
    return decode_line(line, Trace)


def trace_from_object(value: Mapping[str, Any]) -> Trace:
    """Return the trace of a decoded JSON object."""
    return convert_object(value, Trace)


def trace_line(trace: Trace) -> str:
    """Return the trace as one JSON line."""
    return msgspec.json.encode(trace, order="deterministic").decode()
