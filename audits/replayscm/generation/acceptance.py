"""Conditions of acceptance (Algorithm 3 of the paper, steps 3 and 9), and held-out worlds that meet them.

To the conditions of dsl.replayscm.generation.worlds (there every endogenous variable has to vary where it is scored;
the published generator asks it of half of them) come the survivor reduction, the bound on interventions and the balance
of the held-out targets. Bounded audits are measured and reported, not filters: the paper states no threshold for them.

Reading: the paper calls a formula a shortcut only if it differs from the intended mechanism; the published generator
counts equivalents as well and so can never accept some SCMs (dsl.replayscm.generation.scms drops them before any world
is drawn). Here they count as surviving, as in the published pools, but not in the reduction, which they would make
unreachable.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from calibrant.audits.replayscm.exposure import target_novelty
from calibrant.audits.replayscm.generation.plans import StratumPlan
from calibrant.audits.replayscm.generation.proposals import Proposer
from calibrant.audits.replayscm.generation.training import Training, reduction
from calibrant.dsl.replayscm.generation.scms import LatentScm, has_equivalent_shortcut
from calibrant.dsl.replayscm.generation.strata import Stratum
from calibrant.dsl.replayscm.generation.worlds import Drawn, Evidence, rejections, with_shortcuts
from calibrant.dsl.replayscm.world import Intervention, World

HELDOUT_DRAWS = 80  # sets of held-out worlds tried for one training set where their targets are bounded


def reduces_shortcuts(stratum: Stratum, plan: StratumPlan, latent: LatentScm, training: Training) -> bool:
    """Return whether a training set leaves few enough variables with a shortcut and removed enough of the pool."""
    irreducible = sum(has_equivalent_shortcut(stratum, mechanism) for mechanism in latent.model.mechanisms.values())
    few = len(with_shortcuts(training.survivors[-1])) <= stratum.max_survivors
    return few and reduction(training, irreducible) >= plan.min_reduction


def list_unmet(stratum: Stratum, plan: StratumPlan, latent: LatentScm, evidence: Evidence) -> Iterator[str]:
    """Yield every reason why an instance with this evidence is not acceptable; none for an acceptable one."""
    yield from rejections(stratum, latent, evidence)
    if plan.max_intervened is not None:
        for variable in latent.model.endogenous:
            intervened = sum(variable in world.intervention.targets for world in evidence.training)
            if intervened > plan.max_intervened:
                yield f"{variable} is a target in {intervened} training worlds, more than {plan.max_intervened}"
    yield from find_unbalanced(plan, evidence.training, evidence.heldout)


def find_unbalanced(plan: StratumPlan, training: Sequence[World], heldout: Iterable[World]) -> Iterator[str]:
    """Yield held-out worlds whose targets are too like or too unlike those of the training worlds."""
    if plan.novelty is None:
        return
    low, high = plan.novelty
    for world in heldout:
        novelty = target_novelty(world.intervention, training)
        if not low <= novelty <= high:
            yield f"target novelty of {world.id} is {novelty:.3f}, not within {low} to {high}"


def sample_heldout(plan: StratumPlan, proposer: Proposer) -> tuple[Drawn, ...] | None:
    """Draw held-out worlds with distinct signatures, none of them a training world's; new environments, same units.

    Sets of interventions are drawn until one is balanced; None if none of HELDOUT_DRAWS is.
    """
    training = [draw.world for draw in proposer.taken]
    low, high = plan.novelty or (0.0, 1.0)
    for _ in range(HELDOUT_DRAWS):
        interventions = _take_distinct(proposer.interventions(), proposer.stratum.num_worlds)
        if all(low <= target_novelty(intervention, training) <= high for intervention in interventions):
            indexed = enumerate(interventions)
            return tuple(proposer.world(f"heldout_{index:02d}", intervention) for index, intervention in indexed)
    return None


def _take_distinct(proposals: Iterator[Intervention], number: int) -> list[Intervention]:
    """Return the first so many of different signatures."""
    by_signature: dict[object, Intervention] = {}
    while len(by_signature) < number:
        intervention = next(proposals)
        by_signature.setdefault(intervention.signature, intervention)
    return list(by_signature.values())
