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

from calibrant.dsl.action import Action
from calibrant.dsl.blickets.grading import Grade, grade
from calibrant.dsl.blickets.item import BlicketItem
from calibrant.dsl.blickets.reference import ACTIVE, INACTIVE, History, run
from calibrant.dsl.episode import Step, TranscriptError
from calibrant.dsl.errors import PoolError, shown
from calibrant.dsl.records import converted, decoded


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
    """What an agent's own machinery did at a step; nothing, for agents that have none."""

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
    """The trace of an episode's steps.

    notes: what the agent's machinery did, by number of the step in `steps`
    """
    return _trace(item, agent, _history(item, [step.action for step in steps]), grade(item, steps), steps, notes or {})


def _trace(
    item: BlicketItem,
    agent: str,
    history: History,
    found: Grade,
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
    stated = found.as_json(item.task.objects)
    verdict = TraceVerdict(found.correct, stated["errors"])
    return Trace(item.id, agent, recorded, stated["answer"], verdict, stated["class"])


def _history(item: BlicketItem, actions: Sequence[Action]) -> History:
    return run(item, actions if item.sealed.start_on is None else actions[1:])


def check_trace(trace: Trace, item: BlicketItem) -> Grade:
    """The grade of a trace whose every step, answer, verdict and class is what the item gives.

    `TranscriptError` names the first step that is not; `PoolError` names another field that is not.
    """
    return _checked(trace, item)[1]


def checked_steps(trace: Trace, item: BlicketItem) -> list[Step[str]]:
    """The steps of a trace, if it is one that `check_trace` accepts."""
    return _checked(trace, item)[0]


def _checked(trace: Trace, item: BlicketItem) -> tuple[list[Step[str]], Grade]:
    steps, found = _replayed(trace, item)
    _check_result(trace, found.as_json(item.task.objects))
    _check_rules(trace, item)
    return steps, found


def _replayed(trace: Trace, item: BlicketItem) -> tuple[list[Step[str]], Grade]:
    """What the item answers to the actions, if that is what the trace says."""
    if trace.item != item.id:
        raise PoolError(f"a trace of {shown(trace.item)}, not of {shown(item.id)}", field="item")
    moments = _history(item, [step.action for step in trace.steps]).moments
    for number, (step, moment) in enumerate(zip_longest(trace.steps, moments)):
        if step is None:
            raise TranscriptError(number, "missing")
        said = (step.t, step.reading, bool(step.refused), step.activations, step.state)
        true = (moment.t, moment.reading, bool(moment.refused), moment.activations, sorted(moment.placed))
        if said != true:
            raise TranscriptError(number, f"recorded as {_stated(said)}; was {_stated(true)}")
    replayed = [Step(s.action, m.reading, m.refused, m.cost) for s, m in zip(trace.steps, moments, strict=True)]
    return replayed, grade(item, replayed)


def _stated(step: tuple[int, str | None, bool, int, list[str]]) -> str:
    t, reading, refused, activations, state = step
    read = reading if reading in (ACTIVE, INACTIVE, None) else shown(reading)
    told = "refused" if refused else read or "no reading"
    return f"t = {shown(t)}, {told}, {shown(activations)} activations, {shown(', '.join(state))} on the detector"


def _check_result(trace: Trace, found: Mapping[str, Any]) -> None:
    wanted = {
        "answer": (trace.answer, found["answer"]),
        "verdict.correct": (trace.verdict.correct, found["correct"]),
        "verdict.errors": (trace.verdict.errors, found["errors"]),
        "class": (trace.exposed, found["class"]),
    }
    for field, (said, true) in wanted.items():
        if said != true:
            raise PoolError(f"{shown(said)} recorded, was {shown(true)}", instance=trace.item, field=field)


def _check_rules(trace: Trace, item: BlicketItem) -> None:
    for number, (step, rule) in enumerate(zip(trace.steps, _rules(trace, item), strict=True)):
        if step.rule_in_force is not UNSET and step.rule_in_force != rule:
            raise TranscriptError(number, f"rule_in_force {shown(step.rule_in_force)} recorded, was {shown(rule)}")


def _rules(trace: Trace, item: BlicketItem) -> list[dict[str, Any]]:
    """The rule of the next reading after each step."""
    moments = _history(item, [step.action for step in trace.steps]).moments
    phases = (item.sealed.phase(moment.activations, moment.t) for moment in moments)
    return [item.sealed.mechanisms[phase].rule.as_json(item.task.objects) for phase in phases]


def sealed_view(trace: Trace, item: BlicketItem) -> Trace:
    """A checked trace with the rule in force after each step."""
    check_trace(trace, item)
    rules = _rules(trace, item)
    steps = [msgspec.structs.replace(step, rule_in_force=rule) for step, rule in zip(trace.steps, rules, strict=True)]
    return msgspec.structs.replace(trace, steps=steps)


def trace_from_line(line: str) -> Trace:
    """A trace as written by `trace_line`; `PoolError` names the field of what cannot be meant."""
    return decoded(line, Trace)


def trace_from_object(value: Mapping[str, Any]) -> Trace:
    """The same of a JSON object that has been read already."""
    return converted(value, Trace)


def trace_line(trace: Trace) -> str:
    """The trace as one JSON line."""
    return msgspec.json.encode(trace, order="deterministic").decode()
