"""Attribution of ReplaySCM answers: whether the training worlds decided the held-out worlds."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from calibrant.audits.attribution import Attribution
from calibrant.audits.replayscm.ambiguity import headline_parents
from calibrant.dsl.replayscm.problem import Problem
from calibrant.solvers.budget import BudgetSpent
from calibrant.solvers.replayscm.version_space import MAX_PARENTS, ModelClass, VersionSpace


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
