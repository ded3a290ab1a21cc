"""Defects of extended items, each on an item that has it and on one that has not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from random import Random
from typing import Any

import pytest

from calibrant.audits.replayscm.extended.generate import sample_extended
from calibrant.audits.replayscm.extended.items import (
    Finding,
    TriedBehaviours,
    audit_extended,
    calibration_bins,
    lies_in_visible_class,
    state_ambiguous,
)
from calibrant.audits.replayscm.extended.strata import extended_strata
from calibrant.dsl.replayscm.disclosure import HiddenOrder, Ordered
from calibrant.dsl.replayscm.episode import clean_rows
from calibrant.dsl.replayscm.extensions.extension import NoiseKind, NoiseModel
from calibrant.dsl.replayscm.extensions.reference import enumerate_scms, visible_rows
from calibrant.dsl.replayscm.item import Problem
from calibrant.solvers.replayscm.experiments.shares import decide_behaviour
from calibrant.solvers.replayscm.hidden.members import posterior_sampler
from calibrant.solvers.replayscm.noise.posterior import Posterior
from tests.support.replayscm.extensions.problems import random_class, random_member, random_worlds

STRATA = [s for s in extended_strata() if s.shape.base.num_variables == 6]


def _kinds(problem: Problem) -> set[Finding]:
    return {finding.kind for finding in audit_extended(problem)}


def test_passive_items_are_ambiguous_iff_members_disagree() -> None:
    kinds: list[Any] = []
    for stratum in (STRATA[0], STRATA[3], STRATA[12]):
        for seed in range(3):
            problem = sample_extended(stratum, seed, is_episode=False)
            findings = audit_extended(problem)
            kinds.append([finding.kind for finding in findings])
            for finding in findings:
                assert finding.kind is Finding.AMBIGUOUS
                assert finding.share is not None
                assert finding.share < (1 if not stratum.rate else Fraction(99, 100))
                assert finding.is_proved  # the largest share is above 1/100 here, so no other one reaches 99/100
    assert [] in kinds  # 24 worlds of 8 rows decide most


@pytest.mark.parametrize(
    ("shares", "is_proved"),
    [(("1/2",), True), (("1/99", "1/98"), True), (("1/100",), False), (("1/200", "1/400"), False)],
)
def test_ambiguous_under_noise_is_proved_iff_no_untried_behaviour_can_reach_the_threshold(
    shares: tuple[str, ...], is_proved: bool
) -> None:
    tried = TriedBehaviours(max(map(Fraction, shares)), sum(map(Fraction, shares), Fraction(0)))
    finding = state_ambiguous(tried, Fraction(99, 100))
    assert finding.is_proved is is_proved
    assert ("not excluded" in finding.reason) is not is_proved


def test_episodes_are_winnable_and_not_trivial() -> None:
    for place in (0, 1, 6):
        assert not _kinds(sample_extended(STRATA[place], 1)) & {Finding.UNWINNABLE, Finding.TRIVIAL}


def test_a_map_that_one_world_decides_is_trivial() -> None:
    """Without held-out worlds there is one behaviour from the start on."""
    problem = sample_extended(STRATA[0], 2)
    panel = replace(problem.sealed.heldout, worlds=())
    assert Finding.TRIVIAL in _kinds(replace(problem, sealed=replace(problem.sealed, heldout=panel)))


def test_meanings_that_need_no_hidden_variable_by_enumeration() -> None:
    rng = Random(4)
    outcomes: set[bool] = set()
    for _ in range(40):
        scm_class = random_class(rng, 4, num_hidden=1, max_parents=1)
        member = random_member(rng, scm_class)
        visible = random_class(Random(0), 4, max_parents=1)
        order = scm_class.disclosure.order
        disclosure = (
            Ordered(tuple(v for v in order if v != "H1"), scm_class.roots)
            if order
            else HiddenOrder(scm_class.observed, scm_class.roots)
        )
        visible = replace(visible, roots=scm_class.roots, disclosure=disclosure)
        rows = visible_rows(scm_class, member)
        expected = any(visible_rows(visible, other) == rows for other, _ in enumerate_scms(visible))
        assert lies_in_visible_class(scm_class, member) == expected
        outcomes.add(expected)
    assert outcomes == {True, False}


# --- Stated probabilities come true as often as stated, on items whose gold is drawn from the prior -------------------
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
