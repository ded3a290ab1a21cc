"""An estimate of a sum over acyclic parent choices that has too many terms to be added up, and says that it is one.

Every choice has one first order: next always the least variable whose parents are placed. So the sum goes over orders
and, in an order, a variable takes any of its sets that was not complete before the last larger one was placed: if it
had been, the variable would have come then. Orders are drawn variable by variable and weighed by importance, many at a
time, and drawn again among themselves where their weights have grown apart; their mean is unbiased whatever is expected
of what is left (sequential Monte Carlo: A. Doucet and A. M. Johansen, A tutorial on particle filtering and smoothing:
fifteen years later, 2009). What a variable is expected to take falls with the number of parents that its sets still
miss, or orders are missed that hold most of the weight: few runs then agree on too little.

Runs are independent, and the whole sum is made of every run anew, over all components and root sets. So the standard
error is that of a mean of as many numbers, and the interval is that of a mean of lognormal numbers, which estimates of
this kind come to be (J. Berard, P. Del Moral and A. Doucet, A lognormal central limit theorem for particle
approximations of normalizing constants, 2014). Its ends take the limits of both parameters at once, Student's of the
mean and those that a chi-square has for the variance: D. R. Cox's interval, and the one that G. Y. Zou, C. Y. Huo and
J. Taleban have from these limits (Simple confidence intervals for lognormal means, 2009), hold too seldom where few
runs have met what weighs most. Since each of the numbers is unbiased and not negative, Markov's inequality on their
product bounds the sum from below whatever their distribution (C. P. Gomes, J. Hoffmann, A. Sabharwal and B. Selman,
From sampling to model counting, 2007).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import exp, isqrt, lgamma, log, log2, log10, sqrt
from statistics import NormalDist, fmean, variance
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from calibrant.solvers.acyclic.bounds import good_order
from calibrant.solvers.acyclic.count import Weights, total
from calibrant.solvers.acyclic.least_cost import Mask, members_of
from calibrant.solvers.budget import BudgetSpent

PARTICLES = 2_000  # orders drawn side by side
RUNS = 16
EXACT = "exact"
AHEAD = 0.3  # for each parent that a set misses, how likely it is thought to be placed before the variable comes
CONFIDENCE = 0.95
RESAMPLE_THRESHOLD = 0.5  # of the particles: with fewer of them in effect they are drawn again
MOST_BITS = 10_000  # of a number that is written in digits
FARTHEST = 100_000  # powers of e above the runs, where an interval tells nothing any more
CELLS = 1 << 22  # of a matrix of particles by parent sets

F64: TypeAlias = npt.NDArray[np.float64]
I64: TypeAlias = npt.NDArray[np.int64]


class Estimate(NamedTuple):
    """An unbiased estimate of a number; exact if nothing had to be estimated.

    standard_error: of the value, from the spread of runs
    method: in words
    runs: independent unbiased estimates of which the value is the mean; none if it is exact
    """

    value: int
    standard_error: int
    method: str
    runs: tuple[int, ...] = ()

    @property
    def interval(self) -> tuple[int, int]:
        """Return where the number lies with CONFIDENCE, if logarithms of runs are spread about normally."""
        if not self.runs:
            return self.value, self.value
        number, t = len(self.runs), _student(len(self.runs) - 1)
        if not all(self.runs):
            return 0, self.value + round(t * Fraction(self.standard_error))
        logs = [log2(one) * log(2) for one in self.runs]
        square = variance(logs)
        sides = (1 + CONFIDENCE) / 2, (1 - CONFIDENCE) / 2
        least, most = ((number - 1) * square / _chi_square(share, number - 1) for share in sides)
        ends = least / 2 - t * sqrt(square / number), most / 2 + t * sqrt(most / number)
        low, high = (_exponential((fmean(logs) + min(end, FARTHEST)) / log(2)) for end in ends)
        return min(self.value, max(self.at_least, low)), max(self.value, high)

    @property
    def at_least(self) -> int:
        """Return what the number is not below, with CONFIDENCE, however runs are spread."""
        if not self.runs:
            return self.value
        if not all(self.runs):
            return 0
        mean = sum(map(log2, self.runs)) + log2(1 - CONFIDENCE)
        return max(0, _exponential(mean / len(self.runs)) - 1)  # which was rounded

    def __str__(self) -> str:
        if not self.runs:
            return str(self.value)
        low, high = map(_short, self.interval)
        return f"about {_short(self.value)} ({low} to {high})"


def estimate(
    weights: Weights, seeds: np.random.SeedSequence, *, particles: int = PARTICLES, runs: int = RUNS
) -> Estimate:
    """Estimate `solvers.acyclic.count.total`. The same seeds give the same estimate.

    Components whose terms can be added up are. `BudgetSpent` if every order that was drawn ended where nothing can come
    next.

    particles: orders drawn side by side; runs: how often, independently of each other, at least 2
    """
    whole, each, estimated = 1, [1] * runs, False
    for component in weights.components():
        try:
            whole *= total(component)
        except BudgetSpent:
            estimated = True
            found = _estimated(component, seeds.spawn(1)[0], particles, runs)
            each = [one * other for one, other in zip(each, found, strict=True)]
    if not estimated:
        return Estimate(whole, 0, EXACT)
    method = f"estimate by sequential Monte Carlo over orders, {runs} runs of {particles} particles"
    return _of([whole * one for one in each], method)


def together(parts: Sequence[Estimate]) -> Estimate:
    """Return the estimate of a sum of independently estimated numbers, each with as many runs."""
    rough = [part for part in parts if part.runs]
    known = sum(part.value for part in parts if not part.runs)
    if not rough:
        return Estimate(known, 0, EXACT)
    runs = [known + sum(one) for one in zip(*(part.runs for part in rough), strict=True)]
    return _of(runs, max(rough, key=lambda part: part.standard_error).method)


def _of(runs: Sequence[int], method: str) -> Estimate:
    number, whole = len(runs), sum(runs)
    squares = sum((number * one - whole) ** 2 for one in runs)  # number**2 times the sum of squared deviations
    return Estimate(whole // number, isqrt(squares // (number**3 * (number - 1))), method, tuple(runs))


def _student(freedom: int) -> float:
    """The point beyond which, on both sides, Student's t is with 1 - CONFIDENCE; a series in 1 / freedom.

    G. W. Hill, Algorithm 396: Student's t-quantiles, 1970, has its terms; within 0.1 % from 6 degrees of freedom on.
    """
    z: float = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
    terms: tuple[float, ...] = (
        z,
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return float(sum(term / freedom**power for power, term in enumerate(terms)))


def _chi_square(share: float, freedom: int) -> float:
    """The point below which that share of a chi-square distribution lies, by halving."""
    low, high = 0.0, freedom + 20 * sqrt(freedom) + 20
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if _chi_square_below(middle, freedom) < share else (low, middle)
    return high


def _chi_square_below(point: float, freedom: int) -> float:
    """The share below a point: the series of the incomplete gamma function."""
    half, place, below = point / 2, freedom / 2, 0.0
    term = exp(freedom / 2 * log(half) - half - lgamma(freedom / 2 + 1)) if half else 0.0
    while term > below * 1e-16:
        below += term
        place += 1
        term *= half / place
    return below


def _short(number: int) -> str:
    """Three digits and a power of ten, however large; the power alone beyond those that are written out."""
    if number.bit_length() > MOST_BITS:
        return f"1e{int(log2(number) * log10(2))}"
    digits = str(number)
    return digits if len(digits) < 7 else f"{digits[0]}.{digits[1:3]}e{len(digits) - 1}"


def _estimated(weights: Weights, seeds: np.random.SeedSequence, particles: int, runs: int) -> list[int]:
    """Estimate the sum over one component, once per run."""
    problem = _Problem(weights)
    logs = [_Run(problem, particles, np.random.PCG64(seed)).log_total() for seed in seeds.spawn(runs)]
    if max(logs) == -np.inf:
        number = len(weights.endogenous)
        raise BudgetSpent(f"all {runs * particles:,} orders of {number} variables ended where nothing can come next")
    return [0 if one == -np.inf else _exponential(one / log(2)) for one in logs]


def _exponential(log2: float) -> int:
    """The whole number next to a power of two with any exponent."""
    exponent = int(log2) - 64
    scaled = Fraction(2.0 ** (log2 - exponent))
    return round(scaled * Fraction(2) ** exponent)


class _Problem:
    """Variables in a good order, which is what "least" and "larger" go by.

    sets: [v][u] the sets of v with u in them, and their weights
    ahead: [v] what is expected of v before anything is placed; free: weight of its empty set
    """

    def __init__(self, weights: Weights) -> None:
        place = {v: rank for rank, v in enumerate(good_order(weights))}
        self.num_vars = len(place)
        self.sets: list[list[tuple[I64, F64]]] = [[] for _ in place]
        self.ahead, self.free = np.zeros(self.num_vars), np.zeros(self.num_vars)
        for v, candidates in enumerate(weights.by_positions):
            self._add(place[v], candidates, place)

    def _add(self, v: int, own: Mapping[Mask, int], place: Mapping[int, int]) -> None:
        masks = np.array([sum(1 << place[u] for u in members_of(mask)) for mask in own], np.int64)
        numbers = np.array([float(weight) for weight in own.values()])
        self.ahead[v], self.free[v] = _LIKELY[np.bitwise_count(masks)] @ numbers, numbers[masks == 0].sum()
        having = [(masks >> u & 1) == 1 for u in range(self.num_vars)]
        self.sets[v] = [(masks[some], numbers[some]) for some in having]

    def gained(self, v: int, u: int, placed: I64) -> F64:
        """[2, n] weight of the sets of v that u completes, by what is placed then, and by how much more is expected."""
        masks, numbers = self.sets[v][u]
        if not len(masks):
            return np.zeros((2, len(placed)))
        few = max(1, CELLS // len(masks))
        parts = []
        for i in range(0, len(placed), few):
            missing = np.bitwise_count(masks & ~placed[i : i + few, None])
            parts.append(((missing == 0) @ numbers, (1 - AHEAD) * (_LIKELY[missing] @ numbers)))
        return np.concatenate(parts, axis=1)


class _Run:
    """Particles, of each:

    placed: [n] what is placed; complete: [n, v] weight of the sets of v that are complete
    ahead: [n, v] the same and what is expected of the others
    lost: [n, v] of these what v can no longer take, because a larger variable came after them
    logs: [n] weight since they were last drawn
    """

    def __init__(self, problem: _Problem, particles: int, bits: np.random.PCG64) -> None:
        self.problem = problem
        self.random = np.random.Generator(bits)
        self.placed = np.zeros(particles, np.int64)
        self.complete = np.tile(problem.free, (particles, 1))
        self.ahead = np.tile(problem.ahead, (particles, 1))
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
        return np.where(self._waiting, _log(self.ahead - lost), 0.0)

    @property
    def _waiting(self) -> npt.NDArray[np.bool_]:
        waiting: npt.NDArray[np.bool_] = (self.placed[:, None] >> self.variables & 1) == 0
        return waiting

    def _drawn_again(self) -> float:
        """Return what the weights were on average if the particles are drawn again, which levels them; else 1.

        Logarithms.
        """
        average = _log_mean(self.logs)
        if average == -np.inf:
            return average
        shares = np.exp(self.logs - self.logs.max())
        if shares.sum() ** 2 >= RESAMPLE_THRESHOLD * len(shares) * (shares**2).sum():
            return 0.0
        up_to = np.cumsum(shares)
        points = (self.random.random() + np.arange(len(shares))) / len(shares) * up_to[-1]
        kept = np.minimum(np.searchsorted(up_to, points, side="right"), len(shares) - 1)
        self.placed, self.lost = self.placed[kept], self.lost[kept]
        self.complete, self.ahead = self.complete[kept], self.ahead[kept]
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
                complete, ahead = self.problem.gained(v, u, sets)
                self.complete[rows, v] += complete[which]
                self.ahead[rows, v] += ahead[which]


_LIKELY = AHEAD ** np.arange(64.0)  # by the number of missing parents
_TINY = np.finfo(np.float64).tiny
_FLOOR = float(np.finfo(np.float64).min) / 1e6


def _log(numbers: F64) -> F64:
    """Minus infinity of what is not positive."""
    return np.log(numbers, out=np.full_like(numbers, -np.inf), where=numbers > 0)


def _log_mean(logs: F64) -> float:
    highest = float(logs.max())
    return highest if highest == -np.inf else highest + float(np.log(np.exp(logs - highest).mean()))
