"""Exact shares and bits: expected ones of a world, those of a behaviour, and the entropy of a posterior.

Share: sum over readings y of P(y)**2 / (e**2 + (1 - e)**2)**cells for rate e, its posterior mean on a grid. At most 1,
and 1 iff all members have one law. Bits: H(Y) - cells * h(e), which is 0 in the same case.

Noise-free a verdict is decided iff all members agree. Under noise it is decided iff one behaviour has a posterior of at
least a threshold; tried are the behaviours of drawn members, each settled by one ratio. The top behaviour is proven
once the behaviours that were not tried have less than it together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import fsum, log2
from random import Random
from statistics import fmean, stdev
from typing import NamedTuple

from calibrant.dsl.replayscm.episode import clean_rows
from calibrant.dsl.replayscm.extensions.extension import MechanismClass, NoiseKind, Prior
from calibrant.dsl.replayscm.extensions.reference import EvidenceWorld, Mechanisms
from calibrant.solvers.acyclic.least import Mask
from calibrant.solvers.replayscm.hidden.mass import count_members, exact_mass
from calibrant.solvers.replayscm.hidden.members import posterior_sampler
from calibrant.solvers.replayscm.noise.local_weights import target_mask
from calibrant.solvers.replayscm.noise.posterior import DECIDED, Posterior, free_bits, reading_probabilities

# --- Expected share left and expected bits of a world: exact, by listing its readings ---------------------------------
BITS_TOLERANCE = 1e-9  # differences of bits below this are rounding: the first candidate of equals is taken


def request_rows(
    scm_class: MechanismClass, constants: Mapping[str, int], contexts: Sequence[int]
) -> list[tuple[int, Mask]]:
    """Return the fixed part and the clamped bits of each row of a world that is asked for."""
    clamped = target_mask(scm_class, constants)
    values = sum(bit << scm_class.observed.index(variable) for variable, bit in constants.items())
    places = [scm_class.observed.index(root) for root in scm_class.roots]
    rows = []
    for context in contexts:
        word = sum((context >> i & 1) << place for i, place in enumerate(places))
        rows.append((word & ~clamped | values, clamped))
    return rows


def expected_bits(posterior: Posterior, rows: Sequence[tuple[int, Mask]]) -> float:
    """Return the bits that a world's reading is expected to tell of the SCM; `BudgetSpent` for too many readings.

    On a grid the noise entropy is that of each rate, averaged over the rates' posterior. `ValueError` for an
    independent unknown rate of each variable.
    """
    if posterior.scm_class.noise.kind is NoiseKind.EACH:
        raise ValueError("bits need a rate that is common to all variables")
    probabilities = reading_probabilities(posterior, rows).values()
    # doubles: only compared, within BITS_TOLERANCE
    entropy = -fsum(float(p) * log2(p) for p in probabilities)
    grid, cells = posterior.scm_class.noise.grid, num_free_cells(posterior, rows)
    weights = [Fraction(1)] if len(grid) == 1 else list(posterior.noise_posterior)
    noise = fsum(float(weight) * binary_entropy(float(rate)) for (rate, _), weight in zip(grid, weights, strict=True))
    return entropy - cells * noise


def num_free_cells(posterior: Posterior, rows: Sequence[tuple[int, Mask]]) -> int:
    """Return the number of cells of a world that noise can flip."""
    return sum(len(free_bits(posterior, clamped)) for _, clamped in rows)


def binary_entropy(rate: float) -> float:
    """Return the entropy of a flip, in bits."""
    return 0.0 if rate in (0, 1) else -rate * log2(rate) - (1 - rate) * log2(1 - rate)


def best_by_bits(bits: Sequence[float]) -> int | None:
    """Return the first candidate within rounding of the most bits; None if none has any."""
    top = max(bits, default=0.0)
    # bits are 0 iff all members have one law, and rounding may hide that
    if top <= BITS_TOLERANCE:
        return None
    return next(place for place, value in enumerate(bits) if value >= top - BITS_TOLERANCE)


# --- Entropy of a posterior over SCMs, in bits ------------------------------------------------------------------------
NUM_DRAWS = 256  # the logarithms of posteriors spread over a few bits: a standard error of about 0.2


class Bits(NamedTuple):
    """An entropy.

    error: its standard error; 0 where it is exact
    """

    value: float
    error: float


def posterior_bits(posterior: Posterior, seed: str, num_draws: int = NUM_DRAWS) -> Bits:
    """Return the entropy of a posterior; `ValueError` for an empty one.

    Exact by counting without noise under a uniform prior; else the mean surprise of drawn members, which is unbiased.
    """
    scm_class = posterior.scm_class
    if scm_class.noise.is_silent and scm_class.prior is Prior.UNIFORM:
        members = count_members(posterior)
        if not members:
            raise ValueError("no SCM has positive posterior")
        return Bits(log2(members), 0.0)
    rng, sampler = Random(seed), posterior_sampler(posterior)
    whole = _log2(exact_mass(posterior))
    surprises = []
    for _ in range(num_draws):
        member = sampler.draw(rng)
        surprises.append(whole - _log2(posterior.likelihood(member)))  # prior included
    return Bits(fmean(surprises), stdev(surprises) / num_draws**0.5)


def _log2(value: Fraction) -> float:
    # of numerator and denominator apart: their quotient may underflow
    return log2(value.numerator) - log2(value.denominator)


# --- Whether the evidence decides the verdict: the clean behaviour in stated worlds, by exact ratios ------------------
NUM_TRIED_DRAWS = 8  # a behaviour of share 0.99 is missed by all with probability 10**-16
NUM_RANKED_DRAWS = 400  # a behaviour of share 0.05 is missed by all with probability 1e-9
MAX_WEIGHED = 64  # behaviours weighed of those drawn, most frequent first: 5 ms each at 10 variables

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
