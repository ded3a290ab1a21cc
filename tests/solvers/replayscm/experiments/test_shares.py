"""Verdicts, regret and worth of a further world on items whose members are listed."""

from __future__ import annotations

from fractions import Fraction
from math import log2
from random import Random
from typing import Any

import pytest

from calibrant.dsl.replayscm.episode import ScmEpisode, episode_contexts, steps_evidence, task_class
from calibrant.dsl.replayscm.extensions.reference import EvidenceWorld, posterior_weights
from calibrant.solvers.replayscm.experiments import policies
from calibrant.solvers.replayscm.experiments.greedy import WorldChooser
from calibrant.solvers.replayscm.experiments.policies import is_worth_asking, step_regret, stop_worlds
from calibrant.solvers.replayscm.experiments.shares import (
    behaviour_share,
    decide_behaviour,
    expected_bits,
    posterior_bits,
    request_rows,
)
from calibrant.solvers.replayscm.noise.local_weights import word_text
from calibrant.solvers.replayscm.noise.posterior import Posterior
from tests.oracles.shares import clean_behaviours
from tests.solvers.replayscm.experiments.test_policies import after_start
from tests.support.replayscm.extensions.problems import small_problem
from tests.support.replayscm.extensions.vectors import frontier_vectors, problem_of


def _line(kind: str) -> dict[str, Any]:
    return next(x for x in frontier_vectors("episode") if x["id"].endswith(f"-{kind}"))


@pytest.mark.parametrize("kind", ["plain0", "noise1", "ordered2", "hidden0"])
def test_verdicts_are_those_of_listed_behaviours(kind: str) -> None:
    line = _line(kind)
    start, worlds = after_start(line, problem_of(line))
    asked = [(do, contexts[:2]) for do, contexts in worlds[1:4:2]]
    rows = [row for do, contexts in asked for row in request_rows(start.scm_class, do, contexts)]
    listed = clean_behaviours(start, rows)
    verdict = decide_behaviour(start, asked, Random(1))
    assert sum(listed.shares.values()) == 1
    observed = len(start.scm_class.observed)
    texts = {tuple(word_text(word, observed) for word in words): share for words, share in listed.shares.items()}
    assert texts[tuple(row for world in verdict.rows for row in world)] == verdict.share
    assert behaviour_share(start, asked, verdict.rows) == verdict.share
    if start.scm_class.noise.is_silent:
        assert verdict.is_decided == (len(listed.shares) == 1)
    else:
        assert verdict.is_decided == (listed.top_share >= Fraction(99, 100))
        assert verdict.threshold == Fraction(99, 100)


def _played(line: dict[str, Any], actions: list[dict[str, Any]]) -> tuple[Any, list[Any], ScmEpisode]:
    problem = problem_of(line)
    episode = ScmEpisode(problem)
    for action in actions:
        episode.act(action)
    extension = problem.task.extension
    assert extension is not None
    seed, steps = problem.sealed.seed, []
    for step in episode.steps:
        if step.reading is not None:
            contexts = episode_contexts(extension, step.reading["world"], seed)
            steps.append((step.action.get("do", {}), contexts, step.reading["rows"]))
    return problem, steps, episode


def test_under_noise_a_submission_after_the_verdict_is_decided_is_not_premature() -> None:
    """The share of the top behaviour, by listing every SCM, against the threshold, as worlds are added."""
    line = _line("noise2")
    line = {**line, "item": {**line["item"], "allowance": {**line["item"]["allowance"], "worlds": 40}}}
    problem, _, _ = _played(line, [])
    scm_class = task_class(problem.task)
    asked = stop_worlds(problem.task)
    rows = [row for do, contexts in asked for row in request_rows(scm_class, do, contexts)]
    seen = set()
    for num_worlds in (0, 20):
        actions = [{"do": do} for do, _ in asked[:: max(1, len(asked) // 6)]] * 4
        _, steps, episode = _played(line, [*actions[:num_worlds], {"submit": {"mechanisms": {}}}])
        worlds = [EvidenceWorld(do, tuple(texts)) for do, _, texts in steps]
        posterior = Posterior(scm_class).condition(*worlds)
        is_decided = clean_behaviours(posterior, rows).top_share >= Fraction(99, 100)
        assert episode.left > 0
        assert is_worth_asking(problem.task, worlds, posterior, problem.id) == (not is_decided)
        seen.add(is_decided)
    assert seen == {False, True}


def test_regret_of_a_useless_world_and_its_estimates(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in ("plain0", "noise0"):
        line = _line(kind)
        start, worlds = after_start(line, problem_of(line))
        task = problem_of(line).task
        do, contexts = worlds[0 if kind == "plain0" else -1]
        exact = step_regret(task, start, do, contexts, "x", 1)
        assert exact.is_exact
        assert exact.regret > 0
        monkeypatch.setattr(policies, "MAX_REGRET_MEMBERS", 1)
        monkeypatch.setattr(policies, "NUM_TRUTHS", 1_500)
        estimate = step_regret(task, start, do, contexts, "x", 1)
        assert not estimate.is_exact
        assert estimate.regret == pytest.approx(exact.regret, abs=0.2)
        monkeypatch.undo()


# --- Posterior entropies against listing all SCMs ---------------------------------------------------------------------


@pytest.mark.parametrize(("rate", "num_hidden"), [(None, 0), ("1/10", 0), (None, 1)])
def test_bits_are_those_of_the_listed_posterior(rate: str | None, num_hidden: int) -> None:
    for seed in range(2):
        problem = small_problem(seed, rate=rate, num_hidden=num_hidden)
        scm_class, evidence = task_class(problem.task), steps_evidence(ScmEpisode(problem).steps)
        weights = [float(weight) for _, weight in posterior_weights(scm_class, evidence) if weight]
        whole = sum(weights)
        expected = -sum(weight / whole * log2(weight / whole) for weight in weights)
        bits = posterior_bits(Posterior(scm_class).condition(*evidence), "bits")
        assert bits.value == pytest.approx(expected, abs=max(1e-9, 5 * bits.error))


# --- Bits from drawn readings against exact ones, within their standard errors; regrets with theirs -------------------
NUM_DRAWS = 300


def _start(seed: int, rate: str | None) -> tuple[WorldChooser, Posterior]:
    problem = small_problem(seed, rate=rate)
    scm_class = task_class(problem.task)
    posterior = Posterior(scm_class).condition(*steps_evidence(ScmEpisode(problem).steps))
    return WorldChooser(problem.task, scm_class, problem.id), posterior


def test_drawn_bits_are_unbiased() -> None:
    chooser, posterior = _start(1, "1/10")
    chooser.places = chooser.places[:6]
    contexts = range(4)
    by_draw = chooser.bits_by_draw(posterior, [contexts], Random(1), NUM_DRAWS)
    assert by_draw.shape == (NUM_DRAWS, 6)
    for column, place in zip(by_draw.T, chooser.places, strict=True):
        exact = expected_bits(posterior, request_rows(posterior.scm_class, chooser.candidates[place], contexts))
        error = column.std(ddof=1) / NUM_DRAWS**0.5
        assert column.mean() == pytest.approx(exact, abs=max(1e-9, 5 * error))


@pytest.mark.parametrize("rate", [None, "1/10"])
def test_estimated_regrets_lie_near_exact_ones(rate: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    chooser, posterior = _start(2, rate)
    do = chooser.candidates[3]
    exact = policies.step_regret(chooser.task, posterior, do, range(4), chooser.item_id, 1)
    assert exact.is_exact
    assert exact.standard_error is None
    monkeypatch.setattr(policies, "MAX_REGRET_MEMBERS", 0)
    drawn = policies.step_regret(chooser.task, posterior, do, range(4), chooser.item_id, 1)
    assert not drawn.is_exact
    assert drawn.standard_error is not None
    # the best of many estimates is overrated, hence the slack beyond four standard errors
    assert drawn.regret == pytest.approx(exact.regret, abs=4 * drawn.standard_error + 0.15)
