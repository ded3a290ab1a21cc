"""A target that is a function of some columns, flipped with an unknown rate: exact posteriors over functions and rates.

For a set S of columns, the probability of the rows summed over all functions of S is a product over patterns: a pattern
with a rows of 0 and b rows of 1 contributes r**b (1-r)**a (the function is 0 there) plus r**a (1-r)**b. Functions that
depend on exactly S follow by Moebius inversion over the subsets. Nothing is enumerated but for the best functions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import comb
from typing import Literal, TypeAlias

import numpy as np

from calibrant.solvers.formulas.fronts import Patterns, functions_of, supports
from calibrant.solvers.formulas.least_formulas import NUM_VARS

Prior: TypeAlias = Literal["uniform", "by_parents"]
Columns: TypeAlias = tuple[int, ...]
MAX_PREDICTED = 6  # columns of which every pattern is predicted


def num_functions(number: int) -> int:
    """Return how many functions depend on all of so many columns: 2, 2, 10, 218, 64594, ..."""
    return sum((-1) ** (number - k) * comb(number, k) * 2 ** (2**k) for k in range(number + 1))


@dataclass(frozen=True)
class RatePosterior:
    """Posteriors, as exact fractions.

    num_functions: of the class; evidence: probability of the rows; rates: of each rate
    parents: of each set of columns on which the function depends exactly; arcs: of each column
    best: the most probable functions, each by its columns and truth table over these; best_posterior: of each of them
    predictions: pattern -> probability of target 1, flips included
    """

    num_functions: int
    evidence: Fraction
    rates: Mapping[Fraction, Fraction]
    parents: Mapping[Columns, Fraction]
    arcs: tuple[Fraction, ...]
    best: tuple[tuple[Columns, int], ...]
    best_posterior: Fraction
    predictions: Mapping[tuple[int, ...], Fraction]


def posterior_of_rates(
    patterns: Patterns, max_parents: int, rates: Sequence[tuple[Fraction, Fraction]], prior: Prior
) -> RatePosterior:
    """Return the posteriors. rates: with their prior; `ValueError` if the rows are impossible under all of them."""
    number = patterns.num_columns
    sets = [s for k in range(min(max_parents, number) + 1) for s in combinations(range(number), k)]
    sizes = {s: num_functions(len(s)) for s in sets}
    total = sum(sizes.values())
    weights = {s: Fraction(1, total if prior == "uniform" else comb(number, len(s)) * sizes[s]) for s in sets}
    scale = sum((weights[s] * sizes[s] for s in sets), Fraction(0))
    weights = {s: weight / scale for s, weight in weights.items()}
    mass = {(s, rate): p * _sum_of_functions(patterns, s, rate, None) for s in sets for rate, p in rates}
    exact = _exactly(mass, sets, [rate for rate, _ in rates])
    joint = {(s, rate): weights[s] * exact[s, rate] for s in sets for rate, _ in rates}
    evidence = sum(joint.values(), Fraction(0))
    if not evidence:
        raise ValueError("the rows are impossible under every rate and function of the class")
    of_rate = {rate: sum(joint[s, rate] for s in sets) / evidence for rate, _ in rates}
    of_parents = {s: sum((joint[s, rate] for rate, _ in rates), Fraction(0)) / evidence for s in sets}
    arcs = tuple(sum((p for s, p in of_parents.items() if v in s), Fraction(0)) for v in range(number))
    best, best_weight = _most_probable(patterns, sets, weights, rates)
    predictions = {}
    if number <= MAX_PREDICTED:
        for row in range(1 << number):
            pattern = tuple(row >> k & 1 for k in range(number))
            predictions[pattern] = _predict(patterns, sets, weights, rates, pattern, joint) / evidence
    return RatePosterior(total, evidence, of_rate, of_parents, arcs, best, best_weight / evidence, predictions)


def _sum_of_functions(patterns: Patterns, s: Columns, rate: Fraction, one_at: int | None) -> Fraction:
    """Return the probability of the rows, summed over all functions of s; one_at: a pattern in which they are 1."""
    cubes, zeros, ones = patterns.merge(s)
    result = Fraction(1)
    positions = {_row_of(cube, len(s)): place for place, cube in enumerate(cubes.tolist())}
    for row, place in positions.items():
        low, high = int(zeros[place]), int(ones[place])
        is_one = rate**low * (1 - rate) ** high
        result *= is_one + (0 if row == one_at else rate**high * (1 - rate) ** low)
    unseen = (1 << len(s)) - len(positions) - (one_at is not None and one_at not in positions)
    return result * Fraction(2) ** int(unseen)


def _row_of(cube: int, number: int) -> int:
    """Return the row of a cube without gaps, base 3 to base 2."""
    row = 0
    for column in range(number):
        cube, digit = divmod(cube, 3)
        row |= digit << column
    return row


def _exactly(
    mass: Mapping[tuple[Columns, Fraction], Fraction], sets: Sequence[Columns], rates: Sequence[Fraction]
) -> dict[tuple[Columns, Fraction], Fraction]:
    """Return the sums over functions that depend on exactly each set."""
    exact: dict[tuple[Columns, Fraction], Fraction] = {}
    for s in sets:
        for rate in rates:
            smaller = (t for k in range(len(s)) for t in combinations(s, k))
            exact[s, rate] = mass[s, rate] - sum((exact[t, rate] for t in smaller), Fraction(0))
    return exact


def _predict(
    patterns: Patterns,
    sets: Sequence[Columns],
    weights: Mapping[Columns, Fraction],
    rates: Sequence[tuple[Fraction, Fraction]],
    pattern: tuple[int, ...],
    joint: Mapping[tuple[Columns, Fraction], Fraction],
) -> Fraction:
    """Return the joint probability of the rows and of target 1 in a further row of this pattern."""
    ones = {}
    for s in sets:
        row = sum(pattern[column] << place for place, column in enumerate(s))
        for rate, p in rates:
            ones[s, rate] = p * _sum_of_functions(patterns, s, rate, row)
    exact = _exactly(ones, sets, [rate for rate, _ in rates])
    total = Fraction(0)
    for s in sets:
        for rate, _ in rates:
            is_one = weights[s] * exact[s, rate]
            total += is_one * (1 - rate) + (joint[s, rate] - is_one) * rate
    return total


def _most_probable(
    patterns: Patterns, sets: Sequence[Columns], weights: Mapping[Columns, Fraction],
    rates: Sequence[tuple[Fraction, Fraction]],
) -> tuple[tuple[tuple[Columns, int], ...], Fraction]:  # fmt: skip
    """Return the functions of highest joint probability, and that; of up to four columns."""
    num_rows = int(patterns.zeros.sum() + patterns.ones.sum())
    likelihood = [
        sum((p * rate**e * (1 - rate) ** (num_rows - e) for rate, p in rates), Fraction(0)) for e in range(num_rows + 1)
    ]
    best: list[tuple[Columns, int]] = []
    highest = Fraction(-1)
    for s in sets:
        if len(s) > NUM_VARS:
            continue
        functions = functions_of("all", len(s))
        full = supports(len(s))[functions.words.astype(np.int64)] == (1 << len(s)) - 1
        errors = functions.count_errors(patterns.merge(s), "sure")[full]
        words = functions.words[full]
        for e in np.unique(errors).tolist():
            joint = weights[s] * likelihood[e]
            if joint > highest:
                best, highest = [], joint
            if joint == highest:
                best += [(s, int(word)) for word in words[errors == e]]
    return tuple(best), highest
