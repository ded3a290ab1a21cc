"""Draws and masses in doubles against exact weights."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from math import log, sqrt
from random import Random

import pytest

from calibrant.dsl.replayscm.extensions.extension import NoiseKind, NoiseModel
from calibrant.dsl.replayscm.extensions.reference import EvidenceWorld, enumerate_scms
from calibrant.solvers.replayscm.hidden.members import posterior_sampler
from calibrant.solvers.replayscm.noise.posterior import ApproximateMasses, Posterior
from tests.support.replayscm.extensions.random_items import random_class, random_member, random_worlds

GRID = ((Fraction(0), Fraction(1, 4)), (Fraction(1, 10), Fraction(1, 2)), (Fraction(1, 3), Fraction(1, 4)))


@pytest.mark.parametrize("kind", ["rate", "shared", "each", "hidden", "null", "silent", "silent null"])
def test_members_come_by_their_posterior(kind: str) -> None:
    rng = Random(kind)
    stated = None if "null" in kind else 2
    hidden = int(kind not in ("rate", "shared", "each"))
    scm_class = random_class(
        rng,
        3 + hidden,
        num_roots=1 + hidden,
        num_hidden=hidden,
        max_parents=1,
        stated=stated,
        rate=None if "silent" in kind else Fraction(1, 5),
    )
    if kind in ("shared", "each"):
        scm_class = replace(scm_class, noise=NoiseModel(NoiseKind(kind), GRID))
    worlds = random_worlds(rng, scm_class, random_member(rng, scm_class), 2, 2)
    posterior = Posterior(scm_class).condition(*worlds)
    shares = {
        tuple(sorted(member.items())): posterior.likelihood(member) / posterior.mass
        for member, _ in enumerate_scms(scm_class)
    }
    assert sum(shares.values()) == 1
    sampler, number = posterior_sampler(posterior), 4_000
    counts = Counter(tuple(sorted(sampler.draw(rng).items())) for _ in range(number))
    assert counts.keys() <= {key for key, share in shares.items() if share}
    for key, share in shares.items():
        deviation = sqrt(number * float(share) * (1 - float(share)))
        assert abs(counts[key] - number * float(share)) <= 5 * deviation + 3


@pytest.mark.parametrize(("observed", "max_parents", "num_worlds"), [(6, 3, 10), (7, 4, 12), (9, 4, 24)])
def test_masses_in_doubles(observed: int, max_parents: int, num_worlds: int) -> None:
    rng = Random(observed)
    scm_class = random_class(rng, observed, num_roots=3, max_parents=max_parents, rate=Fraction(1, 20))
    worlds = random_worlds(rng, scm_class, random_member(rng, scm_class), num_worlds, 8)
    posterior = Posterior(scm_class).condition(*worlds[:-1])
    masses = ApproximateMasses(posterior)
    exact = posterior.mass
    assert masses.log_mass == pytest.approx(log(exact.numerator) - log(exact.denominator), abs=1e-9)
    after = posterior.condition(worlds[-1])
    reading = [(row.word, row.clamped) for row in after.rows[-8:]]
    probability = after.mass / exact
    expected = log(probability.numerator) - log(probability.denominator)
    assert masses.log_probabilities([reading, reading[:0], reading]) == pytest.approx([expected, 0, expected], abs=1e-9)


def test_masses_in_doubles_on_a_grid() -> None:
    rng = Random(5)
    scm_class = replace(random_class(rng, 4, num_roots=1), noise=NoiseModel(NoiseKind.SHARED, GRID))
    posterior = Posterior(scm_class).condition(EvidenceWorld({}, ("0110", "1011")))
    mass = posterior.mass
    assert ApproximateMasses(posterior).log_mass == pytest.approx(
        log(mass.numerator) - log(mass.denominator), abs=1e-12
    )
