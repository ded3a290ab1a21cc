"""Least squares in rational numbers: weights of readings in hundredths that no library of linear algebra decides."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import sqrt
from typing import TypeAlias

Row: TypeAlias = Sequence[Fraction]


def exact_reading(value: float) -> Fraction:
    """Return a reading, which has two decimals, as it was before it became a float."""
    return Fraction(round(value * 100), 100)


def exact_readings(values: Iterable[float]) -> list[Fraction]:
    """Return readings as they were before they became floats."""
    return list(map(exact_reading, values))


def fit_rationally(design: Sequence[Row], goal: Row) -> tuple[list[float], float] | None:
    """Return weights and root mean square residual, each rounded once; None where the design leaves weights open.

    design: [row][column]
    """
    columns = list(zip(*design, strict=True))
    weights, rank = _solve([[_dot(a, b) for b in columns] for a in columns], [_dot(column, goal) for column in columns])
    if rank < len(columns):
        return None
    residuals = [_dot(row, weights) - value for row, value in zip(design, goal, strict=True)]
    return [float(weight) for weight in weights], sqrt(_dot(residuals, residuals) / len(goal))


def least_norm_fit(design: Sequence[Row], goal: Row) -> list[Fraction]:
    """Return the shortest vector of weights of all least squares: D'y with D'D D'y = D'g."""
    columns = list(zip(*design, strict=True))
    products = [[_dot(first, second) for second in design] for first in design]
    matrix = [[_dot(column, product) for product in zip(*products, strict=True)] for column in columns]
    combination, _ = _solve(matrix, [_dot(column, goal) for column in columns])
    return [_dot(column, combination) for column in columns]


def _solve(matrix: Sequence[Row], goal: Row) -> tuple[list[Fraction], int]:
    """Return a solution of equations that have one, unknowns that they leave open 0, and their rank."""
    equations = [[*row, value] for row, value in zip(matrix, goal, strict=True)]
    solution = [Fraction(0)] * len(matrix[0])
    pivots: list[int] = []
    for column in range(len(solution)):
        rank = len(pivots)
        place = next((k for k in range(rank, len(equations)) if equations[k][column]), None)
        if place is None:
            continue
        equations[rank], equations[place] = equations[place], equations[rank]
        head = equations[rank] = [entry / equations[rank][column] for entry in equations[rank]]
        for k, row in enumerate(equations):
            if k != rank and row[column]:
                equations[k] = [entry - row[column] * leading for entry, leading in zip(row, head, strict=True)]
        pivots.append(column)
    for row, column in zip(equations, pivots, strict=False):
        solution[column] = row[-1]
    return solution, len(pivots)


def _dot(first: Row, second: Row) -> Fraction:
    return sum((a * b for a, b in zip(first, second, strict=True)), start=Fraction(0))
