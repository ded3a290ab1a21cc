"""The laboratory as an episode: settings of the manipulator crystal, the reactor's dial, a hypothesis at the end.

Actions: {"set": property, "value": v}, {"reactor": f}, {"submit": {"hypothesis": {...}}}; each may carry a
"hypothesis" of the moment. A setting reads the values of all nodes, the reactor its dial and whether it is activated.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, TypeAlias

from calibrant.dsl.causalab.item import LabItem, Task, by_name
from calibrant.dsl.causalab.mechanism import NoiseStream, Reactor
from calibrant.dsl.causalab.reference import NO_SHIFT, UnboundedError, bases_after, values
from calibrant.dsl.episode import Action, ActionError, Step, verb_of
from calibrant.dsl.errors import short_repr

LabReading: TypeAlias = Mapping[str, Any]
LabStep: TypeAlias = Step[LabReading]

VERBS: Mapping[str, frozenset[str]] = {"set": frozenset({"value"}), "reactor": frozenset(), "submit": frozenset()}
HYPOTHESIS = "hypothesis"


class UnknownSetting(StrEnum):
    """The treatment of a setting of the frequency or of an unknown name."""

    REFUSED = "refused"
    COUNTED = "counted"  # released code: it costs a setting and sets nothing, and hidden noise is drawn anew


class LabEpisode:
    """One run of an item. Everything sealed is private; solvers and baselines read the public part only."""

    def __init__(self, item: LabItem, unknown: UnknownSetting = UnknownSetting.REFUSED) -> None:
        self._task = item.task
        self._mechanism = item.sealed.mechanism
        self._bases: Mapping[str, float] = dict(item.sealed.bases.manipulator)
        self._noise = NoiseStream(item.sealed.noise) if item.sealed.noise is not None else None
        self._reactor = Reactor(item.sealed.target, item.task.tries)
        self._unknown = unknown
        self._steps: list[LabStep] = []
        self._used = 0
        self._locked = False
        self._closed = False

    @property
    def task(self) -> Task:
        return self._task

    @property
    def steps(self) -> Sequence[LabStep]:
        return self._steps

    @property
    def left(self) -> int:
        """Settings that are left: none once the reactor has been tried. A submission is possible without any."""
        return 0 if self._locked or self._closed else self._task.allowance - self._used

    @property
    def closed(self) -> bool:
        """Return whether a submission was accepted."""
        return self._closed

    def act(self, action: Action) -> LabStep:
        """Carry out an action; what cannot be meant or is not allowed is refused, changes nothing and costs nothing."""
        try:
            step = self._answer_action(action)
        except (ActionError, UnboundedError) as error:
            untyped_action: object = action  # whatever it is; one that is no object is not recorded
            step = Step(action if isinstance(untyped_action, Mapping) else {}, None, str(error))
        self._steps.append(step)
        return step

    def _answer_action(self, action: Action) -> LabStep:
        request = _without_hypothesis(action)
        verb = verb_of(request, VERBS)
        if self._closed:
            raise ActionError("the run has been submitted")
        if verb == "submit":
            if not isinstance(request["submit"], Mapping):
                raise ActionError(f"'submit' takes an object, found {short_repr(request['submit'])}")
            self._closed = True
            return Step(action, None)
        if verb == "reactor":
            return self._dial(action, finite(request["reactor"]))
        return self._set(action, request["set"], finite(request["value"]))

    def _dial(self, action: Action, frequency: float) -> LabStep:
        reactor = self._reactor.dial_frequency(frequency)
        if reactor.refused:
            raise ActionError(f"all {self._task.tries} tries of the reactor are used")
        self._reactor = reactor
        self._locked = True
        return Step(action, {"activated": reactor.activated, "dial": reactor.dial})

    def _set(self, action: Action, name: object, value: float) -> LabStep:
        if self._locked:
            raise ActionError("the reactor has been tried; nothing can be set any more")
        if self._used >= self._task.allowance:
            raise ActionError(f"the allowance of {self._task.allowance} settings is spent")
        bases = self._bases
        if isinstance(name, str) and name in self._task.settable:
            bases = bases_after(self._mechanism, bases, name, value, self._task.reading)
            values(self._mechanism, bases)  # refused before noise is drawn if a value is not finite
        elif self._unknown is UnknownSetting.REFUSED or name in self._task.properties:
            raise ActionError(f"{short_repr(name)} cannot be set; what can be is {', '.join(self._task.settable)}")
        shifts = self._noise.shifts() if self._noise is not None else NO_SHIFT
        reading = values(self._mechanism, bases, shifts)
        self._bases = bases
        self._used += 1
        return Step(action, by_name(reading), "", 1)


def _without_hypothesis(action: object) -> Any:
    """Return the action without its hypothesis; `verb_of` refuses anything that is no object."""
    return {key: value for key, value in action.items() if key != HYPOTHESIS} if isinstance(action, Mapping) else action


def finite(value: object) -> float:
    """Return a finite number of an action; `ActionError` for anything else, truth values too."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if math.isfinite(number):
            return number + 0.0  # -0.0 is 0
    raise ActionError(f"{short_repr(value)} is not a finite number")
