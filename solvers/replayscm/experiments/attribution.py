"""Whether the evidence decides the verdict: the clean behaviour in stated worlds, by exact ratios.

Noise-free a verdict is decided iff all members agree. Under noise it is decided iff one behaviour has a posterior of at
least a threshold; tried are the behaviours of the most probable map and of drawn members, each settled by one ratio.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from random import Random

from calibrant.dsl.replayscm.extensions.local_functions import clean_rows
from calibrant.dsl.replayscm.extensions.reference import EvidenceWorld, Mechanisms
from calibrant.solvers.replayscm.hidden.exact_mass import exact_mass
from calibrant.solvers.replayscm.hidden.sampling import posterior_sampler
from calibrant.solvers.replayscm.noise.posterior import Posterior
from calibrant.solvers.replayscm.noise.predictions import DECIDED

NUM_TRIED_DRAWS = 8  # a behaviour of share 0.99 is missed by all with probability 10**-16

AskedWorlds = Sequence[tuple[Mapping[str, int], Sequence[int]]]
"""Constants and contexts of the worlds whose clean rows are the verdict."""

Behaviour = tuple[tuple[str, ...], ...]
"""Clean rows, by world."""


@dataclass(frozen=True)
class BehaviourVerdict:
    """The top behaviour among those tried.

    rows: its clean rows, by world; share: its exact posterior; is_decided: at the threshold that `threshold` names
    """

    rows: Behaviour
    share: Fraction
    is_decided: bool
    threshold: Fraction


def behaviour_share(posterior: Posterior, worlds: AskedWorlds, rows: Sequence[Sequence[str]]) -> Fraction:
    """Return the posterior of a clean behaviour: the mass with hard rows over the mass."""
    return _clean_mass(posterior, worlds, rows) / exact_mass(posterior)


def behaviour_shares(
    posterior: Posterior, worlds: AskedWorlds, members: Iterable[Mechanisms]
) -> dict[Behaviour, Fraction]:
    """Return the behaviours of these members with their posteriors, each by one exact ratio."""
    scm_class, whole = posterior.scm_class, exact_mass(posterior)
    behaviours = dict.fromkeys(
        tuple(clean_rows(scm_class, member, do, contexts) for do, contexts in worlds) for member in members
    )
    return {behaviour: _clean_mass(posterior, worlds, behaviour) / whole for behaviour in behaviours}


def _clean_mass(posterior: Posterior, worlds: AskedWorlds, rows: Sequence[Sequence[str]]) -> Fraction:
    """Return the mass with a clean behaviour as hard rows."""
    hard = [EvidenceWorld(do, tuple(texts), is_clean=True) for (do, _), texts in zip(worlds, rows, strict=True)]
    return exact_mass(posterior.condition(*hard))


def decide_behaviour(
    posterior: Posterior, worlds: AskedWorlds, rng: Random, maps: Sequence[Mechanisms] = ()
) -> BehaviourVerdict:
    """Return the verdict; `ValueError` for an empty posterior.

    maps: whose behaviours are tried beside those of drawn members; noise-free one member is enough
    """
    threshold = Fraction(1) if posterior.scm_class.noise.is_silent else DECIDED
    sampler = posterior_sampler(posterior)
    # noise-free the threshold is 1: if any behaviour reaches it, that of every member does, so one is enough
    num_draws = 0 if posterior.scm_class.noise.is_silent and maps else NUM_TRIED_DRAWS
    # a miss by the draws can leave a verdict undecided, not wrong
    shares = behaviour_shares(posterior, worlds, [*maps, *(sampler.draw(rng) for _ in range(num_draws))])
    top = max(shares, key=shares.__getitem__)
    return BehaviourVerdict(top, shares[top], shares[top] >= threshold, threshold)
