"""Attribution of answers to extended items: whether the evidence decided the clean held-out behaviour.

Noise-free it is decided if all members agree. Under noise, if one behaviour has a posterior of at least 99/100. Exact
ratios settle the behaviour of the most probable map and those of drawn members, until none left can be more probable.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from calibrant.audits.attribution import Attribution
from calibrant.dsl.episode import Step
from calibrant.dsl.replayscm.episode import clean_rows, steps_evidence, task_class, worlds_evidence
from calibrant.dsl.replayscm.extensions.extension import MechanismClass
from calibrant.dsl.replayscm.extensions.reference import EvidenceWorld, Mechanisms
from calibrant.dsl.replayscm.item import Problem
from calibrant.dsl.replayscm.scm import local_function
from calibrant.solvers.budget import BudgetSpent
from calibrant.solvers.replayscm.experiments.shares import (
    AskedWorlds,
    BehaviourVerdict,
    decide_behaviour,
    rank_behaviours,
)
from calibrant.solvers.replayscm.hidden.mass import count_members
from calibrant.solvers.replayscm.noise.best_map import best_map
from calibrant.solvers.replayscm.noise.posterior import Posterior


@dataclass(frozen=True)
class ExtendedDecision:
    """Decision of the held-out behaviour by the evidence.

    verdict: the top behaviour
    is_true: whether it is gold's; None without gold, and under noise where a more probable one is not excluded
    members: SCMs of positive posterior; in_words: the class
    """

    verdict: BehaviourVerdict
    is_true: bool | None
    members: int
    in_words: str
    is_noisy: bool

    def attribution(self, *, fits: bool | None, correct: bool) -> Attribution:
        """Attribute an answer; fits: whether it agrees with all evidence, not asked under noise."""
        verdict, fits = self.verdict, None if self.is_noisy else fits
        posterior = float(verdict.share) if self.is_noisy else None
        upper = float(verdict.upper) if self.is_noisy and not verdict.is_proved else None
        return Attribution(verdict.is_decided, correct, fits, self.members, self.in_words, posterior, upper)


def item_evidence(problem: Problem, steps: Sequence[Step[Any]]) -> list[EvidenceWorld]:
    """Return the worlds that an answer rests on: those that steps have shown, or those of a passive item."""
    scm_class = task_class(problem.task)
    if problem.task.extension is not None and problem.task.extension.is_episode:
        return steps_evidence(steps)
    return worlds_evidence(scm_class, problem.task.training.worlds)


def heldout_requests(problem: Problem, scm_class: MechanismClass) -> AskedWorlds:
    """Return constants and contexts of the held-out worlds; targets set row by row are constants of single rows."""
    requests = []
    places = [scm_class.observed.index(root) for root in scm_class.roots]
    for evidence in worlds_evidence(scm_class, problem.sealed.heldout.worlds):
        contexts = [sum(int(row[place]) << i for i, place in enumerate(places)) for row in evidence.rows]
        requests.append((evidence.constants, contexts))
    return requests


def decide_extended(problem: Problem, steps: Sequence[Step[Any]]) -> ExtendedDecision | None:
    """Return what the evidence decides; None without held-out worlds, for an empty posterior and out of budget."""
    scm_class = task_class(problem.task)
    requests = heldout_requests(problem, scm_class)
    if not requests:
        return None
    posterior = Posterior(scm_class).condition(*item_evidence(problem, steps))
    is_noisy = not scm_class.noise.is_silent
    try:
        members = count_members(posterior)
        if not members:
            return None
        rng = Random(f"{problem.id}|attribution")
        if is_noisy:
            verdict = rank_behaviours(posterior, requests, rng, [_most_probable(posterior, problem)])
        else:
            verdict = decide_behaviour(posterior, requests, rng)
    except BudgetSpent:
        return None
    gold = problem.sealed.gold
    is_true = None
    if gold is not None and (verdict.is_proved or not is_noisy):
        functions = gold.local_functions
        is_true = verdict.rows == tuple(clean_rows(scm_class, functions, do, contexts) for do, contexts in requests)
    return ExtendedDecision(verdict, is_true, members, scm_class.describe(), is_noisy)


def _most_probable(posterior: Posterior, problem: Problem) -> Mechanisms:
    formulas = best_map(posterior, problem.task.grammar).formulas
    return {v: local_function(formula) for v, formula in formulas.items()}
