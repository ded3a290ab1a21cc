"""Attribution of ReplaySCM answers: whether the training worlds decided the held-out worlds."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from random import Random

from calibrant.audits.attribution import Attribution
from calibrant.audits.replayscm.ambiguity import headline_parents
from calibrant.audits.replayscm.ceiling import ClassSearch
from calibrant.dsl.replayscm.item import Problem
from calibrant.solvers.outcome import Budget, BudgetSpent
from calibrant.solvers.replayscm.space import MAX_PARENTS, ModelClass, VersionSpace


@dataclass(frozen=True, slots=True)
class HeldoutDecision:
    """Decision of the held-out worlds by the SCMs that fit.

    decided: every SCM of the class that fits replays the held-out worlds
    members: how many fit; in_words: the class
    agreement: the exact share of them that replays the held-out worlds; None if none fits
    """

    decided: bool
    members: int
    in_words: str
    agreement: Fraction | None = None

    def attribution(self, *, fits: bool, correct: bool) -> Attribution:
        """Attribute an answer.

        fits: it is train-exact; correct: it is held-out exact
        """
        return Attribution(self.decided, correct, fits, self.members, self.in_words)


def heldout_decision(problem: Problem) -> HeldoutDecision | None:
    """Return whether the training worlds decided the held-out ones, in the headline class; reads the sealed part.

    None without gold, where no countable class has gold as a member, and where counting is out of budget.
    """
    gold = problem.sealed.gold
    if gold is None or max((len(local.parents) for local in gold.local_functions.values()), default=0) > MAX_PARENTS:
        return None
    model_class = ModelClass(headline_parents(problem))
    space = VersionSpace(problem.task, model_class)
    try:
        members = space.count
        agreement = space.agreement(problem.sealed.heldout.worlds) if members else None
    except BudgetSpent:
        return None
    return HeldoutDecision(agreement == 1, members, model_class.describe(problem.task), agreement)


def heldout_ceiling(problem: Problem, agreement: Fraction, max_counts: int) -> tuple[Fraction, Fraction]:
    """Bound the largest share of the SCMs that fit which one answer agrees with on root set and held-out worlds.

    In the headline class; equal bounds are exact.

    agreement: of the decision of the held-out worlds; max_counts: exact counts that the search may take
    """
    space = VersionSpace(problem.task, ModelClass(headline_parents(problem)))
    golds = agreement if len(space.counts_by_roots) == 1 else Fraction(0)  # else over several root sets
    if 2 * golds > 1:
        return golds, golds
    search = ClassSearch(space, problem.sealed.heldout.worlds, Random(0), budget=Budget(max_counts))
    try:
        share = next(search.heaviest_first()).share
    except BudgetSpent:
        best = search.known_best.share if search.known_best else Fraction(0)
        return max(best, golds), Fraction(search.bound, search.mass)
    return share, share
