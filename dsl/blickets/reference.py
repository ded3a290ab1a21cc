"""Reference semantics of the extended blickets: every condition and option, move by move, in names and sets.

Written for clarity; dsl.blickets.episode gives the same readings faster. Source: arXiv:2604.20039, sections 3 and 4;
fields of `Task` and `Sealed` decide what the paper leaves open.

* Moves (place, remove) are numbered t = 1, 2, ...; refused ones too. If the detector starts with objects on it, there
  is a reading of t = 0, and these objects count as placed in list order.
* The reading with activation N, the switch point, is the last one under the old rule.
* With count = edge, an ACTIVE reading counts as an activation only if the reading before it was INACTIVE or if there
  was none. A refusal is no reading.
* A graded detector reads "ACTIVE k" with k blickets of the rule in force on it, instead of ACTIVE.
* A refused move costs a step and gives no reading. Once the budget is spent, a move is refused, costs nothing, and
  closes the episode; a check costs nothing and is still accepted.
* A check is a submission. Without a valid rule it is refused, costs nothing and leaves the episode open. If it comes
  too early, it is refused and costs a step, so that waiting is not free.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from calibrant.dsl.blickets import item as blickets_item
from calibrant.dsl.episode import Action, ActionError, verb_of

ACTIVE, INACTIVE = "ACTIVE", "INACTIVE"
VERBS = {"place": frozenset[str](), "remove": frozenset[str](), "check": frozenset[str]()}


def is_active(reading: str | None) -> bool:
    """Return whether a reading, graded or not, is one of an active detector."""
    return reading is not None and reading != INACTIVE


def is_submission(action: object) -> bool:
    """Return whether an action, well formed or not, is a submission and no move."""
    return isinstance(action, Mapping) and "check" in action and not action.keys() & {"place", "remove"}


class MalformedCheckError(ActionError):
    """A check without a valid rule."""


def submitted_rule(action: Action, objects: Sequence[str]) -> blickets_item.Rule:
    """Return the rule of a check; `MalformedCheckError` if it states none."""
    try:
        verb_of(action, VERBS)
        return blickets_item.rule_from_json(action["check"], objects)
    except ActionError as error:
        raise MalformedCheckError(str(error)) from None


def graded_level(reading: str) -> int:
    """Return the number of blickets in a graded reading; 0 if it is INACTIVE."""
    return 0 if reading == INACTIVE else int(reading.removeprefix(f"{ACTIVE} "))


class Ending(StrEnum):
    """The status of an episode after its last action."""

    OPEN = "open"
    ANSWERED = "answered"
    TIMEOUT = "timeout"


@dataclass(frozen=True, slots=True)
class Moment:
    """One step, with what is hidden from the agent.

    t: number of moves so far, this step included
    reading: None for refusals and checks
    refused: reason of a refusal, else empty
    cost: number of moves that the step takes from the budget
    activations: number of activations so far, this step included
    placed: objects on the detector after the step, first placed first
    phase: index of the mechanism that gave the reading; None without a reading
    """

    t: int
    reading: str | None
    refused: str
    cost: int
    activations: int
    placed: tuple[str, ...]
    phase: int | None


@dataclass(frozen=True, slots=True)
class History:
    """A whole episode; answer: accepted rule, None without one; phase: index of the mechanism in force at the end."""

    moments: tuple[Moment, ...]
    ending: Ending
    answer: blickets_item.Rule | None
    phase: int


def run(item: blickets_item.BlicketItem, actions: Iterable[Action]) -> History:
    """Run the actions on the item; actions after the end of the episode are refused and cost nothing."""
    detector = _Detector(item)
    for action in actions:
        detector.take(action)
    return detector.history()


def satisfies(mechanism: blickets_item.Mechanism, placed: tuple[str, ...], item: blickets_item.BlicketItem) -> bool:
    """Return whether a mechanism would activate a noiseless detector (p = 1) with these objects on it."""
    objects = item.task.objects
    blickets, present = set(blickets_item.names_of(mechanism.rule.blickets, objects)), set(placed)
    if mechanism.order is None:
        return (
            blickets <= present if mechanism.rule.form is blickets_item.Form.CONJUNCTIVE else bool(blickets & present)
        )
    sequence = [objects[index] for index in mechanism.order]
    if item.task.order_reading is blickets_item.OrderReading.CONTIGUOUS:
        return any(list(placed[first : first + len(sequence)]) == sequence for first in range(len(placed)))
    return [name for name in placed if name in blickets] == sequence


class _Detector:
    """An item in the course of an episode."""

    def __init__(self, item: blickets_item.BlicketItem) -> None:
        self.item = item
        self.draws = blickets_item.Draws(item.sealed)
        self.placed: tuple[str, ...] = ()
        self.t = 0
        self.activations = 0
        self.last_reading = INACTIVE
        self.ending = Ending.OPEN
        self.answer: blickets_item.Rule | None = None
        self.moments: list[Moment] = []
        if item.sealed.start_on is not None:
            self.placed = tuple(item.task.objects[index] for index in item.sealed.start_on)
            self._take_reading(cost=0)

    def history(self) -> History:
        spent = self.ending is Ending.OPEN and self.t >= self.item.task.budget
        return History(tuple(self.moments), Ending.TIMEOUT if spent else self.ending, self.answer, self._phase())

    def take(self, action: Action) -> None:
        if self.ending is not Ending.OPEN:
            self._record(None, "the episode is over", cost=0)
            return
        try:
            if is_submission(action):
                self._check(action)
                return
            verb = verb_of(action, VERBS)
            if self.t >= self.item.task.budget:
                raise ActionError("the budget is spent")
            placed = self._after_move(verb, action[verb])
        except MalformedCheckError as error:
            self._record(None, str(error), cost=0)
            return
        except ActionError as error:
            self._refuse(str(error))
            return
        self.placed = placed
        self.t += 1
        self._take_reading(cost=1)

    def _after_move(self, verb: str, name: object) -> tuple[str, ...]:
        if not isinstance(name, str) or name not in self.item.task.objects:
            raise ActionError("unknown object")
        if verb == "place":
            if name in self.placed:
                raise ActionError(f"{name} is already on the detector")
            return (*self.placed, name)
        if name not in self.placed:
            raise ActionError(f"{name} is not on the detector")
        return tuple(member for member in self.placed if member != name)

    def _check(self, action: Action) -> None:
        answer = submitted_rule(action, self.item.task.objects)
        if not self._accepts_submissions():
            raise ActionError("a submission is not accepted yet")
        self.answer = answer
        self.ending = Ending.ANSWERED
        self._record(None, "", cost=0)

    def _accepts_submissions(self) -> bool:
        """Return whether the item's conditions on submissions hold (`Exposure`); they end with the budget."""
        sealed = self.item.sealed
        if self.t < min(sealed.exposure.moves, self.item.task.budget):
            return False
        if not sealed.exposure.after_switch or not sealed.switches or self.t >= self.item.task.budget:
            return True
        progress = self.activations if sealed.switch_by == "activations" else self.t
        return progress > sealed.switches[-1]

    def _refuse(self, why: str) -> None:
        spent = self.t >= self.item.task.budget
        if spent:
            self.ending = Ending.TIMEOUT
        else:
            self.t += 1
        self._record(None, why, cost=0 if spent else 1)

    def _phase(self) -> int:
        return self.item.sealed.phase(self.activations, self.t)

    def _take_reading(self, *, cost: int) -> None:
        sealed = self.item.sealed
        # the mechanism in force before this move
        phase = 0 if self.t == 0 else sealed.phase(self.activations, self.t - 1)
        rule_holds = satisfies(sealed.mechanisms[phase], self.placed, self.item)
        works = sealed.p == 1 or self.draws[self.t] < sealed.p
        reading = ACTIVE if rule_holds and works else INACTIVE
        if reading == ACTIVE and self.item.task.graded:
            blickets = blickets_item.names_of(sealed.mechanisms[phase].rule.blickets, self.item.task.objects)
            reading = f"{ACTIVE} {len(set(blickets) & set(self.placed))}"
        counts = self.item.task.count is blickets_item.Count.LEVEL or self.last_reading == INACTIVE
        if is_active(reading) and counts:
            self.activations += 1
        self.last_reading = reading
        self._record(reading, "", cost=cost, phase=phase)

    def _record(self, reading: str | None, refused: str, *, cost: int, phase: int | None = None) -> None:
        self.moments.append(Moment(self.t, reading, refused, cost, self.activations, self.placed, phase))
