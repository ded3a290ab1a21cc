"""The ceiling: the best expected HeldoutExact of any answer, when the truth is drawn from the version space.

An answer is held-out exact iff it does in every held-out context what the truth does. So the best answer shows the
behaviour that most of the weight shows, and its expected HeldoutExact is the share of that class: however clever, no
solver does better on average under this prior. With hidden roots an answer has to name the root set as well.

The prior is uniform over the members of a class, or weighs them by 2**(-penalty * total formula size). Whether it is a
good one is an empirical question: bench.statistics compares how often gold's behaviour is the predicted one with the
probability under the prior.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from random import Random

from calibrant.audits.replayscm.class_search import ClassSearch
from calibrant.audits.replayscm.patterns import latent_scm
from calibrant.dsl.replayscm.evaluator import replays
from calibrant.dsl.replayscm.item import Problem
from calibrant.dsl.replayscm.scm import Scm
from calibrant.dsl.replayscm.world import World
from calibrant.solvers.budget import Budget, BudgetSpent
from calibrant.solvers.replayscm.space import VersionSpace

MAX_COUNTS = 500  # a count takes 1 to 3 ms at 10 variables, with formula sizes up to 200 ms
MAX_DESCENT = 4_000_000  # parent sets times held-out rows: beyond, the best class that was weighed is the lower end


@dataclass(frozen=True, slots=True)
class BestAnswer:
    """The ceiling as a certified interval, and an answer that reaches its lower end.

    lower: the exact share of the answer's class; upper: no class has a larger share
    answer: an SCM of the heaviest class that was weighed; counts: exact counts that were made
    descent_cost: parent sets times held-out rows, where these were too many for a descent to a heavier class; else 0
    """

    lower: Fraction
    upper: Fraction
    answer: Scm
    counts: int
    descent_cost: int = 0

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
) -> BestAnswer:
    """Return the ceiling of one instance, exact unless the budget of counts runs out; `ValueError` for an empty space.

    The seed decides which of equally heavy classes answers and, when the budget runs out, how wide the interval is.
    """
    budget = Budget(max_counts)
    search = ClassSearch(space, heldout, rng, size_penalty=size_penalty, budget=budget)
    try:
        best = next(search.heaviest_first())
    except BudgetSpent:
        candidates, cost = [search.known_best] if search.known_best else [], search.num_sets * search.num_rows
        if not candidates or cost <= MAX_DESCENT:
            candidates, cost = [search.descend(), *candidates], 0
        best = max(candidates, key=lambda candidate: candidate.mass)
        return BestAnswer(best.share, Fraction(search.bound, search.mass), best.example, budget.used, cost)
    return BestAnswer(best.share, best.share, best.example, budget.used)


def is_realised(problem: Problem, best_answer: BestAnswer) -> bool:
    """Return whether the best answer does what gold does in every held-out world.

    Exact, also where the ceiling is open.
    """
    gold = latent_scm(problem)
    return best_answer.answer.roots == gold.roots and replays(best_answer.answer, problem.sealed.heldout)
