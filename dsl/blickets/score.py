"""Grades of episodes: verdict and classes of the paper (arXiv:2604.20039, section 4), and further statistics.

A grade depends on the item and the actions alone, which the reference interpreter replays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from calibrant.dsl.blickets.item import BlicketItem, Rule, Sealed, SwitchBy
from calibrant.dsl.blickets.reference import Ending, History, is_active, run
from calibrant.dsl.episode import Step, TranscriptError


class Exposed(StrEnum):
    """Class of an episode by its end relative to the last switch reached, or to the first if none was reached.

    With a = activations (moves, if the mechanism switches by moves) and switch point N: a < N, a = N, a > N. RE is
    "reasoning-eligible" in the paper.
    """

    PRE = "pre"
    EXACTLY_N = "exactly-N"
    RE = "RE"


class Split(StrEnum):
    """Class of an episode by evidence: no switch reached, or one without or with readings under the new rule."""

    PRE = "pre"
    BLIND = "switched-blind"
    SEEN = "switched-seen"


class Fault(StrEnum):
    """An error of an answer."""

    TYPE = "type"  # conjunctive for disjunctive, or the reverse
    OVER = "over"  # strict superset of the blickets
    UNDER = "under"  # strict subset
    MIXED = "mixed"  # some blickets missing, other objects named
    TIMEOUT = "timeout"  # no answer within the budget


@dataclass(frozen=True, slots=True)
class Grade:
    """Grade of an episode.

    correct: the answer's type and blickets are those of the rule in force at submission; None while the episode is open
    faults: errors of the answer, empty if it is correct
    strict: correct, and the blickets are listed in the mechanism's order if it has one; the verdict ignores the order
    rule_in_force: the rule in force at the end
    ending, steps, refused, activations: course of the episode; `steps` counts moves, refused ones included
    exposed, split: classes of the episode; None if the mechanism has no switch
    post_evidence: number of readings under the last rule reached, 0 if that is the first; None if it has no switch
    distinct_configurations: number of different sets of objects on the detector at a reading
    first_activation: number of the move with the first ACTIVE reading; None without one
    answer: the submitted rule; None without one
    """

    correct: bool | None
    faults: tuple[Fault, ...]
    strict: bool | None
    rule_in_force: Rule
    ending: Ending
    steps: int
    refused: int
    activations: int
    exposed: Exposed | None
    split: Split | None
    post_evidence: int | None
    distinct_configurations: int
    first_activation: int | None
    answer: Rule | None

    def as_json(self, objects: Sequence[str]) -> dict[str, Any]:
        """Return the grade as a flat JSON object, with the keys of the paper's measures."""
        return {
            "correct": self.correct,
            "errors": [str(fault) for fault in self.faults],
            "strict": self.strict,
            "rule_in_force": self.rule_in_force.as_json(objects),
            "closed": str(self.ending),
            "steps": self.steps,
            "refused": self.refused,
            "activations": self.activations,
            "class": None if self.exposed is None else str(self.exposed),
            "split": None if self.split is None else str(self.split),
            "post_evidence": self.post_evidence,
            "distinct_configurations": self.distinct_configurations,
            "first_activation": self.first_activation,
            "answer": None if self.answer is None else self.answer.as_json(objects),
        }


def grade(item: BlicketItem, steps: Sequence[Step[str]]) -> Grade:
    """Return the grade of a transcript; `TranscriptError` names the first step that a replay does not reproduce."""
    num_opening_steps = 0 if item.sealed.start_on is None else 1
    history = run(item, (step.action for step in steps[num_opening_steps:]))
    # every action and the opening reading give a moment, so the lengths differ only for an empty transcript
    if len(history.moments) != len(steps):
        raise TranscriptError(0, "missing; the episode begins with a reading of its own")
    _compare_start(item, steps)
    for index, (step, moment) in enumerate(zip(steps, history.moments, strict=True)):
        if step.reading != moment.reading:
            raise TranscriptError(index, f"reading {step.reading} recorded, was {moment.reading}")
        if bool(step.refused) != bool(moment.refused) or step.cost != moment.cost:
            raise TranscriptError(index, "recorded with another refusal or cost than it had")
    return grade_episode(item, history, _listed_order(item, steps))


def _compare_start(item: BlicketItem, steps: Sequence[Step[str]]) -> None:
    start = item.sealed.start_on
    if start is not None and dict(steps[0].action) != {"start": [item.task.objects[i] for i in start]}:
        raise TranscriptError(0, "recorded with another start than it had")


def _listed_order(item: BlicketItem, steps: Sequence[Step[str]]) -> tuple[int, ...]:
    """Return the blickets of the accepted answer in the order in which they were listed."""
    for step in steps:
        if "check" in step.action and not step.refused:  # the action that submits
            return tuple(item.task.objects.index(name) for name in step.action["check"]["blickets"])
    return ()


def grade_episode(item: BlicketItem, history: History, listed_order: tuple[int, ...] = ()) -> Grade:
    """Return the grade of an episode that the reference has replayed.

    listed_order: object numbers of the answer's blickets in the order of the answer, for `strict`
    """
    mechanism = item.sealed.mechanisms[history.phase]
    faults = _faults(history, mechanism.rule, strict_singleton=item.sealed.strict_singleton)
    correct = None if history.ending is Ending.OPEN else not faults
    moments = history.moments
    readings = [moment for moment in moments if moment.reading is not None]
    last = moments[-1] if moments else None
    post_evidence = split = None
    if item.sealed.switches:
        post_evidence = sum(moment.phase == history.phase for moment in readings) if history.phase else 0
        after_switch = Split.SEEN if post_evidence else Split.BLIND
        split = after_switch if history.phase else Split.PRE
    return Grade(
        correct=correct,
        faults=faults,
        strict=None if correct is None else correct and (mechanism.order is None or mechanism.order == listed_order),
        rule_in_force=mechanism.rule,
        ending=history.ending,
        steps=last.t if last else 0,
        # only refusals that cost a move; a malformed submission costs none
        refused=sum(moment.cost for moment in moments if moment.refused),
        activations=last.activations if last else 0,
        exposed=_exposure(item.sealed, last.activations if last else 0, last.t if last else 0),
        split=split,
        post_evidence=post_evidence,
        distinct_configurations=len({frozenset(moment.placed) for moment in readings}),
        first_activation=next((moment.t for moment in readings if is_active(moment.reading)), None),
        answer=history.answer,
    )


def _exposure(sealed: Sealed, activations: int, moves: int) -> Exposed | None:
    if not sealed.switches:
        return None
    reached = sealed.phase(activations, moves)
    progress = activations if sealed.switch_by is SwitchBy.ACTIVATIONS else moves
    if not reached:
        return Exposed.PRE
    return Exposed.EXACTLY_N if progress == sealed.switches[reached - 1] else Exposed.RE


def _faults(history: History, rule: Rule, *, strict_singleton: bool) -> tuple[Fault, ...]:
    if history.ending is not Ending.ANSWERED or history.answer is None:
        return (Fault.TIMEOUT,) if history.ending is Ending.TIMEOUT else ()
    answer = history.answer
    faults = []
    # a rule of one blicket is the same function in both forms, so neither form is a fault
    either_form = not strict_singleton and 1 in (answer.blickets.bit_count(), rule.blickets.bit_count())
    if answer.form is not rule.form and not either_form:
        faults.append(Fault.TYPE)
    if answer.blickets != rule.blickets:
        missing, extra = rule.blickets & ~answer.blickets, answer.blickets & ~rule.blickets
        faults.append(Fault.MIXED if missing and extra else Fault.UNDER if missing else Fault.OVER)
    return tuple(faults)
