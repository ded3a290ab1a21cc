"""Shares of edges of extended items against every SCM of a small class, weighted by the reference."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import product
from random import Random
from typing import Any

import pytest

from calibrant.audits.replayscm.extended.generate import extended_strata, sample_extended
from calibrant.audits.replayscm.extended.why import (
    MAX_EXPERIMENTS,
    DrawnScms,
    ExtendedWhy,
    NextWorlds,
    draw_scms,
    explain_extended,
    explain_posterior,
    next_worlds,
)
from calibrant.audits.why import percent
from calibrant.bench.lab.replayscm import rename
from calibrant.bench.replayscm.why.explainer import extended_advice
from calibrant.dsl.replayscm.episode import ScmEpisode, candidate_worlds, steps_evidence, task_class, worlds_evidence
from calibrant.dsl.replayscm.extensions.extension import MechanismClass
from calibrant.dsl.replayscm.extensions.reference import (
    Mechanisms,
    enumerate_scms,
    likelihood,
    replay_row,
    visible_rows,
)
from calibrant.dsl.replayscm.item import Problem
from calibrant.solvers.replayscm.noise.posterior import Posterior
from tests.support.replayscm.extensions import random_class, random_member, random_worlds, small_problem

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
    assert estimates.num_draws == 20
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


# --- Worlds to ask for next, against every SCM of a small class and every candidate, by the reference -----------------
Meant = tuple[Mechanisms, Any]
"""An SCM with its observed rows under every intervention."""

Answers = Counter[tuple[str, int, int]]
"""Readings with the SCMs and the meanings that they leave."""


def start(problem: Problem) -> NextWorlds:
    return next_worlds(problem.task, steps_evidence(ScmEpisode(problem).steps))


def fitting(problem: Problem) -> list[Mechanisms]:
    """Return the SCMs that show the opening's rows: without noise, those whose replay is the row."""
    scm_class = task_class(problem.task)
    shown = [
        (world.constants, dict(zip(scm_class.observed, map(int, row), strict=True)))
        for world in steps_evidence(ScmEpisode(problem).steps)
        for row in world.rows
    ]

    def fits(scm: Mechanisms) -> bool:
        return all(replay_row(scm_class, scm, row, do).items() >= row.items() for do, row in shown)

    return [scm for scm, _ in enumerate_scms(scm_class) if fits(scm)]


def outcomes(scm_class: MechanismClass, scms: Sequence[Meant], do: Mapping[str, int], contexts: Any) -> Answers:
    """Return what a world may show, by replay."""
    by_reading: dict[str, list[Any]] = {}
    for scm, meaning in scms:
        rows = []
        for context in contexts:
            roots = {root: int(bit) for root, bit in zip(scm_class.roots, context, strict=True)}
            values = replay_row(scm_class, scm, roots, do)
            rows.append("".join(str(values[v]) for v in scm_class.observed))
        by_reading.setdefault(" ".join(rows), []).append(meaning)
    return Counter((reading, len(left), len(set(left))) for reading, left in by_reading.items())


@pytest.mark.parametrize("contexts", ["all", "chosen"])
@pytest.mark.parametrize(("num_hidden", "seeds"), [(0, range(4)), (1, (3, 10))])  # a second each with hidden ones
def test_outcomes_and_ranks_are_those_of_all_scms_and_all_candidates(
    num_hidden: int, seeds: Sequence[int], contexts: str
) -> None:
    compared = 0
    for seed in seeds:
        problem = small_problem(seed, num_hidden=num_hidden, contexts=contexts)
        assert problem.task.extension is not None
        scm_class, following = task_class(problem.task), start(problem)
        if not following.experiments:
            continue
        scms = [(scm, visible_rows(scm_class, scm)) for scm in fitting(problem)]
        every = ["00", "10", "01", "11"]
        ranks = []
        for do in candidate_worlds(scm_class.observed, 2):
            possible = outcomes(scm_class, scms, do, every)
            sizes = [number for _, number, _ in possible.elements()]
            worst = max(meanings for _, _, meanings in possible.elements())
            if len(sizes) > 1:
                ranks.append((worst, float(Fraction(sum(size * size for size in sizes), len(scms)))))
        assert [entry.rank for entry in following.experiments] == sorted(ranks)[:MAX_EXPERIMENTS]
        for entry, action in zip(following.experiments, following.actions, strict=True):
            asked = action.get("contexts", every)
            possible = outcomes(scm_class, scms, action["do"], asked)
            assert possible == Counter((o.reading, int(o.remaining), o.answers) for o in entry.outcomes)
        compared += 1
    assert compared >= 2


def test_the_action_is_accepted_and_its_reading_is_one_of_those_offered() -> None:
    listed = 0
    for contexts, seed in (("drawn", 3), *product(("all", "chosen"), range(8))):
        problem = small_problem(seed, contexts=contexts)
        following, episode = start(problem), ScmEpisode(problem)
        action = following.actions[0] if following.actions else following.estimate and following.estimate.action
        if not action:
            continue
        step = episode.act(action)
        assert step.refused == ""
        if following.experiments:
            assert step.reading is not None
            offered = {outcome.reading: int(outcome.remaining) for outcome in following.experiments[0].outcomes}
            left = explain_extended(problem, episode.steps)
            assert int(left.count.lower) == offered[" ".join(step.reading["rows"])]
            listed += 1
    assert listed >= 8


@pytest.mark.parametrize(("rate", "num_hidden"), [(None, 0), (None, 1), ("1/10", 0)])
def test_names_and_orders_do_not_move_the_choice(rate: str | None, num_hidden: int) -> None:
    for seed in range(2):
        problem = small_problem(seed, rate=rate, num_hidden=num_hidden)
        renamed = rename(problem, Random(seed))
        before, after = start(problem), start(renamed.item)
        assert [entry.rank for entry in before.experiments] == [entry.rank for entry in after.experiments]
        if before.estimate is not None:
            assert after.estimate is not None
            assert (before.estimate.bits, before.estimate.share) == (after.estimate.bits, after.estimate.share)


def test_passive_items_are_asked_for_one_more_world_too() -> None:
    problem = small_problem(2, rate="1/10", is_episode=False)
    evidence = worlds_evidence(task_class(problem.task), problem.task.training.worlds)
    estimate = next_worlds(problem.task, evidence).estimate
    assert estimate is not None
    assert estimate.bits is not None
    assert len(estimate.action["do"]) <= 1
    assert len(estimate.action["contexts"]) == len(evidence[0].rows)


def test_no_world_is_denied_that_was_not_compared() -> None:
    """Worlds of one choice of contexts are compared, so that nothing is known of others."""
    num_open = 0
    for seed in range(6):
        why = explain_extended(small_problem(seed), ())
        if why.experiments and not why.experiments[0].decides and len(why.experiments[0].outcomes) > 1:
            assert "No single world of those compared is sure to decide." in extended_advice(why)
            num_open += 1
    assert num_open > 0


def test_a_spent_allowance_is_said() -> None:
    problem = small_problem(3, num_worlds=1)
    episode = ScmEpisode(problem)
    episode.act({"do": {}})
    why = explain_extended(problem, episode.steps)
    assert why.state == "open"
    assert why.worlds_left == 0
    assert extended_advice(why)[0] == "No further world"
