"""Instances from nothing: the paper's Algorithms 1 to 3, every accepted instance with its audit.

A latent SCM that can be accepted (dsl.replayscm.generation.scms); training worlds that leave no shortcut, with restarts
(audits.replayscm.generation.training); held-out worlds; every filter (audits.replayscm.generation.acceptance); worlds
against local alternatives (audits.replayscm.generation.disambiguation); the bounded audits beside exact counts
(audits.replayscm.generation.record).

Each instance draws from one `random.Random`, seeded by the stratum's name and the seed: the same arguments give the
same bytes. Worlds of targeted disambiguation come last and change nothing before them, so with `max_added` 0 the same
seed gives the same instance without them: the paper's base cohort, and what the released generator is comparable with.

Audits are of the instance as it is written to a file.

Departures are named by the module that departs. Here: an SCM that fails with all of its populations is replaced by
another, where the published generator never changes the SCM of a seed and ends without an instance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from random import Random

from calibrant.audits.replayscm.generation.acceptance import list_unmet, reduces_shortcuts, sample_heldout
from calibrant.audits.replayscm.generation.alternatives import local_alternatives
from calibrant.audits.replayscm.generation.disambiguation import Disambiguation, separating_worlds
from calibrant.audits.replayscm.generation.plans import MAX_ADDED_WORLDS, StratumPlan, plan_for
from calibrant.audits.replayscm.generation.record import Effort, GenerationAudit, evidence_audit
from calibrant.audits.replayscm.generation.training import Training, TrainingChoice
from calibrant.dsl.replayscm.generation.problems import disclose_problem, problem_of
from calibrant.dsl.replayscm.generation.scms import LatentScm, sample_scm
from calibrant.dsl.replayscm.generation.strata import Stratum
from calibrant.dsl.replayscm.generation.worlds import (
    Drawn,
    Evidence,
    Population,
    num_functions,
    sample_population,
    with_shortcuts,
)
from calibrant.dsl.replayscm.item import Problem
from calibrant.dsl.replayscm.pools.files import as_written


@dataclass(frozen=True)
class Generated:
    """An accepted instance and its audit, which is of this disclosure."""

    problem: Problem
    audit: GenerationAudit

    def __repr__(self) -> str:
        counts = ", ".join(f"{count} at k <= {k}" for k, count in self.audit.final.counts.items())
        return f"<Generated {self.problem!r}, members: {counts}>"


@dataclass(frozen=True)
class _Accepted:
    """An SCM with worlds that pass every filter, before any is added. training_sets: how many were drawn for it."""

    latent: LatentScm
    population: Population
    training: Training
    heldout: tuple[Drawn, ...]
    training_sets: int

    def evidence(self, added: Sequence[Drawn]) -> Evidence:
        training, heldout = (*self.training.draws, *added), self.heldout
        return Evidence(
            tuple(draw.world for draw in training),
            tuple(draw.world for draw in heldout),
            {draw.world.id: draw.environment for draw in (*training, *heldout)},
        )


def generate(
    stratum: Stratum,
    seed: int,
    *,
    setting: str = "hidden-order",
    max_added: int = MAX_ADDED_WORLDS,
    plan: StratumPlan | None = None,
) -> Generated:
    """Return the instance of that seed under one of the sampler's SETTINGS; SCM and worlds are the same in all of them.

    max_added: how many worlds targeted disambiguation may add
    plan: budgets and filters, if not the stratum's own
    """
    plan = plan or plan_for(stratum)
    rng = Random(f"generate:{stratum.name}:{seed}")
    accepted, effort = _draw_accepted(stratum, plan, rng)
    separation = _separate(stratum, plan, accepted, max_added, rng)
    name = f"GEN_{stratum.name}_{seed}"
    base, final = (
        as_written(
            disclose_problem(problem_of(stratum, name, seed, accepted.latent, accepted.evidence(added)), setting)
        )
        for added in ((), separation.added)
    )
    before = evidence_audit(stratum, base)
    after = evidence_audit(stratum, final) if separation.added else before
    stages = {**accepted.training.stages, **{draw.world.id: "disambiguation" for draw in separation.added}}
    survivors = accepted.training.survivors
    audit = GenerationAudit(
        effort,
        stages,
        tuple(num_functions(pool) for pool in survivors),
        tuple(len(with_shortcuts(pool)) for pool in survivors),
        separation.num_left,
        before,
        after,
    )
    return Generated(final, audit)


def _draw_accepted(stratum: Stratum, plan: StratumPlan, rng: Random) -> tuple[_Accepted, Effort]:
    for scms in count(1):
        latent = sample_scm(stratum, rng)
        for populations in range(1, plan.attempts + 1):
            accepted = _attempt(stratum, plan, latent, rng)
            if accepted is not None:
                return accepted, Effort(scms, populations, accepted.training_sets)
    raise AssertionError("counting ended")


def _attempt(stratum: Stratum, plan: StratumPlan, latent: LatentScm, rng: Random) -> _Accepted | None:
    """Return one population: training sets until one has no shortcuts left, its held-out worlds, and all filters."""
    population = sample_population(stratum, latent.model, rng)
    for restart in range(1, plan.restarts + 1):
        choice = TrainingChoice(stratum, plan, latent, population, rng)
        training = choice.training()
        if reduces_shortcuts(stratum, plan, latent, training):
            heldout = sample_heldout(plan, choice.proposer)
            if heldout is None:
                return None
            accepted = _Accepted(latent, population, training, heldout, restart)
            return None if any(list_unmet(stratum, plan, latent, accepted.evidence(()))) else accepted
    return None


def _separate(stratum: Stratum, plan: StratumPlan, accepted: _Accepted, max_added: int, rng: Random) -> Disambiguation:
    """Return worlds against local alternatives, none of which breaks a filter or repeats a signature."""
    evidence = accepted.evidence(())
    used = {world.intervention.signature for world in (*evidence.training, *evidence.heldout)}

    def admits(added: Sequence[Drawn]) -> bool:
        signatures = {draw.world.intervention.signature for draw in added}
        new = len(signatures) == len(added) and not signatures & used
        return new and not any(list_unmet(stratum, plan, accepted.latent, accepted.evidence(added)))

    alternatives = local_alternatives(accepted.latent, stratum.max_parents, evidence.training)
    return separating_worlds(accepted.population, alternatives, max_added, admits, rng)
