"""Noisy weights as a score: optimum and search against all graphs."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import log
from random import Random

import numpy as np
import pytest

from calibrant.baselines.replayscm.structure import NoisyWeightScores
from calibrant.baselines.structure_learning.graph import Frame, is_acyclic, root_constraints
from calibrant.baselines.structure_learning.score_optimum import ScoreOptimum
from calibrant.baselines.structure_learning.search import HillClimbing, learn
from calibrant.dsl.replayscm.disclosure import HiddenOrder
from calibrant.dsl.replayscm.extensions.extension import MechanismClass, Prior, known_rate
from calibrant.solvers.replayscm.noise.posterior import Posterior
from tests.support.replayscm.extensions.random_items import random_member, random_worlds

RATE = Fraction(1, 10)


def _posterior(num_vars: int, seed: int) -> Posterior:
    observed = tuple(f"X{i}" for i in range(num_vars))
    roots = observed[:2]
    scm_class = MechanismClass(observed, roots, HiddenOrder(observed, roots), 2, Prior.BY_PARENTS, known_rate(RATE))
    rng = Random(seed)
    return Posterior(scm_class).condition(*random_worlds(rng, scm_class, random_member(rng, scm_class), 6, 4))


def _scores(posterior: Posterior) -> NoisyWeightScores:
    words = np.array([row.word for row in posterior.rows], np.uint64)
    clamped = np.array([row.clamped for row in posterior.rows], np.uint64)
    frame = Frame(posterior.scm_class.observed, words, clamped)
    return NoisyWeightScores(frame, RATE, roots=0b11, max_parents=2)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_optimum_is_the_most_probable_graph(seed: int) -> None:
    posterior = _posterior(5, seed)
    scores = _scores(posterior)
    constraints = root_constraints(posterior.scm_class.observed, posterior.scm_class.roots, max_parents=2)
    optimum = ScoreOptimum(scores, constraints)
    (term,) = posterior.terms()
    names = posterior.scm_class.observed
    orders = optimum.posteriors().arcs().frequency()
    for (parent, child), share in posterior.edges.items():  # the same but for the number of orders of a graph
        assert abs(orders[names.index(parent), names.index(child)] - float(share)) < 0.15
    scale = log(term.factor.numerator) - log(term.factor.denominator)
    totals = []
    for choice in product(*(options.items() for options in term.weights.options)):
        masks = dict(zip(term.weights.endogenous, (mask for mask, _ in choice), strict=True))
        if is_acyclic(tuple(masks.get(v, 0) for v in range(len(names)))):
            totals.append(sum(log(weight) for _, weight in choice) + scale)
    best = optimum.best()
    climbed = learn(scores, constraints, HillClimbing())
    assert climbed.score <= best.score + 1e-9
    assert scores.total(best.dag) == pytest.approx(best.score)
    assert best.score == pytest.approx(max(totals), abs=1e-9)


def test_what_has_no_noisy_weights() -> None:
    scores = _scores(_posterior(4, 1))
    assert scores.local(2, 0b1011) == -np.inf  # three parents of a class of two
    assert scores.local(0, 0b10) == -np.inf  # a root
    assert scores.local(0, 0) == 0
    with pytest.raises(ValueError, match="rate"):
        NoisyWeightScores(scores.frame, Fraction(0))
    wide = Frame(tuple(f"X{i}" for i in range(13)), np.zeros(1, np.uint64), np.zeros(1, np.uint64))
    with pytest.raises(ValueError, match="13 variables"):
        NoisyWeightScores(wide, RATE)
