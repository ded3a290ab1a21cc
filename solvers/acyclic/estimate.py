"""An estimate of a sum over acyclic parent choices that has too many terms to be added up, and says that it is one.

Every choice has one first order: next always the least variable whose parents are placed. So the sum goes over orders
and, in an order, a variable takes any of its sets that was not complete before the last larger one was placed: if it
had been, the variable would have come then. Orders are drawn variable by variable and weighed by importance, many at a
time, and drawn again among themselves where their weights have grown apart; their mean is unbiased whatever is expected
of what is left (sequential Monte Carlo: A. Doucet and A. M. Johansen, A tutorial on particle filtering and smoothing:
fifteen years later, 2009). The standard error is that of a mean of independent runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import isqrt, sqrt
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from solvers.acyclic.bounds import good_order
from solvers.acyclic.count import Weights, total
from solvers.acyclic.least_cost import Mask, members_of
from solvers.budget import BudgetSpent

PARTICLES = 2_000  # orders drawn side by side
RUNS = 16
EXACT = "exact"
AHEAD = 0.5  # of the sets that are not complete yet, the share that is expected to be before their variable comes
FEW = 0.5  # of the particles: with fewer of them in effect they are drawn again
CELLS = 1 << 22  # of a matrix of particles by parent sets

F64: TypeAlias = npt.NDArray[np.float64]
I64: TypeAlias = npt.NDArray[np.int64]


class Estimate(NamedTuple):
    """An unbiased estimate of a number; exact if nothing had to be estimated.

    standard_error: of the value; itself estimated, from the spread of runs, so that it may be too small where few
        choices weigh as much as all others
    method: in words
    """

    value: int
    standard_error: int
    method: str

    def __str__(self) -> str:
        return (
            str(self.value) if self.method == EXACT else f"about {_short(self.value)} +- {_short(self.standard_error)}"
        )


def estimate(
    weights: Weights, seeds: np.random.SeedSequence, *, particles: int = PARTICLES, runs: int = RUNS
) -> Estimate:
    """Of `solvers.acyclic.count.total`. The same seeds give the same estimate.

    Components whose terms can be added up are. `BudgetSpent` if every order that was drawn ended where nothing can come
    next.

    particles: orders drawn side by side; runs: how often, independently of each other, at least 2
    """
    whole, square, estimated = 1, Fraction(1), 0
    for component in weights.components():
        try:
            whole *= total(component)
        except BudgetSpent:
            found = _estimated(component, seeds.spawn(1)[0], particles, runs)
            whole, estimated = whole * found.mean, estimated + 1
            square *= 1 + Fraction(found.relative_error) ** 2
    if not estimated:
        return Estimate(whole, 0, EXACT)
    method = f"estimate by sequential Monte Carlo over orders, {runs} runs of {particles} particles"
    return Estimate(whole, round(whole * Fraction(sqrt(square - 1))), method)


def together(parts: Sequence[Estimate]) -> Estimate:
    """Of a sum of numbers that were estimated independently."""
    square = sum(part.standard_error**2 for part in parts)
    method = max(parts, key=lambda part: part.standard_error).method if square else EXACT
    return Estimate(sum(part.value for part in parts), isqrt(square), method)


def _short(number: int) -> str:
    """Three digits and a power of ten, however large."""
    digits = str(number)
    return digits if len(digits) < 7 else f"{digits[0]}.{digits[1:3]}e{len(digits) - 1}"


class _Mean(NamedTuple):
    mean: int
    relative_error: float


def _estimated(weights: Weights, seeds: np.random.SeedSequence, particles: int, runs: int) -> _Mean:
    problem = _Problem(weights)
    logs = np.array([_Run(problem, particles, np.random.PCG64(own)).log_total() for own in seeds.spawn(runs)])
    highest = float(logs.max())
    if highest == -np.inf:
        number = len(weights.endogenous)
        raise BudgetSpent(f"all {runs * particles:,} orders of {number} variables ended where nothing can come next")
    shares = np.exp(logs - highest)
    mean = float(shares.mean())
    relative = float(shares.std(ddof=1)) / mean / sqrt(runs)
    return _Mean(_exponential(highest / np.log(2) + np.log2(mean)), relative)


def _exponential(log2: float) -> int:
    """The whole number next to a power of two with any exponent."""
    exponent = int(log2) - 64
    scaled = Fraction(2.0 ** (log2 - exponent))
    return round(scaled * Fraction(2) ** exponent)


class _Problem:
    """Variables in a good order, which is what "least" and "larger" go by.

    sets: [v][u] the sets of v with u in them, and their weights
    whole: [v] weight of all sets of v; free: of the empty one
    """

    def __init__(self, weights: Weights) -> None:
        place = {v: rank for rank, v in enumerate(good_order(weights))}
        self.num_vars = len(place)
        self.sets: list[list[tuple[I64, F64]]] = [[] for _ in place]
        self.whole, self.free = np.zeros(self.num_vars), np.zeros(self.num_vars)
        for v, own in enumerate(weights.by_positions):
            self._add(place[v], own, place)

    def _add(self, v: int, own: Mapping[Mask, int], place: Mapping[int, int]) -> None:
        masks = np.array([sum(1 << place[u] for u in members_of(mask)) for mask in own], np.int64)
        numbers = np.array([float(weight) for weight in own.values()])
        self.whole[v], self.free[v] = numbers.sum(), numbers[masks == 0].sum()
        having = [(masks >> u & 1) == 1 for u in range(self.num_vars)]
        self.sets[v] = [(masks[some], numbers[some]) for some in having]

    def completed(self, v: int, u: int, placed: I64) -> F64:
        """[n] weight of the sets of v that u completes, by what is placed then."""
        masks, numbers = self.sets[v][u]
        if not len(masks):
            return np.zeros(len(placed))
        few = max(1, CELLS // len(masks))
        parts = [placed[i : i + few, None] for i in range(0, len(placed), few)]
        return np.concatenate([((masks & ~part) == 0) @ numbers for part in parts])


class _Run:
    """Particles, of each:

    placed: [n] what is placed; complete: [n, v] weight of the sets of v that are complete
    lost: [n, v] of these what v can no longer take, because a larger variable came after them
    logs: [n] weight since they were last drawn
    """

    def __init__(self, problem: _Problem, particles: int, bits: np.random.PCG64) -> None:
        self.problem = problem
        self.random = np.random.Generator(bits)
        self.placed = np.zeros(particles, np.int64)
        self.complete = np.tile(problem.free, (particles, 1))
        self.lost = np.zeros_like(self.complete)
        self.logs = np.zeros(particles)
        self.variables = np.arange(problem.num_vars)

    def log_total(self) -> float:
        """Natural logarithm of the estimate; minus infinity if no particle is left."""
        found = float(self._expected(self.lost)[0].sum())
        for _ in self.variables:
            found += self._drawn_again()
            if found == -np.inf:
                break
            self._place()
        return found + _log_mean(self.logs)

    def _expected(self, lost: F64) -> F64:
        """[n, v] logarithm of what is expected of a variable that is not placed; 0 of one that is."""
        complete = self.complete
        ahead = complete + AHEAD * (self.problem.whole - complete) - lost
        return np.where(self._waiting, _log(ahead), 0.0)

    @property
    def _waiting(self) -> npt.NDArray[np.bool_]:
        waiting: npt.NDArray[np.bool_] = (self.placed[:, None] >> self.variables & 1) == 0
        return waiting

    def _drawn_again(self) -> float:
        """What the weights were on average if the particles are drawn again, which levels them; else 1; logarithms."""
        average = _log_mean(self.logs)
        if average == -np.inf:
            return average
        shares = np.exp(self.logs - self.logs.max())
        if shares.sum() ** 2 >= FEW * len(shares) * (shares**2).sum():
            return 0.0
        up_to = np.cumsum(shares)
        points = (self.random.random() + np.arange(len(shares))) / len(shares) * up_to[-1]
        kept = np.minimum(np.searchsorted(up_to, points, side="right"), len(shares) - 1)
        self.placed, self.complete, self.lost = self.placed[kept], self.complete[kept], self.lost[kept]
        self.logs = np.zeros(len(shares))
        return average

    def _place(self) -> None:
        """The next variable of every particle, drawn by what it can take and by what it leaves to smaller ones."""
        takes = _log(np.where(self._waiting, self.complete - self.lost, 0.0))
        now, later = self._expected(self.lost), self._expected(self.complete)
        left = np.zeros_like(now)
        left[:, 1:] = np.cumsum(np.where(np.isneginf(now), -np.inf, later - np.maximum(now, _FLOOR)), axis=1)[:, :-1]
        odds = takes + left - np.maximum(now, _FLOOR)
        most = odds.max(axis=1, keepdims=True)
        shares = np.exp(odds - np.where(np.isneginf(most), 0.0, most))
        up_to = np.cumsum(shares, axis=1)
        points = self.random.random(len(shares)) * up_to[:, -1]
        drawn = np.minimum((up_to <= points[:, None]).sum(axis=1), self.problem.num_vars - 1)
        rows = np.arange(len(drawn))
        before = now.sum(axis=1)
        self._move(drawn)
        gained = takes[rows, drawn] + self._expected(self.lost).sum(axis=1)
        spent = np.maximum(before, _FLOOR) + _log(shares[rows, drawn]) - _log(np.maximum(up_to[:, -1], _TINY))
        alive = np.isfinite(most[:, 0]) & np.isfinite(self.logs) & np.isfinite(spent)
        self.logs = np.where(alive, self.logs + gained - np.where(alive, spent, 0.0), -np.inf)

    def _move(self, drawn: I64) -> None:
        self.lost = np.where(self.variables < drawn[:, None], self.complete, self.lost)
        self.placed = self.placed | np.left_shift(1, drawn)
        for u in np.unique(drawn).tolist():
            rows = np.flatnonzero(drawn == u)
            sets, which = np.unique(self.placed[rows], return_inverse=True)
            for v in range(self.problem.num_vars):
                self.complete[rows, v] += self.problem.completed(v, u, sets)[which]


_TINY = np.finfo(np.float64).tiny
_FLOOR = float(np.finfo(np.float64).min) / 1e6


def _log(numbers: F64) -> F64:
    """Minus infinity of what is not positive."""
    return np.log(numbers, out=np.full_like(numbers, -np.inf), where=numbers > 0)


def _log_mean(logs: F64) -> float:
    highest = float(logs.max())
    return highest if highest == -np.inf else highest + float(np.log(np.exp(logs - highest).mean()))
