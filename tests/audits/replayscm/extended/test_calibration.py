"""Stated probabilities come true as often as stated, on items whose gold is drawn from the prior."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from random import Random

import pytest

from calibrant.audits.replayscm.extended.items import calibration_bins
from calibrant.dsl.replayscm.episode import clean_rows
from calibrant.dsl.replayscm.extensions.extension import NoiseKind, NoiseModel
from calibrant.solvers.replayscm.experiments.shares import decide_behaviour
from calibrant.solvers.replayscm.hidden.members import posterior_sampler
from calibrant.solvers.replayscm.noise.posterior import Posterior
from tests.support.replayscm.extensions.random_items import random_class, random_worlds

NUM_ITEMS = 240  # 3,000 were run when this was written: every bin within two standard errors


def _statements(number: int, seed: int) -> Iterator[tuple[Fraction, bool]]:
    rng = Random(seed)
    for item in range(number):
        hidden = item % 3 == 2
        rate = Fraction(rng.choice((1, 2)), 10)
        scm_class = random_class(rng, 4, num_hidden=int(hidden), max_parents=2 - hidden, rate=rate)
        if item % 3 == 1:
            grid = ((Fraction(1, 10), Fraction(1, 2)), (Fraction(1, 5), Fraction(1, 2)))
            scm_class = replace(scm_class, noise=NoiseModel(NoiseKind.SHARED, grid))
        gold, rates = posterior_sampler(Posterior(scm_class)).draw_with_rates(rng)
        true_rate = next(iter(rates.values()))
        known = replace(scm_class, noise=NoiseModel(NoiseKind.RATE, ((true_rate, Fraction(1)),)))
        evidence = random_worlds(rng, known, gold, rng.randint(1, 5), 3, seed=item)
        asked = [({scm_class.endogenous[0]: 1}, range(4)), ({}, range(4))]
        verdict = decide_behaviour(Posterior(scm_class).condition(*evidence), asked, rng)
        truth = tuple(clean_rows(scm_class, gold, do, contexts) for do, contexts in asked)
        yield verdict.share, verdict.rows == truth


def test_statements_come_true_as_often_as_stated() -> None:
    bins = calibration_bins(_statements(NUM_ITEMS, 1))
    assert sum(one_bin.number for one_bin in bins) == NUM_ITEMS
    for one_bin in bins:
        assert abs(one_bin.deviation) < 3, one_bin


def test_bins_hold_their_edges() -> None:
    statements = [(Fraction(1, 2), True), (Fraction(1, 2), False), (Fraction(1), True), (Fraction(1, 5), False)]
    first, middle, last = calibration_bins(statements)
    assert (first.lower, first.number, first.num_true) == (0.0, 1, 0)
    assert (middle.lower, middle.number, middle.share_true, middle.deviation) == (0.5, 2, 0.5, 0.0)
    assert (last.upper, last.number, last.deviation) == (1.0, 1, 0.0)
    low, high = middle.interval
    assert (low, high) == pytest.approx((0.0945, 0.9055), abs=1e-3)
    assert last.interval[1] == pytest.approx(1)
