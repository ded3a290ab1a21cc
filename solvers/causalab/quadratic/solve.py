"""Quadratic laboratories: two values of every property, then an additive least-squares fit on p and p squared.

A node gets the smallest parent set that explains its readings within rounding, with one free constant for each stretch
over which its base did not change. Square weights have three decimals in all suites, so they are rounded and the
linear weights fitted again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, product

import numpy as np

from calibrant.dsl.causalab.episode import LabEpisode
from calibrant.dsl.causalab.mechanism import FREQUENCY
from calibrant.dsl.errors import CycleError
from calibrant.solvers.causalab.answer import Answer
from calibrant.solvers.causalab.evidence import Evidence, Floats, evidence_of
from calibrant.solvers.causalab.rational_fit import exact_readings, fit_rationally
from calibrant.solvers.causalab.replay import EXACT, mechanism_of, misfit, predict_frequency
from calibrant.solvers.outcome import Found, Impossible, Outcome, OutOfBudget

VALUES = (0.0, 100.0, 45.0)  # two of them are set; a value that the property has already would tell nothing
FURTHER_VALUES = (21.0, 83.0, 62.0, 9.0)  # where that was not enough
MIN_DISTANCE = 20.0  # of a setting from the present value, so that effects exceed rounding
ROUNDING = 0.005  # the true weights leave no larger residual, so the fitted ones leave no larger root mean square
REPLAY_TOLERANCE = (
    0.5  # what errors of the fitted weights may add up to along a chain of settings, where values are near 100
)
SQUARE_DECIMALS = 3
MAX_COMBINATIONS = 10_000
IN_WORDS = "quadratic mechanisms with square weights of three decimals"


@dataclass(frozen=True, slots=True)
class Fit:
    """Fit of one node: linear and square weights by parent, base of the frequency, root mean square residual."""

    parents: tuple[int, ...]
    linear: dict[int, float]
    square: dict[int, float]
    base: float
    residual: float


def solve_quadratic(episode: LabEpisode) -> Outcome[Answer]:
    """Find the mechanism from two settings of every property, and more if those do not suffice."""
    task = episode.task
    for name in task.settable:
        at = evidence_of(task, episode.steps).observations[-1].values[task.properties.index(name)]
        for value in [value for value in VALUES if abs(value - at) >= MIN_DISTANCE][:2]:
            if episode.left <= 0:
                return OutOfBudget(f"{len(episode.steps)} settings made; two of every property are needed")
            episode.act({"set": name, "value": value})
    outcome = solve_from_fits(evidence_of(task, episode.steps))
    for value, name in product(
        FURTHER_VALUES, task.settable
    ):  # two values may coincide, or say too little about a chain
        if isinstance(outcome, Found) or episode.left <= 0:
            break
        episode.act({"set": name, "value": value})
        outcome = solve_from_fits(evidence_of(task, episode.steps))
    return outcome


def solve_from_fits(evidence: Evidence) -> Outcome[Answer]:
    """Combine the smallest parent sets to a mechanism that the reference replays."""
    options = [smallest_fits(evidence, node) for node in range(len(evidence.nodes))]
    if any(not candidates for candidates in options):
        return Impossible(f"{IN_WORDS}: a node has no parents that explain it within rounding")
    num_trials = 0
    for chosen in product(*options):
        num_trials += 1
        if num_trials > MAX_COMBINATIONS:
            return OutOfBudget(f"{MAX_COMBINATIONS} combinations of equally small parent sets")
        linear, square = [f.linear for f in chosen], [f.square for f in chosen]
        try:
            mechanism = mechanism_of(evidence.nodes, linear, chosen[-1].base, square)
        except CycleError:
            continue
        # errors of weights grow with the values: the tolerance is for values near 100
        largest = max(1.0, float(np.abs(evidence.table).max()) / 100)
        if misfit(mechanism, evidence, reading=evidence.task.reading, shifts=()) <= REPLAY_TOLERANCE * largest:
            unique = all(len(candidates) == 1 for candidates in options)
            return Found(Answer(mechanism, predict_frequency(mechanism, evidence), unique, IN_WORDS))
    return Impossible(f"{IN_WORDS}: no acyclic choice of the smallest parent sets gives all readings")


def smallest_fits(evidence: Evidence, node: int) -> list[Fit]:
    """Return the fits with the fewest parents, closest first."""
    stretches = [s for s in evidence.stretches(node) if len(s) > 1]
    possible_parents = [p for p in range(len(evidence.nodes)) if p != node]
    if not evidence.task.freq_parent:
        possible_parents = [p for p in possible_parents if p != evidence.frequency]
    for size in range(int(node == evidence.frequency), len(possible_parents) + 1):
        fits = (fit_node(evidence, node, parents, stretches) for parents in combinations(possible_parents, size))
        close = [fit for fit in fits if fit is not None and fit.residual <= ROUNDING + EXACT]
        if close:
            return sorted(close, key=lambda fit: (fit.residual, fit.parents))
    return []


def fit_node(evidence: Evidence, node: int, parents: tuple[int, ...], stretches: list[list[int]]) -> Fit | None:
    """Fit by least squares; None where readings do not determine the weights, or a square weight rounds to 0."""
    if not stretches:
        return Fit((), {}, {}, 0.0, 0.0) if not parents else None
    rows = [i for stretch in stretches for i in stretch]
    stretch_numbers = np.repeat(np.arange(len(stretches)), [len(s) for s in stretches])
    constants = (stretch_numbers[:, None] == np.arange(len(stretches))).astype(float)
    columns = evidence.table[np.ix_(rows, parents)]
    goal = evidence.table[rows, node]
    design = np.hstack([columns**2, columns, constants])
    weights, residual = _least_squares(design, goal)
    if weights is None or residual > ROUNDING + EXACT:
        return None
    n = len(parents)
    squares = np.round(weights[:n], SQUARE_DECIMALS)
    if n and not squares.all():
        return None
    # squares are exact after rounding; errors of the first fit that they had passed on to linear weights go
    square = dict(zip(parents, map(float, squares), strict=True))
    refitted = _fit_linear_weights(columns, constants, goal, square.values())
    if refitted is None:
        return None
    linear, residual = refitted
    base = linear[n] if evidence.nodes[node] == FREQUENCY else 0.0
    return Fit(parents, dict(zip(parents, linear[:n], strict=True)), square, base, residual)


def _fit_linear_weights(
    columns: Floats, constants: Floats, goal: Floats, squares: Iterable[float]
) -> tuple[list[float], float] | None:
    """Return linear weights and constants, and the residual, exact but for one rounding each."""
    readings = list(map(exact_readings, columns.tolist()))
    exact_squares = [Fraction(round(weight * 10**SQUARE_DECIMALS), 10**SQUARE_DECIMALS) for weight in squares]
    goals = [
        value - sum(weight * reading * reading for weight, reading in zip(exact_squares, row, strict=True))
        for value, row in zip(exact_readings(goal.tolist()), readings, strict=True)
    ]
    stretches = [list(map(Fraction, row)) for row in constants.astype(int).tolist()]
    return fit_rationally([[*row, *stretch] for row, stretch in zip(readings, stretches, strict=True)], goals)


def _least_squares(design: Floats, goal: Floats) -> tuple[Floats | None, float]:
    """Return weights and root mean square residual; no weights where the design does not determine them."""
    # squares reach 1e4 and more: scaled columns make the rank decision meaningful
    scale = np.abs(design).max(axis=0)
    if not scale.all():
        return None, np.inf
    weights, _, rank, _ = np.linalg.lstsq(design / scale, goal, rcond=1e-10)
    if rank < design.shape[1]:
        return None, np.inf
    weights = weights / scale
    return weights, float(np.sqrt(np.mean((design @ weights - goal) ** 2)))
