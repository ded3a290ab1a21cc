"""Episodes of the laboratory, and scores of a run by its dial, settings and hypothesis.

Actions: {"set": property, "value": v}, {"reactor": f}, {"submit": {"hypothesis": {...}}}; each may have a key
"hypothesis" with the agent's current one. The reading of a setting is the values of all nodes, that of the reactor its
dial and whether it is activated.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

from calibrant.dsl.causalab.item import LabItem, Task, by_name
from calibrant.dsl.causalab.mechanism import (
    EMPTY,
    FREQUENCY,
    Edge,
    Hypothesis,
    NoiseStream,
    Reactor,
    Values,
    accurate,
    as_number,
    hypothesis,
    stated_edges,
)
from calibrant.dsl.causalab.reference import NO_SHIFT, UnboundedError, bases_after, values
from calibrant.dsl.causalab.score import HypothesisScore, Scorer, imec_size
from calibrant.dsl.episode import Action, ActionError, Step, verb_of
from calibrant.dsl.errors import short_repr

# --- Episode: settings of the manipulator crystal, the reactor's dial, a hypothesis at the end
LabReading: TypeAlias = Mapping[str, Any]
LabStep: TypeAlias = Step[LabReading]

VERBS: Mapping[str, frozenset[str]] = {"set": frozenset({"value"}), "reactor": frozenset(), "submit": frozenset()}
HYPOTHESIS = "hypothesis"


class UnknownSetting(StrEnum):
    """The treatment of a setting of the frequency or of an unknown name."""

    REFUSED = "refused"
    COUNTED = "counted"  # released code: it costs a setting and sets nothing, and hidden noise is drawn anew


class LabEpisode:
    """One run of an item; sealed parts are private attributes."""

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
        """Remaining settings, 0 after a try of the reactor; a submission needs none."""
        return 0 if self._locked or self._closed else self._task.allowance - self._used

    @property
    def closed(self) -> bool:
        """Return whether a submission was accepted."""
        return self._closed

    def act(self, action: Action) -> LabStep:
        """Carry out an action, or refuse one that is malformed or not allowed, without a change or a cost."""
        try:
            step = self._answer_action(action)
        except (ActionError, UnboundedError) as error:
            untyped_action: object = action  # may be no object at all; such an action is not recorded
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
            values(self._mechanism, bases)  # raises for a value that is not finite, before noise is drawn
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
    """Return a number of an action as a finite float; `ActionError` for anything else, booleans included."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if math.isfinite(number):
            return number + 0.0  # -0.0 is 0
    raise ActionError(f"{short_repr(value)} is not a finite number")


# --- Agreement of a hypothesis with the noiseless data of its run: records, manipulator crystal, settings
TOLERANCE = 0.01  # largest error of an equation that agrees with a reading, which has two decimals
_ROUNDING = 1e-9  # rounding errors of sums of floats


class OwnFit(NamedTuple):
    """Agreement of a frequency equation with readings.

    share: share of the readings that it reproduces within TOLERANCE; 0 without an equation
    error: mean absolute error; None without an equation, or if it exceeds the range of floats
    """

    share: float
    error: float | None


def own_readings(task: Task, steps: Iterable[LabStep]) -> Iterator[Values]:
    """Yield the values of all nodes for each noiseless observation of a run: records, trace, baseline, settings."""
    yield from task.records
    yield from (entry.values for entry in task.trace)
    yield task.baseline
    if not task.noise:  # only settings cost; the reactor's readings have no values of nodes
        yield from (step.reading for step in steps if step.cost and step.reading is not None)


def own_fit(hypothesis: Hypothesis, task: Task, steps: Iterable[LabStep]) -> OwnFit:
    """Return how the frequency equation of a hypothesis (base, c_p, c2_p) agrees with the data of its run."""
    errors = [error for _, error in _errors(hypothesis, own_readings(task, steps), task)]
    if not errors:
        return OwnFit(0.0, None)
    mean = _sum(errors) / len(errors)
    share = sum(map(_is_small, errors)) / len(errors)
    return OwnFit(share, mean if math.isfinite(mean) else None)


def missed_readings(hypothesis: Hypothesis, task: Task, steps: Iterable[LabStep]) -> list[Values]:
    """Return the readings of a run that the equation misses by more than TOLERANCE; all without an equation."""
    readings = list(own_readings(task, steps))
    errors = list(_errors(hypothesis, readings, task))
    return [reading for reading, error in errors if not _is_small(error)] if errors else readings


def _is_small(error: float) -> bool:
    return error <= TOLERANCE + _ROUNDING


def _errors(hypothesis: Hypothesis, readings: Iterable[Values], task: Task) -> Iterator[tuple[Values, float]]:
    """Yield each reading with the absolute error of the equation; nothing without an equation."""
    base = as_number(hypothesis.coefficients.get("base"))
    if base is None:
        return
    weights = {
        node: (_weight(hypothesis, "c", node), _weight(hypothesis, "c2", node))
        for node in task.properties
        if f"c_{node}" in hypothesis.coefficients or f"c2_{node}" in hypothesis.coefficients
    }
    for reading in readings:
        values = [(reading[node], *weight) for node, weight in weights.items()]
        parts = [part for value, linear, square in values for part in (linear * value, square * value * value)]
        yield reading, abs(_sum([base, -reading[FREQUENCY], *parts]))


def _sum(values: Sequence[float]) -> float:
    """Return the exactly rounded sum, so that order does not matter; infinite beyond the range of floats."""
    try:
        return math.fsum(values)
    except (OverflowError, ValueError):  # too large, or infinities of both signs
        return math.inf


def _weight(hypothesis: Hypothesis, prefix: str, node: str) -> float:
    return as_number(hypothesis.coefficients.get(f"{prefix}_{node}")) or 0.0


# --- Score of a run: dialled frequency, settings, and the last hypothesis ---------------------------------------------
MAX_IMEC_NODES = 8  # members of an equivalence class are enumerated; up to factorially many in the nodes


@dataclass(frozen=True, slots=True)
class RunScore:
    """Score of a run.

    accurate: whether the last dialled frequency, before the dial rounds or clips it, is within 5 of the target
    activated: whether the last answered try left the reactor activated, the published accuracy ("exact prediction");
        a later miss deactivates the reactor, and so does the last allowed try; refused tries change nothing
    opened: whether any try activated it
    frequency: the last dialled; None if none was
    settings: number carried out; refused: number of refused actions
    imec: size of the truth's interventional Markov equivalence class under the set properties (Table 8); None above
        MAX_IMEC_NODES nodes
    records, allowance: of the item (Tables 9 to 12)
    own_fit: agreement of the last equation with the data of the run
    """

    hypothesis: HypothesisScore
    accurate: bool
    activated: bool
    opened: bool
    frequency: float | None
    settings: int
    refused: int
    submitted: bool
    imec: int | None
    records: int
    allowance: int
    own_fit: OwnFit

    def flat(self) -> dict[str, float]:
        """Return the figures by the names under which tables average them."""
        return {
            "accuracy": float(self.accurate),
            "activated": float(self.activated),
            "opened": float(self.opened),
            "settings": self.settings,
            "refused": self.refused,
            "submitted": float(self.submitted),
        } | self.hypothesis.flat()

    def as_json(self) -> dict[str, Any]:
        """Return the record's fields: figures under their flat names, and the two verdicts that attributions use.

        correct: the frequency is within 5; graph_correct: no edge is wrong or missing
        """
        verdicts = {"correct": self.accurate, "graph_correct": self.hypothesis.distance.shd == 0}
        return verdicts | {"frequency": self.frequency} | self.flat() | self._about_data()

    def _about_data(self) -> dict[str, Any]:
        return {
            "imec": self.imec,
            "records": self.records,
            "allowance": self.allowance,
            "own_fit": self.own_fit.share,
            "own_error": self.own_fit.error,
        }


def run_score(item: LabItem, steps: Iterable[LabStep]) -> RunScore:
    """Return the score of a run whose steps a replay has confirmed (`dsl.episode.replay_transcript`)."""
    steps = tuple(steps)
    tries: list[bool] = []
    settings = refused = 0
    submitted = False
    for step in steps:
        settings += step.cost
        refused += bool(step.refused)
        if step.refused:
            continue
        if "reactor" in step.action and step.reading is not None:
            tries.append(bool(step.reading["activated"]))
        submitted |= "submit" in step.action
    frequency = last_dialled_frequency(steps)
    is_accurate = frequency is not None and accurate(frequency, item.sealed.target)
    final = last_hypothesis(steps)
    score = Scorer(item.sealed.mechanism).score(final)
    imec = final_imec(item, steps) if len(item.task.nodes) <= MAX_IMEC_NODES else None
    activated, opened = tries[-1:] == [True], any(tries)
    return RunScore(
        score,
        is_accurate,
        activated,
        opened,
        frequency,
        settings,
        refused,
        submitted,
        imec,
        len(item.task.records),
        item.task.allowance,
        own_fit(final, item.task, steps),
    )


def final_imec(item: LabItem, steps: Iterable[LabStep]) -> int:
    """Return the size of the truth's interventional Markov equivalence class under the set properties (Table 8)."""
    targets = {str(step.action["set"]) for step in steps if "set" in step.action and not step.refused}
    return _imec(item.sealed.mechanism.edges, frozenset(targets))


@lru_cache(maxsize=4096)
def _imec(edges: frozenset[Edge], targets: frozenset[str]) -> int:
    return imec_size(edges, targets)


def last_hypothesis(steps: Sequence[LabStep]) -> Hypothesis:
    """Return the last hypothesis that an action of the run carries; EMPTY without one."""
    raw = last_raw(steps)
    return EMPTY if raw is None else hypothesis(raw)


def last_edges(steps: Sequence[LabStep]) -> frozenset[Edge]:
    """Return the edges of `last_hypothesis` alone, which takes less time than parsing its weights."""
    raw = last_raw(steps)
    return EMPTY.edges if raw is None else stated_edges(raw)


def last_raw(steps: Sequence[LabStep]) -> Mapping[str, Any] | None:
    """Return the last hypothesis as its action states it, not parsed; None without one."""
    return next((raw for step in reversed(steps) if (raw := stated_raw(step)) is not None), None)


def stated_with(step: LabStep) -> Hypothesis | None:
    """Return the hypothesis that an action carries; None without one, in which case the one before is current."""
    raw = stated_raw(step)
    return None if raw is None else hypothesis(raw)


def stated_raw(step: LabStep) -> Mapping[str, Any] | None:
    """Return the submitted object unparsed."""
    submitted = step.action.get("submit")
    raw = submitted.get(HYPOTHESIS) if isinstance(submitted, Mapping) else step.action.get(HYPOTHESIS)
    return raw if isinstance(raw, Mapping) else None


def last_dialled_frequency(steps: Iterable[LabStep]) -> float | None:
    """Return the last frequency that was dialled and answered; None without one."""
    frequencies = [step.action["reactor"] for step in steps if "reactor" in step.action and not step.refused]
    return float(frequencies[-1]) + 0.0 if frequencies else None
