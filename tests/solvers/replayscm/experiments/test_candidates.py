"""Candidate worlds: what members read of them against the reference, verdicts, regret and worth."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from math import log2
from random import Random
from typing import Any

import numpy as np
import pytest

from calibrant.dsl.replayscm.disclosure import HiddenOrder
from calibrant.dsl.replayscm.episode import (
    ScmEpisode,
    candidate_worlds,
    clean_rows,
    episode_contexts,
    steps_evidence,
    task_class,
)
from calibrant.dsl.replayscm.extensions.extension import NOISE_FREE, MechanismClass, Prior, known_rate
from calibrant.dsl.replayscm.extensions.reference import EvidenceWorld, posterior_weights
from calibrant.solvers.replayscm import _kernels_worlds
from calibrant.solvers.replayscm.experiments import greedy, policies
from calibrant.solvers.replayscm.experiments.candidates import (
    MemberArrays,
    Witnesses,
    alike_shares,
    behaviour_share,
    decide_behaviour,
    expected_bits,
    pack_candidates,
    posterior_bits,
    request_rows,
)
from calibrant.solvers.replayscm.experiments.greedy import WorldChooser
from calibrant.solvers.replayscm.experiments.policies import is_worth_asking, step_regret, stop_worlds
from calibrant.solvers.replayscm.hidden.mass import posterior_sampler
from calibrant.solvers.replayscm.noise.posterior import Posterior
from calibrant.solvers.replayscm.noise.subset_tables import EvidenceRow, word_text
from tests.oracles.shares import clean_behaviours
from tests.solvers.replayscm.experiments.test_policies import after_start
from tests.support.replayscm.extensions import frontier_vectors, problem_of, small_problem

# --- What members read of all candidates, against the reference row by row; splits that members prove -----------------
NUM_MEMBERS = 8


def _scm_class(num_vars: int, num_hidden: int, max_parents: int) -> MechanismClass:
    # not in natural order: numbers come from the class, not from names
    observed = tuple(f"X{num_vars - i}" for i in range(num_vars))
    roots = observed[1:3]
    hidden = {f"H{i + 1}": observed[i : i + 2] for i in range(num_hidden)}
    disclosure = HiddenOrder((*observed, *hidden), roots)
    return MechanismClass(observed, roots, disclosure, max_parents, Prior.UNIFORM, NOISE_FREE, hidden)


@pytest.mark.parametrize("num_rows", [1, 8, 70])
@pytest.mark.parametrize(("num_vars", "num_hidden", "max_parents"), [(4, 0, 0), (5, 0, 3), (5, 1, 2), (4, 2, 2)])
def test_keys_are_equal_iff_readings_are(num_vars: int, num_hidden: int, max_parents: int, num_rows: int) -> None:
    """Several candidates a word, one, and several words a candidate; fields side by side and hashed ones."""
    scm_class = _scm_class(num_vars, num_hidden, max_parents)
    sampler, rng = posterior_sampler(Posterior(scm_class)), Random(num_rows)
    members = [sampler.draw(rng) for _ in range(NUM_MEMBERS)]
    contexts = [rng.getrandbits(2) for _ in range(num_rows)]
    candidates = candidate_worlds(scm_class.observed, 2)
    index = {v: i for i, v in enumerate(scm_class.observed)}
    keys = pack_candidates(index, scm_class.roots, candidates, contexts).keys(MemberArrays(scm_class, members).programs)
    shares = alike_shares(keys)
    for place, do in enumerate(candidates):
        readings = [tuple(clean_rows(scm_class, member, do, contexts)) for member in members]
        pairs = list(combinations(range(NUM_MEMBERS), 2))
        alike = [readings[a] == readings[b] for a, b in pairs]
        assert [bool(keys[place, a] == keys[place, b]) for a, b in pairs] == alike
        assert shares[place] == pytest.approx(sum(alike) / len(pairs))


@pytest.mark.parametrize("num_hidden", [0, 1])
def test_witnesses_prove_a_split_while_they_fit(num_hidden: int) -> None:
    scm_class = _scm_class(4, num_hidden, 2)
    sampler, rng = posterior_sampler(Posterior(scm_class)), Random(4)
    members = [sampler.draw(rng) for _ in range(NUM_MEMBERS)]
    index = {v: i for i, v in enumerate(scm_class.observed)}
    contexts, candidates = range(4), candidate_worlds(scm_class.observed, 2)
    arrays = MemberArrays(scm_class, members).programs
    keys = pack_candidates(index, scm_class.roots, candidates, contexts).keys(arrays)
    witnesses = Witnesses(scm_class, index, arrays, keys, [])
    worlds: list[EvidenceWorld] = []
    fitting = members
    behaviours: set[tuple[tuple[str, ...], ...]] = set()
    for do in rng.sample(candidates, len(candidates)):
        worlds.append(EvidenceWorld(do, tuple(clean_rows(scm_class, members[0], do, contexts))))
        fitting = [m for m in fitting if tuple(clean_rows(scm_class, m, do, contexts)) == worlds[-1].rows]
        behaviours = {tuple(tuple(clean_rows(scm_class, m, x, contexts)) for x in candidates) for m in fitting}
        assert witnesses.split_after(worlds) == (len(behaviours) > 1)
    assert len(behaviours) == 1
    assert not np.array_equal(keys, witnesses.keys)
    # worlds that do not go on from those before
    fresh = Witnesses(scm_class, index, arrays, keys, worlds[:1])
    assert fresh.is_split
    assert not fresh.split_after(worlds[1:])


@pytest.mark.parametrize(("num_vars", "num_hidden"), [(5, 0), (5, 1), (4, 2)])
def test_mismatches_give_the_likelihood_of_every_world(num_vars: int, num_hidden: int) -> None:
    rng, rate = Random(num_vars + num_hidden), Fraction(1, 10)
    silent = _scm_class(num_vars, num_hidden, 2)
    scm_class = replace(silent, noise=known_rate(rate))
    sampler = posterior_sampler(Posterior(silent))
    listed = [sampler.draw(rng) for _ in range(NUM_MEMBERS)]
    endogenous = [silent.observed.index(v) for v in silent.endogenous]
    worlds = []
    for number in (1, 3, 2):
        clamped = sum(1 << v for v in rng.sample(endogenous, 1))
        worlds.append([EvidenceRow(rng.getrandbits(num_vars), clamped) for _ in range(number)])
    rows = [row for world in worlds for row in world]
    reading, targets = (
        np.array(values, np.uint64) for values in zip(*((r.word, r.clamped) for r in rows), strict=True)
    )
    wrong = MemberArrays(scm_class, listed).mismatches(reading, targets, np.array([0, 1, 4, 6]))
    assert wrong.max() > 0
    for member, counts in zip(listed, wrong.tolist(), strict=True):
        prior = Posterior(scm_class).likelihood(member)
        for world, number in zip(worlds, counts, strict=True):
            cells = (len(endogenous) - 1) * len(world)
            expected = prior * rate**number * (1 - rate) ** (cells - number)
            assert Posterior(scm_class).condition_rows(world).likelihood(member) == expected


# --- Greedy choices at real size: estimates against exact values, and whole episodes against the clairvoyant minimum


@pytest.mark.parametrize("kind", ["plain", "hidden", "ordered"])
def test_greedy_reaches_the_floor(kind: str) -> None:
    lines = [x for x in frontier_vectors("episode") if x["id"].rpartition("-")[2].startswith(kind) and "floor" in x]
    for line in lines[:3]:
        problem = problem_of(line)
        scm_class = task_class(problem.task)
        chooser = WorldChooser(problem.task, scm_class, problem.id)
        allowance = {**line["item"]["allowance"], "worlds": 50}
        long = problem_of({**line, "item": {**line["item"], "allowance": allowance}})
        episode = ScmEpisode(long)
        worlds = [EvidenceWorld({}, tuple(line["steps"][0]["rows"]))]
        while (choice := chooser.choose(worlds)) is not None:
            do = chooser.candidates[choice.index]
            reading = episode.act({"do": do}).reading
            assert reading is not None
            worlds.append(EvidenceWorld(do, tuple(reading["rows"])))
        assert Posterior(scm_class).condition(*worlds).num_members == line["floor"]
        assert len(worlds) - 1 >= line["clairvoyant"]
    assert len(vars(_kernels_worlds)["weigh_after_worlds"].signatures) == 1  # a second one takes 1.5 s to compile


def test_bits_are_those_of_listing_readings(monkeypatch: pytest.MonkeyPatch) -> None:
    """With 1,500 drawn readings the standard error is below 0.04 bits."""
    monkeypatch.setattr(greedy, "NUM_NOISY_DRAWS", 1_500)
    line = next(x for x in frontier_vectors("episode") if x["id"].endswith("-noise0"))
    problem = problem_of(line)
    scm_class = task_class(problem.task)
    chooser = WorldChooser(problem.task, scm_class, problem.id)
    start = EvidenceWorld({}, tuple(line["steps"][0]["rows"]))
    contexts = [range(1 << len(scm_class.roots))]
    estimates = chooser.expected_bits([start], contexts, Random(3))
    posterior = Posterior(scm_class).condition(start)
    exact = [expected_bits(posterior, request_rows(scm_class, do, contexts[0])) for do in chooser.candidates]
    assert np.abs(estimates - exact).max() < 0.2


def test_sampled_contexts_and_chosen_ones_give_choices() -> None:
    for kind in ("drawn", "chosen", "noisedrawn"):
        line = next(x for x in frontier_vectors("episode") if x["id"].endswith(f"-{kind}0"))
        problem = problem_of(line)
        chooser = WorldChooser(problem.task, task_class(problem.task), problem.id)
        start = EvidenceWorld({}, tuple(line["steps"][0]["rows"]))
        first, second = (chooser.choose([start]) for _ in range(2))
        assert first == second is not None
        rows = line["item"]["allowance"]["rows"]
        assert all(len(variant) == rows for variant in chooser.contexts(Random(0)))


def test_compared_candidates_of_large_noisy_items() -> None:
    line = next(x for x in frontier_vectors("episode") if x["id"].endswith("-noise0"))
    names = [f"X{i}" for i in range(1, 9)]
    raw = {**line["item"]["class"], "variables": names, "roots": ["X1"], "parents_weights": []}
    item = {**line["item"], "class": raw, "gold": {}, "allowance": {**line["item"]["allowance"], "max_targets": 3}}
    gold = {name: {"parents": [], "table": "0"} for name in names[1:]}
    problem = problem_of({**line, "item": {**item, "gold": gold}})
    chooser = WorldChooser(problem.task, task_class(problem.task), problem.id)
    assert len(chooser.compared) == 1 + 16 + greedy.NUM_OTHER_CANDIDATES
    assert chooser.compared == sorted(chooser.compared)
    assert chooser.scm_class.noise.max_rate > Fraction(0)


# --- Verdicts, regret and worth of a further world on items whose members are listed ----------------------------------
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
    if start.scm_class.noise.is_noiseless:
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
    for seed in range(1 if rate else 2):
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
    chooser.compared = chooser.compared[:6]
    contexts = range(4)
    by_draw = chooser.bits_by_draw(posterior, [contexts], Random(1), NUM_DRAWS)
    assert by_draw.shape == (NUM_DRAWS, 6)
    for column, place in zip(by_draw.T, chooser.compared, strict=True):
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
