"""Episodes of the extended blickets, states of the detector, and traces of episodes with their check.

Actions: {"place": name}, {"remove": name}, {"check": {"rule": "conjunctive" | "disjunctive", "blickets": [names]}}.
If the detector starts with objects on it, the first step is {"start": [names]} with the first reading.
Sets of objects are integers: bit i stands for object i of the task. A *phase* is the index of the mechanism in force.

An agent can count activations itself, so traces hold them. They hold the rule in force, which is sealed, only after
`sealed_view`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from calibrant.dsl.blickets import item as blickets_item
from calibrant.dsl.blickets.reference import (
    ACTIVE,
    INACTIVE,
    VERBS,
    History,
    MalformedCheckError,
    is_submission,
    run,
    submitted_rule,
)
from calibrant.dsl.blickets.score import Grade, grade
from calibrant.dsl.episode import Action, ActionError, Step, TranscriptError, verb_of
from calibrant.dsl.errors import PoolError, short_repr
from calibrant.dsl.records import convert_object, decode_line

# --- An episode: the detector that agents play against; equal to dsl.blickets.reference, but faster


class BlicketEpisode:
    """One run of an item. `steps` is what the agent has seen; the mechanism is private."""

    __slots__ = (
        "_activations",
        "_active_sets",
        "_closed",
        "_draws",
        "_index",
        "_item",
        "_last_active",
        "_moves",
        "_placed",
        "_present",
        "_steps",
    )

    def __init__(self, item: blickets_item.BlicketItem) -> None:
        self._item = item
        self._index = {name: i for i, name in enumerate(item.task.objects)}
        # one table of 2**n bits for each phase: bit s is set if the set s activates the detector
        self._active_sets = [blickets_item.active_sets(m.rule, item.task.n) for m in item.sealed.mechanisms]
        # p: probability that a satisfied rule reads ACTIVE; an unsatisfied one always reads INACTIVE
        self._draws = blickets_item.Draws(item.sealed) if item.sealed.p < 1 else None
        self._placed: list[int] = []
        self._present = 0
        self._moves = 0
        self._activations = 0
        self._last_active = False
        self._closed = False
        self._steps: list[Step[str]] = []
        start = item.sealed.start_on
        # the objects at the start take no move: reading and draw 0, no refusal (""), cost 0
        if start is not None:
            self._placed = list(start)
            self._present = blickets_item.set_of(start)
            names = [item.task.objects[i] for i in start]
            self._steps.append(Step({"start": names}, self._reading(0), "", 0))

    @property
    def task(self) -> blickets_item.Task:
        return self._item.task

    @property
    def steps(self) -> list[Step[str]]:
        return self._steps

    @property
    def left(self) -> int:
        return self._item.task.budget - self._moves

    @property
    def closed(self) -> bool:
        return self._closed

    @property
    def placed(self) -> tuple[int, ...]:
        """Numbers of the objects on the detector, first placed first."""
        return tuple(self._placed)

    def act(self, action: Action) -> Step[str]:
        """Carry out or refuse an action. Refused moves and early checks cost a step, malformed checks cost none."""
        step = self._take(action)
        self._steps.append(step)
        return step

    def _take(self, action: Action) -> Step[str]:
        if self._closed:
            return Step(_copy(action), None, "the episode is over", 0)
        try:
            if is_submission(action):
                return self._check(action)
            verb = verb_of(action, VERBS)
            if self._moves >= self._item.task.budget:
                raise ActionError("the budget is spent")
            self._move(verb, action[verb])
        except MalformedCheckError as error:
            return Step(_copy(action), None, str(error), 0)
        except ActionError as error:
            return self._refusal(action, str(error))
        # phases count the moves before this one; draws are numbered by the moves with this one
        before = self._moves
        self._moves += 1
        return Step({verb: action[verb]}, self._reading(before), "", 1)

    def _move(self, verb: str, name: object) -> None:
        index = self._index.get(name) if isinstance(name, str) else None
        if index is None:
            raise ActionError("unknown object")
        bit = 1 << index
        if verb == "place":
            if self._present & bit:
                raise ActionError(f"{name} is already on the detector")
            self._placed.append(index)
        elif self._present & bit:
            self._placed.remove(index)
        else:
            raise ActionError(f"{name} is not on the detector")
        self._present ^= bit

    def _check(self, action: Action) -> Step[str]:
        submitted_rule(action, self._item.task.objects)  # raises MalformedCheckError
        stated = action["check"]
        if not self._accepts_submissions():
            raise ActionError("a submission is not accepted yet")
        self._closed = True
        return Step({"check": {"rule": str(stated["rule"]), "blickets": list(stated["blickets"])}}, None, "", 0)

    def _refusal(self, action: Action, why: str) -> Step[str]:
        # a refusal after the budget closes the episode; otherwise an agent that never submits would play for ever
        if self._moves >= self._item.task.budget:
            self._closed = True
            return Step(_copy(action), None, why, 0)
        self._moves += 1
        return Step(_copy(action), None, why, 1)

    def _accepts_submissions(self) -> bool:
        sealed = self._item.sealed
        if self._moves >= self._item.task.budget:
            return True
        if self._moves < sealed.exposure.moves:
            return False
        if not sealed.exposure.after_switch or not sealed.switches:
            return True
        # strictly more: at the switch point the last rule is in force, but no reading under it exists yet
        progress = self._activations if sealed.switch_by is blickets_item.SwitchBy.ACTIVATIONS else self._moves
        return progress > sealed.switches[-1]

    def _reading(self, moves_before: int) -> str:
        sealed = self._item.sealed
        phase = sealed.phase(self._activations, moves_before) if sealed.switches else 0
        active = self._active_sets[phase] >> self._present & 1 == 1
        order = sealed.mechanisms[phase].order
        if active and order is not None:
            contiguous = self._item.task.order_reading is blickets_item.OrderReading.CONTIGUOUS
            active = blickets_item.in_order(order, self._placed, contiguous=contiguous)
        if active and self._draws is not None:
            active = self._draws[self._moves] < sealed.p
        # LEVEL counts every ACTIVE reading, EDGE only one that does not follow an ACTIVE one
        if active and (self._item.task.count is blickets_item.Count.LEVEL or not self._last_active):
            self._activations += 1
        self._last_active = active
        if active and self._item.task.graded:
            return f"{ACTIVE} {(sealed.mechanisms[phase].rule.blickets & self._present).bit_count()}"
        return ACTIVE if active else INACTIVE


def _copy(action: object) -> Action:
    """Return a refused action for the transcript; one that is no object becomes {"unreadable": its text}."""
    return dict(action) if isinstance(action, Mapping) else {"unreadable": short_repr(action)}


# --- States of the detector: the objects on it after each step, in the order of placement -----------------------------


def apply_move(placed: tuple[int, ...], verb: str, index: int) -> tuple[int, ...]:
    """Return the objects on the detector after an accepted move (object numbers, first placed first)."""
    return (*placed, index) if verb == "place" else tuple(place for place in placed if place != index)


def readings(task: blickets_item.Task, steps: Iterable[Step[str]]) -> Iterator[tuple[tuple[int, ...], str]]:
    """Yield (numbers of the objects on the detector, reading) for every step with a reading, oldest first."""
    for placed, step in steps_with_state(task, steps):
        if step.reading is not None:
            yield placed, step.reading


def placed_after(task: blickets_item.Task, steps: Sequence[Step[str]]) -> tuple[int, ...]:
    """Return the objects on the detector after these steps."""
    placed: tuple[int, ...] = ()
    for placed, _ in steps_with_state(task, steps):  # noqa: B007  # keeps the last state
        pass
    return placed


def steps_with_state(
    task: blickets_item.Task, steps: Iterable[Step[str]]
) -> Iterator[tuple[tuple[int, ...], Step[str]]]:
    """Yield every step with the numbers of the objects on the detector after it, first placed first."""
    index = {name: i for i, name in enumerate(task.objects)}
    placed: tuple[int, ...] = ()
    for step in steps:
        if not step.refused:
            action = step.action
            if "start" in action:
                placed = tuple(index[name] for name in action["start"])
            elif "place" in action:
                placed = apply_move(placed, "place", index[action["place"]])
            elif "remove" in action:
                placed = apply_move(placed, "remove", index[action["remove"]])
        yield placed, step


# --- Traces: an agent's episode as one JSON object, and its check by a replay -----------------------------------------


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
    item: blickets_item.BlicketItem, agent: str, steps: Sequence[Step[str]], notes: Mapping[int, Notes] | None = None
) -> Trace:
    """Return the trace of an episode; notes: internal events of the agent by index in `steps`."""
    return _trace(item, agent, _history(item, [step.action for step in steps]), grade(item, steps), steps, notes or {})


def _trace(
    item: blickets_item.BlicketItem,
    agent: str,
    history: History,
    grade: Grade,
    steps: Sequence[Step[str]],
    notes: Mapping[int, Notes],
) -> Trace:
    recorded = []
    for index, (step, moment) in enumerate(zip(steps, history.moments, strict=True)):
        note = notes.get(index, Notes())
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


def _history(item: blickets_item.BlicketItem, actions: Sequence[Action]) -> History:
    return run(item, actions if item.sealed.start_on is None else actions[1:])


def check_trace(trace: Trace, item: blickets_item.BlicketItem) -> Grade:
    """Return the grade of a trace, after a replay has reproduced every step, answer, verdict and class.

    Raises `TranscriptError` for the first step that differs, `PoolError` for another field that differs.
    """
    return _check_trace(trace, item)[1]


def checked_steps(trace: Trace, item: blickets_item.BlicketItem) -> list[Step[str]]:
    """Return the steps of a trace; errors as of `check_trace`."""
    return _check_trace(trace, item)[0]


def _check_trace(trace: Trace, item: blickets_item.BlicketItem) -> tuple[list[Step[str]], Grade]:
    steps, grade = _replay_trace(trace, item)
    _check_result(trace, grade.as_json(item.task.objects))
    _check_rules(trace, item)
    return steps, grade


def _replay_trace(trace: Trace, item: blickets_item.BlicketItem) -> tuple[list[Step[str]], Grade]:
    """Return replayed steps and their grade; `TranscriptError` if a step differs from the trace."""
    if trace.item != item.id:
        raise PoolError(f"a trace of {short_repr(trace.item)}, not of {short_repr(item.id)}", field="item")
    moments = _history(item, [step.action for step in trace.steps]).moments
    for index, (step, moment) in enumerate(zip_longest(trace.steps, moments)):
        if step is None:
            raise TranscriptError(index, "missing")
        recorded = (step.t, step.reading, bool(step.refused), step.activations, step.state)
        actual = (moment.t, moment.reading, bool(moment.refused), moment.activations, sorted(moment.placed))
        if recorded != actual:
            raise TranscriptError(index, f"recorded as {_step_text(recorded)}; was {_step_text(actual)}")
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


def _check_rules(trace: Trace, item: blickets_item.BlicketItem) -> None:
    for index, (step, rule) in enumerate(zip(trace.steps, _rules_in_force(trace, item), strict=True)):
        if step.rule_in_force is not UNSET and step.rule_in_force != rule:
            raise TranscriptError(
                index, f"rule_in_force {short_repr(step.rule_in_force)} recorded, was {short_repr(rule)}"
            )


def _rules_in_force(trace: Trace, item: blickets_item.BlicketItem) -> list[dict[str, Any]]:
    """Return, for each step, the rule of the next reading, as JSON."""
    moments = _history(item, [step.action for step in trace.steps]).moments
    phases = (item.sealed.phase(moment.activations, moment.t) for moment in moments)
    return [item.sealed.mechanisms[phase].rule.as_json(item.task.objects) for phase in phases]


def sealed_view(trace: Trace, item: blickets_item.BlicketItem) -> Trace:
    """Return a trace with the rule in force after each step, if `check_trace` accepts it."""
    check_trace(trace, item)
    rules = _rules_in_force(trace, item)
    steps = [msgspec.structs.replace(step, rule_in_force=rule) for step, rule in zip(trace.steps, rules, strict=True)]
    return msgspec.structs.replace(trace, steps=steps)


def trace_from_line(line: str) -> Trace:
    """Return the trace of a line as `trace_line` writes it; `PoolError` names an invalid field."""
    return decode_line(line, Trace)


def trace_from_object(value: Mapping[str, Any]) -> Trace:
    """Return the trace of a decoded JSON object."""
    return convert_object(value, Trace)


def trace_line(trace: Trace) -> str:
    """Return the trace as one JSON line."""
    return msgspec.json.encode(trace, order="deterministic").decode()
