"""Least squares in rational numbers: weights of readings in hundredths that no library of linear algebra decides."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import sqrt


def fit_rationally(design: Sequence[Sequence[Fraction]], goal: Sequence[Fraction]) -> tuple[list[float], float] | None:
    """Return weights and root mean square residual, each rounded once; None where the design leaves weights open.

    design: [row][column]; solves the normal equations by elimination
    """
    columns = list(zip(*design, strict=True))
    equations = [[_dot(a, b) for b in (*columns, goal)] for a in columns]
    for step in range(len(columns)):
        pivot = next((k for k in range(step, len(columns)) if equations[k][step]), None)
        if pivot is None:
            return None
        equations[step], equations[pivot] = equations[pivot], equations[step]
        head = equations[step]
        for k, row in enumerate(equations):
            if k != step and row[step]:
                factor = row[step] / head[step]
                equations[k] = [entry - factor * leading for entry, leading in zip(row, head, strict=True)]
    weights = [row[-1] / row[step] for step, row in enumerate(equations)]
    residuals = [_dot(row, weights) - value for row, value in zip(design, goal, strict=True)]
    return [float(weight) for weight in weights], sqrt(_dot(residuals, residuals) / len(goal))


def _dot(first: Sequence[Fraction], second: Sequence[Fraction]) -> Fraction:
    return sum((a * b for a, b in zip(first, second, strict=True)), start=Fraction(0))
