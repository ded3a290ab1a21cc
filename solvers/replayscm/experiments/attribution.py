"""Whether the evidence decides the verdict: the clean behaviour in stated worlds, by exact ratios.

Noise-free a verdict is decided iff all members agree. Under noise it is decided iff one behaviour has a posterior of at
least a threshold; tried are the behaviours of drawn members, each settled by one ratio. The top behaviour is proven
once the behaviours that were not tried have less than it together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from random import Random

from calibrant.dsl.replayscm.episode import clean_rows
from calibrant.dsl.replayscm.extensions.reference import EvidenceWorld, Mechanisms
from calibrant.solvers.replayscm.hidden.mass import exact_mass
from calibrant.solvers.replayscm.hidden.members import posterior_sampler
from calibrant.solvers.replayscm.noise.posterior import DECIDED, Posterior

NUM_TRIED_DRAWS = 8  # a behaviour of share 0.99 is missed by all with probability 10**-16
NUM_RANKED_DRAWS = 400  # a behaviour of share 0.05 is missed by all with probability 1e-9
MAX_WEIGHED = 64  # of the behaviours drawn, most frequent first: 5 ms each at 10 variables

AskedWorlds = Sequence[tuple[Mapping[str, int], Sequence[int]]]
"""Constants and contexts of the worlds whose clean rows are the verdict."""

Behaviour = tuple[tuple[str, ...], ...]
"""Clean rows, by world."""


@dataclass(frozen=True)
class BehaviourVerdict:
    """The top behaviour among those tried.

    rows: its clean rows, by world; share: its exact posterior; is_decided: at the threshold that `threshold` names
    upper: largest posterior that any behaviour can have, tried or not
    """

    rows: Behaviour
    share: Fraction
    is_decided: bool
    threshold: Fraction
    upper: Fraction

    @property
    def is_proved(self) -> bool:
        """Whether no behaviour is more probable."""
        return self.share == self.upper


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


def decide_behaviour(posterior: Posterior, worlds: AskedWorlds, rng: Random) -> BehaviourVerdict:
    """Return the verdict from a few draws; `ValueError` for an empty posterior."""
    sampler = posterior_sampler(posterior)
    # a miss by the draws can leave a verdict undecided, not wrong
    shares = behaviour_shares(posterior, worlds, [sampler.draw(rng) for _ in range(NUM_TRIED_DRAWS)])
    return _verdict(posterior, shares)


def rank_behaviours(
    posterior: Posterior, worlds: AskedWorlds, rng: Random, maps: Sequence[Mechanisms] = ()
) -> BehaviourVerdict:
    """Return the verdict after weighing behaviours, most frequent first, until none left can be more probable.

    At most MAX_WEIGHED are weighed; the verdict's bound covers the others. `ValueError` for an empty posterior.

    maps: SCMs whose behaviours are weighed before those of drawn members
    """
    scm_class, sampler, whole = posterior.scm_class, posterior_sampler(posterior), exact_mass(posterior)

    def behaviour(member: Mechanisms) -> Behaviour:
        return tuple(clean_rows(scm_class, member, do, contexts) for do, contexts in worlds)

    counts = Counter(behaviour(sampler.draw(rng)) for _ in range(NUM_RANKED_DRAWS))
    first = dict.fromkeys(map(behaviour, maps))
    ranked = [*first, *sorted(counts.keys() - first.keys(), key=lambda rows: (-counts[rows], rows))]
    shares: dict[Behaviour, Fraction] = {}
    for rows in ranked[:MAX_WEIGHED]:
        shares[rows] = _clean_mass(posterior, worlds, rows) / whole
        if max(shares.values()) >= 1 - sum(shares.values()):
            break
    return _verdict(posterior, shares)


def _verdict(posterior: Posterior, shares: Mapping[Behaviour, Fraction]) -> BehaviourVerdict:
    threshold = Fraction(1) if posterior.scm_class.noise.is_silent else DECIDED
    top = max(shares, key=shares.__getitem__)
    upper = max(shares[top], 1 - sum(shares.values(), Fraction(0)))
    return BehaviourVerdict(top, shares[top], shares[top] >= threshold, threshold, upper)
