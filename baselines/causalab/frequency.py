"""The frequency's equation from what is shown before any setting, which is free of noise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import isnan
from typing import Any

import numpy as np

from calibrant.dsl.causalab.item import Task
from calibrant.dsl.causalab.mechanism import FREQUENCY
from calibrant.solvers.budget import BudgetSpent
from calibrant.solvers.causalab.evidence import Evidence, evidence_of
from calibrant.solvers.causalab.quadratic import exact_reading, exact_readings, least_norm_fit
from calibrant.solvers.causalab.space import WeightedDags, frequency_equation, weighted_dags

DISPLAY = 0.01  # weights below what is displayed count as 0


@dataclass(frozen=True, slots=True)
class Regression:
    """F = base + sum of weights * properties, and what it predicts for the reactor crystal."""

    weights: Mapping[str, float]
    base: float
    predicted: float

    @property
    def hypothesis(self) -> dict[str, Any]:
        """The hypothesis that states this equation and no edge between properties."""
        names = sorted(self.weights)
        return {
            "edges": [{"from": name, "to": FREQUENCY} for name in names],
            "freq_equation": " + ".join([f"{FREQUENCY} = base", *(f"c_{name}*{name}" for name in names)]),
            "coefficients": {"base": self.base} | {f"c_{name}": self.weights[name] for name in names},
            "weights": [{"from": n, "to": FREQUENCY, "power": 1, "value": self.weights[n]} for n in names],
        }


def before_settings(task: Task) -> Evidence:
    """Return the evidence at the start; no noise was on it, whatever comes later."""
    return evidence_of(replace(task, noise=False))


def space_before_settings(task: Task) -> WeightedDags | None:
    """Return the version space at the start for bases in the generator's range; None where it is not enumerated."""
    try:
        space = weighted_dags(before_settings(task), bounded=True)
    except BudgetSpent:
        return None
    return space if space.count else None


def decided_equation(task: Task) -> Regression | None:
    """Return the equation whose prediction most members share; None where there is no such space."""
    space = space_before_settings(task)
    if space is None:
        return None
    try:
        row = frequency_equation(space)
    except BudgetSpent:
        return None
    return _regression(space.evidence, row.astype(float))


def least_norm_equation(task: Task) -> Regression:
    """Fit the least-norm linear equation that explains the records and the starting crystal."""
    evidence = before_settings(task)
    properties = list(map(exact_readings, evidence.table[:, :-1].tolist()))
    *solution, base = least_norm_fit(
        [[*row, Fraction(1)] for row in properties], exact_readings(evidence.table[:, -1].tolist())
    )
    seen_values = [value for row in properties for value in row]
    mean = sum(seen_values, start=Fraction(0)) / len(seen_values)
    crystal = [mean if isnan(value) else exact_reading(value) for value in evidence.reactor[:-1].tolist()]
    predicted = sum((weight * value for weight, value in zip(solution, crystal, strict=True)), start=base)
    displayed = ((node, float(weight)) for node, weight in zip(evidence.nodes, solution, strict=False))
    weights = {node: weight for node, weight in displayed if abs(weight) > DISPLAY}
    return Regression(weights, float(base), float(predicted))


def _regression(evidence: Evidence, row: np.ndarray[Any, np.dtype[np.float64]]) -> Regression:
    first = evidence.table[0]
    base = float(np.round(first[-1] - first @ row, 2))
    crystal = np.nan_to_num(evidence.reactor[:-1], nan=50.0)  # a middling value for what is not shown
    weights = {evidence.nodes[i]: float(row[i]) for i in np.flatnonzero(row)}
    return Regression(weights, base, float(np.round(base + crystal @ row[:-1], 2)))
