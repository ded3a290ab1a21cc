"""Expected HeldoutExact of guessers on items with noise or hidden variables and on episodes, by exact masses.

A guess shows the clean behaviour of an SCM of the class in the held-out worlds. Its probability is the mass of the
evidence with these rows as clean ones, over the mass of the evidence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

from calibrant.audits.replayscm.extended.items import heldout_requests, item_evidence
from calibrant.bench.replayscm.episodes import is_episode
from calibrant.dsl.episode import Step
from calibrant.dsl.replayscm.episode import evidence_panel_world, task_class, worlds_evidence
from calibrant.dsl.replayscm.extensions.extension import Prior, Question
from calibrant.dsl.replayscm.item import Problem
from calibrant.dsl.replayscm.world import Panel
from calibrant.solvers.outcome import BudgetSpent
from calibrant.solvers.replayscm.canonical import canonical_task, rename_problem, unchanged_order
from calibrant.solvers.replayscm.experiments.shares import (
    AskedWorlds,
    Behaviour,
    behaviour_share,
    rank_behaviours,
)
from calibrant.solvers.replayscm.hidden.mass import exact_mass
from calibrant.solvers.replayscm.noise.posterior import Posterior

UNKNOWN: dict[str, float | None] = {"uniform": None, "draw": None, "best": None}


def expect_extended(item: Problem, steps: Sequence[Step[Any]]) -> dict[str, float | None]:
    """Return how probably a draw under the stated prior, one under the uniform prior and the best answer are right.

    None for forecasts, out of budget, and for episodes without steps.
    """
    extension = item.task.extension
    assert extension is not None
    if extension.question is Question.FORECAST or not item.sealed.heldout.worlds or (is_episode(item) and not steps):
        return UNKNOWN
    posterior, worlds, gold = _canonical(item, steps)
    uniform = replace(posterior, scm_class=replace(posterior.scm_class, prior=Prior.UNIFORM))
    try:
        if not exact_mass(posterior):
            return UNKNOWN
        draw = behaviour_share(posterior, worlds, gold)
        best = max(draw, rank_behaviours(posterior, worlds, Random(0)).share)
        return {
            "uniform": float(draw if uniform == posterior else behaviour_share(uniform, worlds, gold)),
            "draw": float(draw),
            "best": float(best),
        }
    except BudgetSpent:
        return UNKNOWN


def _canonical(item: Problem, steps: Sequence[Step[Any]]) -> tuple[Posterior, AskedWorlds, Behaviour]:
    """Return the posterior, the held-out requests and their rows over canonical names, so that draws go by no name."""
    scm_class = task_class(item.task)
    evidence = item_evidence(item, steps)
    worlds = tuple(evidence_panel_world(f"w{number}", scm_class, world) for number, world in enumerate(evidence))
    panel = Panel(item.task.variables, worlds)
    names = canonical_task(replace(item.task, training=panel, shares_units=False)).canonical_names
    training = replace(item, task=replace(item.task, training=panel))
    renamed = rename_problem(training, names, unchanged_order(panel), unchanged_order(item.sealed.heldout))
    scm_class = task_class(renamed.task)
    heldout = worlds_evidence(scm_class, renamed.sealed.heldout.worlds)
    posterior = Posterior(scm_class).condition(*worlds_evidence(scm_class, renamed.task.training.worlds))
    return posterior, heldout_requests(renamed, scm_class), tuple(world.rows for world in heldout)
