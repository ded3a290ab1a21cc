"""Attribution of ReplaySCM answers: whether the training worlds decided how the held-out worlds come out."""

from __future__ import annotations

from audits.attribution import Attribution
from audits.replayscm.ambiguity import headline_parents
from dsl.replayscm.problem import Problem
from solvers.budget import BudgetSpent
from solvers.replayscm.version_space import MAX_PARENTS, ModelClass, VersionSpace


def attributed_answer(problem: Problem, *, fits: bool, correct: bool) -> Attribution | None:
    """Decided: every SCM of the headline class that fits replays the held-out worlds. Reads what is sealed.

    None where there is no gold, where no class that can be counted has it, and where counting is out of reach.
    fits: whether the answer is train-exact
    """
    gold = problem.sealed.gold
    if gold is None or max((len(local.parents) for local in gold.local_functions.values()), default=0) > MAX_PARENTS:
        return None
    model_class = ModelClass(headline_parents(problem))
    space = VersionSpace(problem.task, model_class)
    try:
        members = space.count
        decided = members > 0 and space.agreement(problem.sealed.heldout.worlds) == 1
    except BudgetSpent:
        return None
    return Attribution(decided, correct, fits, members, model_class.describe(problem.task))
