"""SCMs drawn from the posterior of an extended item, for estimates that depend on the evidence and not on names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from random import Random
from typing import TypeAlias

from calibrant.dsl.replayscm.disclosure import natural
from calibrant.dsl.replayscm.episode import evidence_panel_world, task_class, worlds_evidence
from calibrant.dsl.replayscm.extensions.reference import EvidenceWorld
from calibrant.dsl.replayscm.item import Task
from calibrant.dsl.replayscm.world import Panel
from calibrant.solvers.replayscm.canonical import CanonicalTask, canonical_task
from calibrant.solvers.replayscm.hidden.members import GroupedSampler, meaning, posterior_sampler
from calibrant.solvers.replayscm.noise.posterior import Posterior

Edge: TypeAlias = tuple[str, str]  # cause, effect


@dataclass(frozen=True)
class DrawnScms:
    """Statistics of SCMs drawn from a posterior.

    number: of draws, 0 where no SCM has any mass; num_meanings: of different meanings among them
    edges: share of the draws with each edge, the mean over edges that a symmetry of the evidence exchanges
    mass: of the posterior, where drawing has summed it: without noise and with hidden variables
    """

    number: int
    num_meanings: int
    edges: Mapping[Edge, Fraction]
    mass: Fraction | None = None


def draw_scms(task: Task, evidence: Sequence[EvidenceWorld], number: int) -> DrawnScms:
    """Draw from the posterior of a task after this evidence: in canonical form, so that names and orders do not count.

    `BudgetSpent` where hidden columns are too many.
    """
    canonical, worlds = canonical_evidence(task, evidence)
    canonical_class = task_class(canonical.task)
    posterior = Posterior(canonical_class).condition(*worlds)
    sampler, rng = posterior_sampler(posterior), Random("why")
    try:
        scms = [sampler.draw(rng) for _ in range(number)]
    except ValueError:  # the posterior is empty
        return DrawnScms(0, 0, {}, Fraction(0))
    counts = Counter((cause, effect) for scm in scms for effect, local in scm.items() for cause in local.parents)
    shares = _mean_shares({edge: Fraction(count, number) for edge, count in counts.items()}, canonical.symmetries)
    names, hidden = canonical.names, tuple(canonical_class.hidden_parents)
    return DrawnScms(
        number,
        len({meaning(scm, hidden) for scm in scms}),
        {(names[cause], names[effect]): share for (cause, effect), share in shares.items()},
        sampler.mass if isinstance(sampler, GroupedSampler) else None,
    )


def canonical_evidence(task: Task, evidence: Sequence[EvidenceWorld]) -> tuple[CanonicalTask, list[EvidenceWorld]]:
    """Return the task with this evidence as its training worlds, in canonical form, and the evidence in that form."""
    scm_class = task_class(task)
    worlds = tuple(evidence_panel_world(f"world_{k}", scm_class, world) for k, world in enumerate(evidence))
    panel = Panel(natural(scm_class.observed), worlds)
    canonical = canonical_task(replace(task, training=panel, shares_units=False))
    return canonical, worlds_evidence(task_class(canonical.task), canonical.task.training.worlds)


def _mean_shares(shares: Mapping[Edge, Fraction], symmetries: Sequence[Mapping[str, str]]) -> dict[Edge, Fraction]:
    """Return the mean share over each orbit of edges, which the posterior gives equal shares."""
    means: dict[Edge, Fraction] = {}
    for edge in shares:
        if edge in means:
            continue
        orbit = [edge]
        for cause, effect in orbit:  # grows while it is gone through
            images = [(image[cause], image[effect]) for image in symmetries]
            orbit += [image for image in dict.fromkeys(images) if image not in orbit]
        means |= dict.fromkeys(
            orbit, sum((shares.get(image, Fraction(0)) for image in orbit), Fraction(0)) / len(orbit)
        )
    return means
