"""Shares of edges of extended items against every SCM of a small class, weighted by the reference."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from random import Random

import pytest

from calibrant.audits.replayscm.extended.generate import sample_extended
from calibrant.audits.replayscm.extended.strata import extended_strata
from calibrant.audits.replayscm.extended.why import (
    DrawnScms,
    ExtendedWhy,
    draw_scms,
    explain_extended,
    explain_posterior,
    percent,
)
from calibrant.bench.lab.replayscm import rename
from calibrant.dsl.replayscm.episode import task_class, worlds_evidence
from calibrant.dsl.replayscm.extensions.reference import enumerate_scms, likelihood
from calibrant.dsl.replayscm.item import Problem
from calibrant.solvers.replayscm.noise.posterior import Posterior
from tests.support.replayscm.extensions.random_items import random_class, random_member, random_worlds

STRATA = {(stratum.rate, index): stratum for index, stratum in enumerate(extended_strata())}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("rate", [None, Fraction(1, 10)])
def test_edges_and_the_most_probable_scm_are_those_of_all_scms(seed: int, rate: Fraction | None) -> None:
    rng = Random(seed)
    scm_class = random_class(rng, 4, rate=rate)
    worlds = random_worlds(rng, scm_class, random_member(rng, scm_class), 2, 4)
    why = explain_posterior("x", Posterior(scm_class).condition(*worlds), (), lambda: pytest.fail("all are summed"))
    rates = dict.fromkeys(scm_class.endogenous, rate or Fraction(0))
    masses = []
    for mechanisms, weight in enumerate_scms(scm_class):
        mass = weight * likelihood(scm_class, mechanisms, worlds, rates)
        if mass:
            masses.append((mass, {(u, v) for v, local in mechanisms.items() for u in local.parents}))
    total = sum(mass for mass, _ in masses)
    edges: Counter[tuple[str, str]] = Counter()
    for mass, pairs in masses:
        for pair in pairs:
            edges[pair] += mass  # type: ignore[assignment]
    assert {(e.cause, e.effect): Fraction(e.fraction) for e in why.edges} == {
        pair: Fraction(mass) / total for pair, mass in edges.items()
    }
    assert int(why.count.lower) == len(masses)
    best = max(mass for mass, _ in masses)
    assert why.top_share == pytest.approx(float(best / total))
    assert why.num_top == str(sum(mass == best for mass, _ in masses))
    assert set(why.decided) == {f"{u} to {v}" for (u, v), mass in edges.items() if mass == total}
    if rate is None:
        assert (why.state == "decided") == (len(masses) == 1)


def explained(index: int, *, is_episode: bool, reveal: bool = False) -> ExtendedWhy:
    stratum = next(stratum for (_, number), stratum in STRATA.items() if number == index)
    return explain_extended(sample_extended(stratum, 1, is_episode=is_episode), reveal_sealed=reveal)


def test_items_of_all_kinds_have_a_reason_and_gold_only_where_asked() -> None:
    for index in (0, 1, 3):  # plain, with a hidden variable, with noise
        plain, revealed = (explained(index, is_episode=index == 1, reveal=flag) for flag in (False, True))
        assert plain.true_edges is None
        assert plain.sealed == ()
        assert revealed.true_edges
        assert plain.reason == revealed.reason
        assert {(e.cause, e.effect) for e in plain.edges} >= set(revealed.true_edges)


@pytest.mark.parametrize("index", [1, 3])  # with a hidden variable, with noise
def test_estimates_do_not_depend_on_names_and_orders(index: int) -> None:
    stratum = next(stratum for (_, number), stratum in STRATA.items() if number == index)
    problem = sample_extended(stratum, 1, is_episode=False)
    estimates = draw_problem(problem)
    assert estimates.number == 20
    for seed in range(2):
        renamed = rename(problem, Random(seed))
        again = draw_problem(renamed.item).edges
        assert again == {(renamed.names[u], renamed.names[v]): share for (u, v), share in estimates.edges.items()}


def draw_problem(problem: Problem) -> DrawnScms:
    evidence = worlds_evidence(task_class(problem.task), problem.task.training.worlds)
    return draw_scms(problem.task, evidence, 20)


def test_a_share_is_only_100_percent_where_it_is_certain() -> None:
    assert percent(Fraction(1)) == "100 %"
    assert percent(1 - Fraction(1, 10**30)) == "above 99.9 %"
    assert percent(Fraction(1, 10**30)) == "below 0.1 %"
    assert percent(Fraction(1, 8)) == "12.5 %"
