"""A hypothesis beside the data of its own run: records, the manipulator crystal as it is, settings without noise."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from calibrant.dsl.causalab.episode import LabStep
from calibrant.dsl.causalab.hypothesis import Hypothesis, number
from calibrant.dsl.causalab.item import Task
from calibrant.dsl.causalab.mechanism import FREQUENCY, Values

WITHIN = 0.01
_ROUNDING = 1e-9  # readings have two decimals, sums of floats have not


class OwnFit(NamedTuple):
    """Agreement of a frequency equation with readings.

    share: of the readings that it gives within WITHIN; 0 without an equation
    error: mean absolute error; None without an equation, and beyond the range of floats
    """

    share: float
    error: float | None


def own_readings(task: Task, steps: Iterable[LabStep]) -> Iterator[Values]:
    """Yield all values of nodes that a run has seen without noise."""
    yield from task.records
    yield from (entry.values for entry in task.trace)
    yield task.baseline
    if not task.noise:
        yield from (step.reading for step in steps if step.cost and step.reading is not None)


def own_fit(hypothesis: Hypothesis, task: Task, steps: Iterable[LabStep]) -> OwnFit:
    """Return how base, weights c_p and squares c2_p of a hypothesis agree with the data of its run."""
    errors = [error for _, error in _errors(hypothesis, own_readings(task, steps), task)]
    if not errors:
        return OwnFit(0.0, None)
    mean = _sum(errors) / len(errors)
    share = sum(map(_is_small, errors)) / len(errors)
    return OwnFit(share, mean if math.isfinite(mean) else None)


def missed_readings(hypothesis: Hypothesis, task: Task, steps: Iterable[LabStep]) -> list[Values]:
    """Return the data of a run that the equation does not give, all of them without an equation."""
    readings = list(own_readings(task, steps))
    errors = list(_errors(hypothesis, readings, task))
    return [reading for reading, error in errors if not _is_small(error)] if errors else readings


def _is_small(error: float) -> bool:
    return error <= WITHIN + _ROUNDING


def _errors(hypothesis: Hypothesis, readings: Iterable[Values], task: Task) -> Iterator[tuple[Values, float]]:
    """Yield each reading with the absolute error of the equation; nothing without one."""
    base = number(hypothesis.coefficients.get("base"))
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
    """Return the sum, rounded once: equal for all orders of properties and readings; infinite beyond floats."""
    try:
        return math.fsum(values)
    except (OverflowError, ValueError):  # too large, or infinities of both signs
        return math.inf


def _weight(hypothesis: Hypothesis, prefix: str, node: str) -> float:
    return number(hypothesis.coefficients.get(f"{prefix}_{node}")) or 0.0
