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
    """Whether all consistent SCMs of a class agree on the held-out worlds.

    decided: every consistent SCM replays the held-out worlds
    members: number of consistent SCMs; in_words: the class, described
    agreement: exact share of the consistent SCMs that replays the held-out worlds; None without any
    """

    decided: bool
    members: int
    in_words: str
    agreement: Fraction | None = None

    def attribution(self, *, fits: bool, correct: bool) -> Attribution:
        """Attribute an answer; `fits`: it is train-exact; `correct`: it is held-out exact."""
        return Attribution(self.decided, correct, fits, self.members, self.in_words)


def heldout_decision(problem: Problem) -> HeldoutDecision | None:
    """Return whether the training worlds decided the held-out ones, in the class of `headline_parents`.

    None without gold, if gold is in no class that can be counted, and if the budget of counting is spent.
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
    """Bound the largest share of consistent SCMs that have one root set and one prediction of the held-out worlds.

    Return (lower, upper), equal if exact; the class is that of `headline_parents`.

    agreement: `HeldoutDecision.agreement`; max_counts: budget of the search, in exact counts
    """
    space = VersionSpace(problem.task, ModelClass(headline_parents(problem)))
    # with several root sets, `agreement` mixes them and bounds no share of a single one
    gold_share = agreement if len(space.counts_by_roots) == 1 else Fraction(0)
    if 2 * gold_share > 1:  # a majority is the largest share
        return gold_share, gold_share
    search = ClassSearch(space, problem.sealed.heldout.worlds, Random(0), budget=Budget(max_counts))
    try:
        share = next(search.heaviest_first()).share
    except BudgetSpent:
        best = search.known_best.share if search.known_best else Fraction(0)
        return max(best, gold_share), Fraction(search.bound, search.mass)
    return share, share
