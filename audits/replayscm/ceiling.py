"""The ceiling: the best expected HeldoutExact of any answer, when the truth is drawn from the version space.

An answer is held-out exact iff it does in every held-out context what the truth does. So the best answer shows the
behaviour that most of the weight shows, and its expected HeldoutExact is the share of that class: however clever, no
solver does better on average under this prior. With hidden roots an answer has to name the root set as well.

The prior is uniform over the members of a class, or weighs them by 2**(-penalty * total formula size). Whether it is a
good one is an empirical question: `reliability` compares how often gold's behaviour is the predicted one with how often
the prior says it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from random import Random

from audits.replayscm.class_search import ClassSearch
from audits.replayscm.patterns import latent_scm
from dsl.replayscm.problem import Problem
from dsl.replayscm.reference import replays_exactly
from dsl.replayscm.scm import Scm
from dsl.replayscm.world import World
from solvers.budget import Budget, BudgetSpent
from solvers.replayscm.version_space import VersionSpace

MAX_COUNTS = 500  # a count takes 1 to 3 ms at 10 variables, with formula sizes up to 200 ms


@dataclass(frozen=True, slots=True)
class Ceiling:
    """A certified interval: lower is the exact share of the answer's class, no class has a larger share than upper.

    answer: an SCM of the heaviest class that was weighed; counts: exact counts that were made
    """

    lower: Fraction
    upper: Fraction
    answer: Scm
    counts: int

    @property
    def is_exact(self) -> bool:
        return self.lower == self.upper


def ceiling(
    space: VersionSpace,
    heldout: Sequence[World],
    rng: Random,
    *,
    size_penalty: int | None = None,
    max_counts: int | None = MAX_COUNTS,
) -> Ceiling:
    """The ceiling of one instance, exact unless the budget of counts runs out; `ValueError` for an empty space.

    The seed decides which of equally heavy classes answers and, when the budget runs out, how wide the interval is.
    """
    budget = Budget(max_counts)
    search = ClassSearch(space, heldout, rng, size_penalty=size_penalty, budget=budget)
    try:
        best = next(search.heaviest_first())
    except BudgetSpent:
        known = [search.descend(), *([search.known_best] if search.known_best else [])]
        best = max(known, key=lambda one: one.mass)
        return Ceiling(best.share, Fraction(search.bound, search.mass), best.example, budget.used)
    return Ceiling(best.share, best.share, best.example, budget.used)


# --- is the ceiling calibrated ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Forecast:
    """One instance: the share of the answer's class, and whether gold's behaviour is the answer's."""

    problem_id: str
    predicted: Fraction
    realised: bool


def forecast(problem: Problem, found: Ceiling) -> Forecast:
    """What the prior said of its best answer, and what came true. Exact even where the ceiling is only an interval."""
    gold = latent_scm(problem)
    right = found.answer.roots == gold.roots and replays_exactly(found.answer, problem.sealed.heldout.worlds)
    return Forecast(problem.id, found.lower, right)


@dataclass(frozen=True, slots=True)
class ReliabilityBin:
    """Forecasts with predictions in (low, high]; the first bin holds 0 too.

    interval: 95 % Wilson score interval of the realised frequency
    """

    low: float
    high: float
    number: int
    predicted: float
    realised: float
    interval: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Reliability:
    """Data of a reliability diagram over a pool.

    predicted, realised: expected and actual number of held-out exact best answers
    standard_error: of the number realised, if the predictions are right
    bins: the non-empty ones
    """

    number: int
    predicted: float
    realised: int
    standard_error: float
    bins: tuple[ReliabilityBin, ...]


def reliability(forecasts: Iterable[Forecast], *, num_bins: int = 10) -> Reliability:
    """Predicted against realised, in bins of equal width."""
    listed = list(forecasts)
    binned: list[list[Forecast]] = [[] for _ in range(num_bins)]
    for one in listed:
        binned[max(0, -int(-one.predicted * num_bins // 1) - 1)].append(one)
    bins = [
        ReliabilityBin(
            place / num_bins,
            (place + 1) / num_bins,
            len(inside),
            float(sum(one.predicted for one in inside) / len(inside)),
            sum(one.realised for one in inside) / len(inside),
            wilson(sum(one.realised for one in inside), len(inside)),
        )
        for place, inside in enumerate(binned)
        if inside
    ]
    spread = sum(one.predicted * (1 - one.predicted) for one in listed)
    return Reliability(
        len(listed),
        float(sum(one.predicted for one in listed)),
        sum(one.realised for one in listed),
        sqrt(spread),
        tuple(bins),
    )


def wilson(successes: int, number: int) -> tuple[float, float]:
    """95 % score interval of a binomial proportion (Wilson 1927)."""
    z = 1.959964
    share, z2 = successes / number, z * z
    middle = (share + z2 / (2 * number)) / (1 + z2 / number)
    half = z / (1 + z2 / number) * sqrt(share * (1 - share) / number + z2 / (4 * number * number))
    return max(0.0, middle - half), min(1.0, middle + half)
