"""Unbiased estimate, by sequential Monte Carlo, of a sum over acyclic assignments that has too many terms.

Every DAG has one canonical topological order: the next variable is always the least one whose parents are all placed.
So the sum runs over orders. A parent set is complete once all its members are placed. In an order, a variable may not
have a set that was complete before the last larger variable was placed: with it, the variable would have come before
that one. Orders are sampled variable by variable with importance weights, many at a time (particles), and resampled
where the weights have become unequal. The mean is unbiased whatever proposal is used (A. Doucet and A. M. Johansen, A
tutorial on particle filtering and smoothing: fifteen years later, 2009). The proposal discounts a parent set by the
number of parents that are not placed yet; without that, particles miss the orders that hold most of the weight, and all
runs give too small a value.

Runs are independent, and each gives an estimate of the whole sum, over all components and root sets. The standard error
is that of their mean. The interval is that of the mean of lognormal variables, whose distribution such estimates have
in the limit (J. Berard, P. Del Moral and A. Doucet, A lognormal central limit theorem for particle approximations of
normalizing constants, 2014). Its ends combine the limits of both parameters: Student's t for the mean of logarithms,
chi-square for their variance. D. R. Cox's interval, and that of G. Y. Zou, C. Y. Huo and J. Taleban (Simple confidence
intervals for lognormal means, 2009), cover too seldom where few runs have sampled the heaviest orders. Since each run
is unbiased and non-negative, Markov's inequality on their product bounds the sum from below whatever their distribution
(C. P. Gomes, J. Hoffmann, A. Sabharwal and B. Selman, From sampling to model counting, 2007).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import exp, fsum, isqrt, lgamma, log, log2, log10, sqrt
from statistics import NormalDist, fmean, variance
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from calibrant.solvers.acyclic.count import Weights, good_order, total
from calibrant.solvers.acyclic.least import Mask, members_of
from calibrant.solvers.outcome import BudgetSpent

PARTICLES = 2_000  # orders sampled side by side
RUNS = 16  # independent repetitions
EXACT = "exact"  # method of an estimate without sampling
# proposal: the assumed probability that a parent which is not placed yet is placed before its child
PLACEMENT_PROBABILITY = 0.3
CONFIDENCE = 0.95
RESAMPLE_THRESHOLD = 0.5  # share of the particles: resample when the effective sample size is below it
MAX_DIGITS_BITS = 10_000  # bits of a number up to which its digits are printed
MAX_EXPONENT = 100_000  # cap on the powers of e by which an interval exceeds the runs: keeps numbers finite
CELLS = 1 << 22  # cells of a matrix of particles by parent sets, 32 MiB of floats

F64: TypeAlias = npt.NDArray[np.float64]
I64: TypeAlias = npt.NDArray[np.int64]


class Estimate(NamedTuple):
    """Unbiased estimate of a number; exact if nothing had to be estimated.

    standard_error: standard error of the value, from the spread of runs
    method: name of the method, in words
    runs: independent unbiased estimates whose mean is the value; none if it is exact
    """

    value: int
    standard_error: int
    method: str
    runs: tuple[int, ...] = ()

    @property
    def interval(self) -> tuple[int, int]:
        """Confidence interval of level CONFIDENCE, if logarithms of runs are about normal."""
        if not self.runs:
            return self.value, self.value
        num_runs, t = len(self.runs), _student(len(self.runs) - 1)
        if not all(self.runs):  # a run of 0 has no logarithm: Student's interval of the mean instead
            return 0, self.value + round(t * Fraction(self.standard_error))
        # mean of a lognormal: exp(mu + sigma**2 / 2). Each end takes the limits of mu and sigma at once, which covers
        # at least as often as the confidence of both together
        logs = [log2(run) * log(2) for run in self.runs]
        log_variance = variance(logs)
        sides = (1 + CONFIDENCE) / 2, (1 - CONFIDENCE) / 2
        min_variance, max_variance = ((num_runs - 1) * log_variance / _chi_square(side, num_runs - 1) for side in sides)
        ends = (
            min_variance / 2 - t * sqrt(log_variance / num_runs),
            max_variance / 2 + t * sqrt(max_variance / num_runs),
        )
        low, high = (_exponential((fmean(logs) + min(end, MAX_EXPONENT)) / log(2)) for end in ends)
        return min(self.value, max(self.at_least, low)), max(self.value, high)

    @property
    def at_least(self) -> int:
        """Lower bound with CONFIDENCE, whatever the distribution of runs; 0 if a run is 0."""
        if not self.runs:
            return self.value
        if not all(self.runs):
            return 0
        # Markov: the product of n runs exceeds truth**n / (1 - CONFIDENCE) with probability 1 - CONFIDENCE at most
        log_product = fsum(map(log2, self.runs)) + log2(1 - CONFIDENCE)
        return max(0, _exponential(log_product / len(self.runs)) - 1)  # less 1 against rounding

    def __str__(self) -> str:
        if not self.runs:
            return str(self.value)
        low, high = map(_format_rounded, self.interval)
        return f"about {_format_rounded(self.value)} ({low} to {high})"


def estimate(
    weights: Weights, seeds: np.random.SeedSequence, *, particles: int = PARTICLES, runs: int = RUNS
) -> Estimate:
    """Estimate `solvers.acyclic.count.total`. The same seeds give the same estimate.

    Components with few enough terms are summed exactly. `BudgetSpent` if every sampled order ended before all variables
    were placed.

    particles: orders sampled side by side; runs: independent repetitions, at least 2
    """
    exact, estimates, estimated = 1, [1] * runs, False
    for component in weights.components():
        try:
            exact *= total(component)
        except BudgetSpent:
            estimated = True
            component_runs = _estimate_component(component, seeds.spawn(1)[0], particles, runs)
            estimates = [product * run for product, run in zip(estimates, component_runs, strict=True)]
    if not estimated:
        return Estimate(exact, 0, EXACT)
    method = f"estimate by sequential Monte Carlo over orders, {runs} runs of {particles} particles"
    return _summarize_runs([exact * product for product in estimates], method)


def add_estimates(parts: Sequence[Estimate]) -> Estimate:
    """Return the estimate of a sum of independently estimated numbers, all with the same number of runs."""
    estimated = [part for part in parts if part.runs]
    exact = sum(part.value for part in parts if not part.runs)
    if not estimated:
        return Estimate(exact, 0, EXACT)
    runs = [exact + sum(parts_of_run) for parts_of_run in zip(*(part.runs for part in estimated), strict=True)]
    return _summarize_runs(runs, max(estimated, key=lambda part: part.standard_error).method)


def _summarize_runs(runs: Sequence[int], method: str) -> Estimate:
    num_runs, total = len(runs), sum(runs)
    # integers throughout: sums may exceed the range of floats
    squares = sum((num_runs * run - total) ** 2 for run in runs)  # num_runs**2 times the squared deviations
    return Estimate(total // num_runs, isqrt(squares // (num_runs**3 * (num_runs - 1))), method, tuple(runs))


def _student(freedom: int) -> float:
    """Return the two-sided quantile of Student's t at CONFIDENCE, by a series in 1 / freedom.

    Terms: G. W. Hill, Algorithm 396: Student's t-quantiles, 1970; within 0.1 % from 6 degrees of freedom on.
    """
    z: float = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
    terms: tuple[float, ...] = (
        z,
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return fsum(term / freedom**power for power, term in enumerate(terms))


def _chi_square(share: float, freedom: int) -> float:
    """Return the quantile of a chi-square distribution at `share`, by bisection."""
    # the upper end is 20 / sqrt(2) standard deviations and 20 above the mean: beyond the quantiles for CONFIDENCE
    low, high = 0.0, freedom + 20 * sqrt(freedom) + 20
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if _chi_square_cdf(middle, freedom) < share else (low, middle)
    return high


def _chi_square_cdf(point: float, freedom: int) -> float:
    """Return the chi-square distribution function at a point: the series of the incomplete gamma function."""
    half_point, shape, probability = point / 2, freedom / 2, 0.0
    term = exp(freedom / 2 * log(half_point) - half_point - lgamma(freedom / 2 + 1)) if half_point else 0.0
    while term > probability * 1e-16:
        probability += term
        shape += 1
        term *= half_point / shape
    return probability


def _format_rounded(number: int) -> str:
    """Format with three digits and a power of ten; up to six digits exactly; the power alone above MAX_DIGITS_BITS."""
    if number.bit_length() > MAX_DIGITS_BITS:
        return f"1e{int(log2(number) * log10(2))}"
    digits = str(number)
    return digits if len(digits) < 7 else f"{digits[0]}.{digits[1:3]}e{len(digits) - 1}"


def _estimate_component(weights: Weights, seeds: np.random.SeedSequence, particles: int, runs: int) -> list[int]:
    """Estimate the sum over one component, once per run."""
    problem = _Problem(weights)
    logs = [_Run(problem, particles, np.random.PCG64(seed)).log_total() for seed in seeds.spawn(runs)]
    if max(logs) == -np.inf:
        num_vars = len(weights.endogenous)
        raise BudgetSpent(f"all {runs * particles:,} orders of {num_vars} variables ended where nothing can come next")
    return [0 if log_total == -np.inf else _exponential(log_total / log(2)) for log_total in logs]


def _exponential(log2: float) -> int:
    """Return the integer nearest to 2**log2, for any exponent."""
    # 64 bits of exponent stay with the float, so that its 53 bits of precision survive the rounding
    exponent = int(log2) - 64
    scaled = Fraction(2.0 ** (log2 - exponent))
    return round(scaled * Fraction(2) ** exponent)


class _Problem:
    """Parent sets as arrays; variables are numbered in a good order, which defines "least" and "larger".

    sets: [v][u] masks of the sets of v that contain u, and their weights
    expected: [v] sum of the weights of v's sets, each times PLACEMENT_PROBABILITY ** (number of its members)
    empty: [v] weight of the empty set of v
    """

    def __init__(self, weights: Weights) -> None:
        rank = {v: position for position, v in enumerate(good_order(weights))}
        self.num_vars = len(rank)
        self.sets: list[list[tuple[I64, F64]]] = [[] for _ in rank]
        self.expected, self.empty = np.zeros(self.num_vars), np.zeros(self.num_vars)
        for v, candidates in enumerate(weights.by_positions):
            self._add(rank[v], candidates, rank)

    def _add(self, v: int, parent_sets: Mapping[Mask, int], rank: Mapping[int, int]) -> None:
        masks = np.array([sum(1 << rank[u] for u in members_of(mask)) for mask in parent_sets], np.int64)
        weights = np.array([float(weight) for weight in parent_sets.values()])
        self.expected[v] = _PLACED_PROBABILITY[np.bitwise_count(masks)] @ weights
        self.empty[v] = weights[masks == 0].sum()
        has_member = [(masks >> u & 1) == 1 for u in range(self.num_vars)]
        self.sets[v] = [(masks[rows], weights[rows]) for rows in has_member]

    def completed_by(self, v: int, u: int, placed: I64) -> F64:
        """Return the weight of the sets of v that u completes, and the rise in v's expected weight; [2, n].

        placed: [n] masks of placed variables, u included
        """
        masks, weights = self.sets[v][u]
        if not len(masks):
            return np.zeros((2, len(placed)))
        batch = max(1, CELLS // len(masks))
        parts = []
        for i in range(0, len(placed), batch):
            missing = np.bitwise_count(masks & ~placed[i : i + batch, None])
            parts.append(
                ((missing == 0) @ weights, (1 - PLACEMENT_PROBABILITY) * (_PLACED_PROBABILITY[missing] @ weights))
            )
        return np.concatenate(parts, axis=1)


class _Run:
    """One run of the particle filter; arrays over its n particles.

    placed: [n] masks of placed variables; complete: [n, v] weight of the sets of v whose parents are all placed
    expected: [n, v] the same, plus the weights of the other sets times PLACEMENT_PROBABILITY ** (members not placed)
    lost: [n, v] weight of the sets that v may no longer have: a larger variable came after they were complete
    logs: [n] logarithms of the particles' importance weights since the last resampling
    """

    def __init__(self, problem: _Problem, particles: int, bits: np.random.PCG64) -> None:
        self.problem = problem
        self.rng = np.random.Generator(bits)
        self.placed = np.zeros(particles, np.int64)
        self.complete = np.tile(problem.empty, (particles, 1))
        self.expected = np.tile(problem.expected, (particles, 1))
        self.lost = np.zeros_like(self.complete)
        self.logs = np.zeros(particles)
        self.variables = np.arange(problem.num_vars)

    def log_total(self) -> float:
        """Return the natural logarithm of the run's estimate; minus infinity if every particle ended early."""
        # weights are ratios of successive expectations, so the product starts with the first expectation
        log_estimate = float(self._expected_log_weights(self.lost)[0].sum())
        for _ in self.variables:
            log_estimate += self._resample()
            if log_estimate == -np.inf:
                break
            self._place()
        return log_estimate + _log_mean(self.logs)

    def _expected_log_weights(self, lost: F64) -> F64:
        """Return logarithms of the expected weights of variables, 0 for placed ones; shape [n, v]."""
        return np.where(self._waiting, _log(self.expected - lost), 0.0)

    @property
    def _waiting(self) -> npt.NDArray[np.bool_]:
        """Whether each variable is not placed; shape [n, v]."""
        waiting: npt.NDArray[np.bool_] = (self.placed[:, None] >> self.variables & 1) == 0
        return waiting

    def _resample(self) -> float:
        """Resample if the weights are too unequal; return the logarithm of their mean before, else 0.0."""
        average = _log_mean(self.logs)
        if average == -np.inf:
            return average
        shares = np.exp(self.logs - self.logs.max())
        # effective sample size: (sum of weights)**2 / sum of squares
        if shares.sum() ** 2 >= RESAMPLE_THRESHOLD * len(shares) * (shares**2).sum():
            return 0.0
        cumulative = np.cumsum(shares)
        # systematic resampling, one random number for all: less variance than independent draws, and unbiased
        points = (self.rng.random() + np.arange(len(shares))) / len(shares) * cumulative[-1]
        survivors = np.minimum(np.searchsorted(cumulative, points, side="right"), len(shares) - 1)
        self.placed, self.lost = self.placed[survivors], self.lost[survivors]
        self.complete, self.expected = self.complete[survivors], self.expected[survivors]
        self.logs = np.zeros(len(shares))
        return average

    def _place(self) -> None:
        """Place the next variable of every particle, sampled by its weight times what remains to smaller variables.

        The smaller variables that are not placed lose the sets that are complete by now.
        """
        log_weights = _log(np.where(self._waiting, self.complete - self.lost, 0.0))
        now, later = self._expected_log_weights(self.lost), self._expected_log_weights(self.complete)
        log_ratio_below = np.zeros_like(now)
        log_ratio_below[:, 1:] = np.cumsum(
            np.where(np.isneginf(now), -np.inf, later - np.maximum(now, _FLOOR)), axis=1
        )[:, :-1]
        log_odds = log_weights + log_ratio_below - np.maximum(now, _FLOOR)
        highest = log_odds.max(axis=1, keepdims=True)
        shares = np.exp(log_odds - np.where(np.isneginf(highest), 0.0, highest))
        cumulative = np.cumsum(shares, axis=1)
        points = self.rng.random(len(shares)) * cumulative[:, -1]
        chosen = np.minimum((cumulative <= points[:, None]).sum(axis=1), self.problem.num_vars - 1)
        rows = np.arange(len(chosen))
        before = now.sum(axis=1)
        self._move(chosen)
        gained = log_weights[rows, chosen] + self._expected_log_weights(self.lost).sum(axis=1)
        spent = np.maximum(before, _FLOOR) + _log(shares[rows, chosen]) - _log(np.maximum(cumulative[:, -1], _TINY))
        alive = np.isfinite(highest[:, 0]) & np.isfinite(self.logs) & np.isfinite(spent)
        self.logs = np.where(alive, self.logs + gained - np.where(alive, spent, 0.0), -np.inf)

    def _move(self, chosen: I64) -> None:
        """Place the chosen variable of each particle; chosen: [n]."""
        self.lost = np.where(self.variables < chosen[:, None], self.complete, self.lost)
        self.placed = self.placed | np.left_shift(1, chosen)
        for u in np.unique(chosen).tolist():
            rows = np.flatnonzero(chosen == u)
            sets, set_of_row = np.unique(self.placed[rows], return_inverse=True)
            for v in range(self.problem.num_vars):
                complete, expected = self.problem.completed_by(v, u, sets)
                self.complete[rows, v] += complete[set_of_row]
                self.expected[rows, v] += expected[set_of_row]


_PLACED_PROBABILITY = PLACEMENT_PROBABILITY ** np.arange(64.0)  # by the number of missing parents
_TINY = np.finfo(np.float64).tiny
_FLOOR = float(np.finfo(np.float64).min) / 1e6  # stands for the logarithm of 0: differences of sums stay finite


def _log(numbers: F64) -> F64:
    """Return logarithms; minus infinity where a number is not positive."""
    return np.log(numbers, out=np.full_like(numbers, -np.inf), where=numbers > 0)


def _log_mean(logs: F64) -> float:
    highest = float(logs.max())
    return highest if highest == -np.inf else highest + float(np.log(np.exp(logs - highest).mean()))
