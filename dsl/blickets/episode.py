"""Episodes of the extended blickets, and the detector's state after each step.

Actions: {"place": name}, {"remove": name}, {"check": {"rule": "conjunctive" | "disjunctive", "blickets": [names]}}.
Where the detector starts with objects on it, the first step is {"start": [names]} with the first reading.
Sets of objects are integers: bit i stands for object i of the task. A *phase* is the index of the mechanism in force.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from calibrant.dsl.blickets.item import BlicketItem, Count, OrderReading, SwitchBy, Task
from calibrant.dsl.blickets.noise import Draws
from calibrant.dsl.blickets.reference import ACTIVE, INACTIVE, VERBS, MalformedCheckError, is_submission, submitted_rule
from calibrant.dsl.blickets.rule import active_sets, in_order, set_of
from calibrant.dsl.episode import Action, ActionError, Step, verb_of
from calibrant.dsl.errors import short_repr

# --- An episode of the extended blickets: the detector that agents play against. Agrees with dsl.blickets.reference


class BlicketEpisode:
    """One run of an item. Everything about the mechanism is private; what it has shown is in `steps`."""

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

    def __init__(self, item: BlicketItem) -> None:
        self._item = item
        self._index = {name: i for i, name in enumerate(item.task.objects)}
        # one table of 2**n bits for each phase: bit s is set if the set s activates the detector
        self._active_sets = [active_sets(m.rule, item.task.n) for m in item.sealed.mechanisms]
        # p: probability that a satisfied rule reads ACTIVE; an unsatisfied one always reads INACTIVE
        self._draws = Draws(item.sealed) if item.sealed.p < 1 else None
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
            self._present = set_of(start)
            names = [item.task.objects[i] for i in start]
            self._steps.append(Step({"start": names}, self._reading(0), "", 0))

    @property
    def task(self) -> Task:
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
        """Carry out an action, or refuse it. A refused move or an early check costs a step, a malformed check none."""
        step = self._carried_out(action)
        self._steps.append(step)
        return step

    def _carried_out(self, action: Action) -> Step[str]:
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
        submitted_rule(action, self._item.task.objects)  # for its error only
        stated = action["check"]
        if not self._accepts_submissions():
            raise ActionError("a submission is not accepted yet")
        self._closed = True
        return Step({"check": {"rule": str(stated["rule"]), "blickets": list(stated["blickets"])}}, None, "", 0)

    def _refusal(self, action: Action, why: str) -> Step[str]:
        # a refusal at a spent budget closes the episode: an agent that never submits would play on for ever
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
        # strictly more: at the switch point the last rule is in force, but nothing has counted under it yet
        progress = self._activations if sealed.switch_by is SwitchBy.ACTIVATIONS else self._moves
        return progress > sealed.switches[-1]

    def _reading(self, moves_before: int) -> str:
        sealed = self._item.sealed
        phase = sealed.phase(self._activations, moves_before) if sealed.switches else 0
        active = self._active_sets[phase] >> self._present & 1 == 1
        order = sealed.mechanisms[phase].order
        if active and order is not None:
            contiguous = self._item.task.order_reading is OrderReading.CONTIGUOUS
            active = in_order(order, self._placed, contiguous=contiguous)
        if active and self._draws is not None:
            active = self._draws[self._moves] < sealed.p
        # LEVEL counts every ACTIVE reading, EDGE only one that does not follow an ACTIVE one
        if active and (self._item.task.count is Count.LEVEL or not self._last_active):
            self._activations += 1
        self._last_active = active
        if active and self._item.task.graded:
            return f"{ACTIVE} {(sealed.mechanisms[phase].rule.blickets & self._present).bit_count()}"
        return ACTIVE if active else INACTIVE


def _copy(action: object) -> Action:
    """Return a refused action for the record; what is not even an object becomes text."""
    return dict(action) if isinstance(action, Mapping) else {"unreadable": short_repr(action)}


# --- The detector's state after each step: the objects on it, in the order of placement, and the reading --------------


def apply_move(placed: tuple[int, ...], verb: str, index: int) -> tuple[int, ...]:
    """Return the objects on the detector after an accepted move (object numbers, first placed first)."""
    return (*placed, index) if verb == "place" else tuple(number for number in placed if number != index)


def readings(task: Task, steps: Iterable[Step[str]]) -> Iterator[tuple[tuple[int, ...], str]]:
    """Yield (what is on the detector, reading) for every step that has a reading, oldest first."""
    for placed, step in steps_with_state(task, steps):
        if step.reading is not None:
            yield placed, step.reading


def placed_after(task: Task, steps: Sequence[Step[str]]) -> tuple[int, ...]:
    """Return the objects on the detector after these steps."""
    placed: tuple[int, ...] = ()
    for placed, _ in steps_with_state(task, steps):  # noqa: B007  # the last one is wanted
        pass
    return placed


def steps_with_state(task: Task, steps: Iterable[Step[str]]) -> Iterator[tuple[tuple[int, ...], Step[str]]]:
    """Yield every step with the objects on the detector after it."""
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
