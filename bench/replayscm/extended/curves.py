"""Numbers of the plots of extended items: bits left by world, and how often stated posteriors come true."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import log2
from statistics import fmean, stdev
from typing import Any

from calibrant.audits.replayscm.extended.items import CalibrationBin, calibration_bins
from calibrant.bench.answers.names import natural
from calibrant.bench.core.attribution import KEY, POSTERIOR
from calibrant.bench.replayscm.episodes import TOP_TRUE, is_episode
from calibrant.bench.report.rows import Answer
from calibrant.dsl.episode import Step
from calibrant.dsl.replayscm.episode import steps_evidence, task_class
from calibrant.dsl.replayscm.item import Problem
from calibrant.solvers.outcome import BudgetSpent
from calibrant.solvers.replayscm.experiments.shares import posterior_bits
from calibrant.solvers.replayscm.hidden.mass import count_members
from calibrant.solvers.replayscm.noise.posterior import Posterior

# a curve of a noisy episode of 10 variables takes a second, of any other a tenth
MAX_ITEMS, MAX_NOISY_ITEMS = 200, 24  # of a system
NUM_DRAWS = 64  # for an entropy under noise: a standard error of a few tenths of a bit, of means over items less


@dataclass(frozen=True)
class LeftPoint:
    """Mean bits left after so many worlds.

    low, high: two standard errors of the mean over items below and above; the mean where there is one item
    """

    worlds: int
    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class LeftCurve:
    """One system's curve over its items.

    points: from the start on, up to its longest episode; a finished episode keeps its last value
    """

    system: str
    num_items: int
    points: tuple[LeftPoint, ...]


def episode_bits(problem: Problem, steps: Sequence[Step[Any]]) -> list[float]:
    """Return the bits that are left after the start and after every world; `BudgetSpent` if they are not computed.

    Without noise the logarithm of the number of SCMs; under noise the posterior entropy, from drawn members.
    """
    posterior = Posterior(task_class(problem.task))
    is_silent = posterior.scm_class.noise.is_silent
    bits = []
    for number, world in enumerate(steps_evidence(steps)):
        posterior = posterior.condition(world)
        if is_silent:
            bits.append(log2(count_members(posterior)))
        else:
            bits.append(max(0.0, posterior_bits(posterior, f"{problem.id}|{number}", NUM_DRAWS).value))
    return bits


def left_curves(episodes: Iterable[tuple[str, Problem, Sequence[Step[Any]]]]) -> list[LeftCurve]:
    """Return a curve for each system, of its first MAX_ITEMS; episodes whose bits are not computed are left out.

    episodes: system, item and steps of each
    """
    by_system: dict[str, list[list[float]]] = {}
    # rows that only infer have greedy's worlds
    memo: dict[str, tuple[Any, list[float]]] = {}
    for system, problem, steps in episodes:
        if not is_episode(problem):
            continue
        curves = by_system.setdefault(system, [])
        is_silent = task_class(problem.task).noise.is_silent
        if len(curves) >= (MAX_ITEMS if is_silent else MAX_NOISY_ITEMS):
            continue
        worlds = steps_evidence(steps)
        if problem.id not in memo or memo[problem.id][0] != worlds:
            try:
                memo[problem.id] = worlds, episode_bits(problem, steps)
            except BudgetSpent:
                continue
        curves.append(memo[problem.id][1])
    return [_curve(system, by_system[system]) for system in sorted(by_system, key=natural) if by_system[system]]


def _curve(system: str, items: Sequence[Sequence[float]]) -> LeftCurve:
    points = []
    for worlds in range(max(map(len, items))):
        values = [bits[min(worlds, len(bits) - 1)] for bits in items]
        mean = fmean(values)
        error = stdev(values) / len(values) ** 0.5 if len(values) > 1 else 0.0
        points.append(LeftPoint(worlds, mean, max(0.0, mean - 2 * error), mean + 2 * error))
    return LeftCurve(system, len(items), tuple(points))


def posterior_statements(answers: Iterable[Answer]) -> list[tuple[Fraction, bool]]:
    """Return one statement an item: the posterior of its top behaviour, and whether that is gold's.

    Statements of one item are not independent: the first system's by name counts.
    """
    first: dict[tuple[str, str], tuple[str, Mapping[str, Any]]] = {}
    for context, score in answers:
        attribution = score.get(KEY)
        if not isinstance(attribution, Mapping) or attribution.get(TOP_TRUE) is None:
            continue
        key, system = (context.pool_digest, context.instance), context.system
        if key not in first or natural(system) < natural(first[key][0]):
            first[key] = system, attribution
    statements = [attribution for _, attribution in first.values()]
    return [(Fraction(entry[POSTERIOR]).limit_denominator(10**12), entry[TOP_TRUE] is True) for entry in statements]


def answer_bins(answers: Iterable[Answer]) -> list[CalibrationBin]:
    """Return the calibration of the posteriors that answers were attributed with."""
    return calibration_bins(posterior_statements(answers))
