"""Whole rows on small episodes, and the clairvoyant minimum with its certificate."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from random import Random
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from calibrant.baselines.replayscm.rows import answer_hidden_blind, answer_majority, answer_noise_blind
from calibrant.dsl.errors import MissingExtraError
from calibrant.dsl.formulas.text import STANDARD
from calibrant.dsl.replayscm.episode import ScmEpisode, candidate_worlds, episode_contexts, task_class
from calibrant.dsl.replayscm.extensions.reference import EvidenceWorld
from calibrant.dsl.replayscm.extensions.scores import SubmittedMap, check_map
from calibrant.dsl.replayscm.item import Problem
from calibrant.dsl.replayscm.scm import local_function
from calibrant.solvers import highs
from calibrant.solvers.outcome import Found, Impossible
from calibrant.solvers.replayscm.experiments import policies
from calibrant.solvers.replayscm.experiments.candidates import (
    best_by_bits,
    expected_bits,
    list_candidates,
    request_rows,
)
from calibrant.solvers.replayscm.experiments.clairvoyant import (
    ClairvoyantMinimum,
    ClairvoyantSearch,
    CoverRow,
    RowWeight,
    _fewest_by_maxsat,
    _fewest_by_program,
    certified_bound,
    feasible_weights,
)
from calibrant.solvers.replayscm.experiments.policies import (
    POLICIES,
    answer_exact,
    answer_forecast,
    answer_posterior,
    play_worlds,
    step_regret,
)
from calibrant.solvers.replayscm.noise.posterior import Posterior, cell_marginals
from tests.oracles.shares import ListedPolicies, best_by_share, expected_share
from tests.support.effort import effort
from tests.support.replayscm.extensions import frontier_vectors, problem_of, record_of


# --- Whole rows on small episodes: policies stop at the floor, answers fit, blind rows answer -------------------------
def _line(kind: str, **allowance: Any) -> dict[str, Any]:
    line = next(x for x in frontier_vectors("episode") if x["id"].endswith(f"-{kind}"))
    return {**line, "item": {**line["item"], "allowance": {**line["item"]["allowance"], **allowance}}}


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("kind", ["plain0", "plain3", "ordered0", "drawn0", "chosen0", "noise0", "hidden0"])
def test_policies_end_where_nothing_is_left_to_learn(kind: str, policy: str) -> None:
    problem = problem_of(_line(kind, worlds=40))
    episode = ScmEpisode(problem)
    worlds = play_worlds(episode, policy, problem.id)
    assert len(worlds) == len(episode.steps)
    assert not episode.refusals
    if kind.startswith(("plain", "ordered")):
        line = _line(kind)
        members = Posterior(task_class(problem.task)).condition(*worlds).num_members
        assert members == line["floor"]
        assert len(worlds) - 1 >= line["clairvoyant"]
    again = ScmEpisode(problem)
    assert play_worlds(again, policy, problem.id) == worlds
    assert episode.act({"submit": {"mechanisms": {}}}).refused == ""


@pytest.mark.parametrize("kind", ["plain1", "plain5", "ordered3", "hidden0", "hidden1"])
@pytest.mark.parametrize("policy", POLICIES)
def test_no_world_is_asked_for_where_no_candidate_splits(policy: str, kind: str) -> None:
    """Before the last world that was asked for, the listed members still have several cells."""
    problem = problem_of(_line(kind, worlds=40))
    scm_class, extension = task_class(problem.task), problem.task.extension
    assert extension is not None
    candidates = [(do, range(1 << len(scm_class.roots))) for do in candidate_worlds(extension.variables, 3)]
    worlds = play_worlds(ScmEpisode(problem), policy, problem.id)
    assert len(worlds) > 1
    assert list_candidates(Posterior(scm_class).condition(*worlds[:-1]), candidates).num_cells > 1


@pytest.mark.parametrize("kind", ["plain0", "noise0", "noise3", "hidden0", "ordered1"])
def test_answers_are_legal_and_most_probable(kind: str) -> None:
    problem = problem_of(_line(kind))
    task = problem.task
    scm_class = task_class(task)
    worlds = [EvidenceWorld({}, tuple(_line(kind)["steps"][0]["rows"]))]
    policies = [
        answer_exact(task, worlds),
        answer_posterior(task, worlds, "x"),
        answer_noise_blind(task, worlds),
        answer_hidden_blind(task, worlds),
        answer_majority(task, worlds),
    ]
    for answer in policies:
        assert isinstance(answer, Found)
        assert isinstance(check_map(scm_class, STANDARD, answer.value.submission), SubmittedMap)
    exact = policies[0]
    assert isinstance(exact, Found)
    submitted = check_map(scm_class, STANDARD, exact.value.submission)
    assert isinstance(submitted, SubmittedMap)
    posterior = Posterior(scm_class).condition(*worlds)
    functions = {v: local_function(formula) for v, formula in submitted.formulas.items()}
    assert posterior.likelihood(functions) / posterior.mass == exact.value.posterior_share


@pytest.mark.parametrize("max_listed_cells", [-1, 7])  # -1: rows are drawn
def test_a_forecast_from_rows_that_nothing_fits_is_impossible(
    max_listed_cells: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(policies, "MAX_LISTED_CELLS", max_listed_cells)
    line = _line("plain0")
    scm_class = line["item"]["class"]
    endogenous = next(v for v in scm_class["variables"] if v not in scm_class["roots"])
    changes = {"question": "forecast", "asked": [{"constants": {}, "contexts": ["0" * len(scm_class["roots"])]}]}
    row = line["steps"][0]["rows"][0]
    place = scm_class["variables"].index(endogenous)
    flipped = row[:place] + str(1 - int(row[place])) + row[place + 1 :]
    outcome = answer_forecast(problem_of(line, **changes).task, [EvidenceWorld({}, (row, flipped))], "x")
    assert isinstance(outcome, Impossible)


def test_a_forecast_is_exact_where_cells_are_few() -> None:
    line = _line("noise0")
    root = line["item"]["class"]["roots"][0]
    changes = {
        "question": "forecast",
        "asked": [{"constants": {}, "contexts": ["0", "1"]}, {"constants": {root: 1}, "contexts": ["0"]}],
    }
    problem = problem_of(line, **changes)
    worlds = [EvidenceWorld({}, tuple(line["steps"][0]["rows"]))]
    answer = answer_forecast(problem.task, worlds, "x")
    assert isinstance(answer, Found)
    assert answer.value.provenance == "exact"
    posterior = Posterior(task_class(problem.task)).condition(*worlds)
    place = posterior.scm_class.observed.index(root)
    marginals = cell_marginals(posterior, 1 << place, 1 << place)
    names = posterior.scm_class.variables
    forecast = answer.value.submission["forecast"]
    assert isinstance(forecast, list)
    assert forecast[1] == [{names[i]: float(share) for i, share in marginals.items()}]
    episode = ScmEpisode(problem)
    assert episode.act({"submit": answer.value.submission}).refused == ""
    short = {"forecast": forecast[:1]}
    assert "2 worlds" in ScmEpisode(problem).act({"submit": short}).refused


@pytest.mark.parametrize("scope", ["shared", "each"])
def test_unknown_rates_are_played_and_answered(scope: str) -> None:
    line = _line("noise0", worlds=12)
    grid = {scope: [["1/20", "1/2"], [line["item"]["noise"], "1/2"]]}
    sealed = msgspec.to_builtins(record_of(line).sealed)
    rate = line["item"]["noise"]
    sealed["noise"] = rate if scope == "shared" else dict.fromkeys(problem_of(line).sealed.rates, rate)
    problem = problem_of(line, noise=grid, sealed=sealed)
    episode = ScmEpisode(problem)
    worlds = play_worlds(episode, "greedy", problem.id)
    assert len(worlds) > 1
    answer = answer_exact(problem.task, worlds)
    assert isinstance(answer, Found)
    assert answer.value.posterior_share is not None
    posterior = Posterior(task_class(problem.task)).condition(*worlds[:-1])
    step = step_regret(problem.task, posterior, worlds[-1].constants, range(2), problem.id, 1)
    assert step.regret >= 0
    assert step.is_exact == (scope == "shared")


# --- Episodes against the shared vectors: masses after every step, shares, bits, cells, greedy and optimal trees ------
EVERY = 6  # candidate worlds of every sixth line; all were compared when this was written


def test_masses_after_every_step() -> None:
    for line in frontier_vectors("episode"):
        problem = problem_of(line)
        assert problem.sealed.gold is not None
        posterior = Posterior(task_class(problem.task))
        for step in line["steps"]:
            if step["rows"] is None:
                continue
            before = posterior.mass
            posterior = posterior.condition(EvidenceWorld(step["action"].get("do", {}), tuple(step["rows"])))
            assert posterior.mass == Fraction(step["mass"])
            assert posterior.num_members == step["members"]
            share = posterior.likelihood(problem.sealed.gold.local_functions) / posterior.mass
            assert share == Fraction(step["gold_share"])
            if "predicted" in step:
                assert posterior.mass / before == Fraction(step["predicted"])


def test_noise_free_candidates() -> None:
    lines = [line for line in frontier_vectors("episode") if "candidates" in line and line["item"]["noise"] == "0"]
    for line in lines[::EVERY]:
        check_listed(line, problem_of(line))
    assert len(lines) == 104


def test_noisy_candidates() -> None:
    lines = [line for line in frontier_vectors("episode") if line["item"]["noise"] != "0"]
    for line in lines[::EVERY]:
        problem = problem_of(line)
        start, worlds = after_start(line, problem)
        rows = [request_rows(start.scm_class, do, contexts) for do, contexts in worlds]
        shares = [expected_share(start, world) for world in rows]
        bits = [expected_bits(start, world) for world in rows]
        assert shares == [Fraction(share) for share in line["shares_after_start"]]
        assert max(abs(a - float(b)) for a, b in zip(bits, line["bits_after_start"], strict=True)) < 1e-8
        assert best_by_bits(bits) == line["greedy_first"]
    assert len(lines) == 34


def after_start(
    line: Mapping[str, Any], problem: Problem
) -> tuple[Posterior, list[tuple[Mapping[str, int], tuple[int, ...]]]]:
    """Return the posterior after the start and the candidates of world 1."""
    extension = problem.task.extension
    assert extension is not None
    assert extension.allowance is not None
    start = Posterior(task_class(problem.task)).condition(EvidenceWorld({}, tuple(line["steps"][0]["rows"])))
    contexts = episode_contexts(extension, 1, problem.sealed.seed)
    return start, [(do, contexts) for do in candidate_worlds(extension.variables, extension.allowance.max_targets)]


def check_listed(line: Mapping[str, Any], problem: Problem) -> None:
    listed = ListedPolicies(**vars(list_candidates(*after_start(line, problem))))
    shares = [listed.share(listed.every_cell, place) for place in range(len(line["candidates"]))]
    assert shares == [Fraction(share) for share in line["shares_after_start"]]
    assert best_by_share(shares) == listed.greedy_choice(listed.every_cell) == line["greedy_first"]
    if "clairvoyant" not in line:
        return
    assert problem.sealed.gold is not None
    gold = dict(problem.sealed.gold.local_functions)
    cell = next(cell for member, cell in zip(listed.members, listed.cell_of, strict=True) if dict(member) == gold)
    assert listed.num_cells == line["cells_after_start"]
    assert listed.cell_sizes()[cell] == line["floor"]
    assert len(listed.clairvoyant(cell)) == line["clairvoyant"]
    assert listed.greedy_path(cell) == line["greedy_against_gold"]
    assert listed.greedy_mean() == Fraction(line["greedy_mean"])
    if "optimal_mean" in line:
        assert listed.optimal_mean() == Fraction(line["optimal_mean"])


# --- The clairvoyant minimum against the shared vectors, and its certificate against forgeries ------------------------
with_highs = pytest.mark.skipif(not highs.has_highs(), reason="no highspy in this environment")


def search_of(line: dict[str, Any]) -> ClairvoyantSearch:
    problem = problem_of(line)
    extension, gold = problem.task.extension, problem.sealed.gold
    assert extension is not None
    assert extension.allowance is not None
    assert gold is not None
    worlds = candidate_worlds(extension.variables, extension.allowance.max_targets)
    return ClairvoyantSearch(problem.task, task_class(problem.task), gold.local_functions, worlds)


def _plain(line: dict[str, Any]) -> bool:
    return "clairvoyant" in line and not line["item"]["class"]["hidden"]


def test_minima_of_the_vectors_without_highs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "highspy", None)
    lines = [line for line in frontier_vectors("episode") if _plain(line)][2::16]
    searches = [search_of(line) for line in lines]
    for line, search in zip(lines, searches, strict=True):
        fewest = search.fewest()
        assert (len(fewest.worlds), fewest.floor) == (line["clairvoyant"], line["floor"])
        assert search.count(fewest.worlds) == fewest.floor
    with pytest.raises(MissingExtraError, match=r"highspy is missing; run: pip install 'calibrant\[large\]'"):
        searches[0].solve()


def test_both_engines_meet_rows_of_alternatives_with_fewest_worlds() -> None:
    rng = Random("covers")
    for _ in range(40):
        rows = [CoverRow(str(i), _alternatives(rng)) for i in range(rng.randint(1, 6))]
        sizes = (len(some) for k in range(7) for some in combinations(range(6), k) if _meets(rows, some))
        least = next(sizes)
        engines = [_fewest_by_maxsat(rows)]
        if highs.has_highs():
            engines.append(_fewest_by_program(rows, 6))
        for chosen in engines:
            assert _meets(rows, chosen)
            assert len(chosen) == least


def test_the_banner_of_highs_is_discarded(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    class Highs:
        def __init__(self) -> None:
            os.write(1, b"Running HiGHS")

        def setOptionValue(self, name: str, value: object) -> None:  # noqa: N802 (name of HiGHS)
            print(name)

    monkeypatch.setitem(sys.modules, "highspy", SimpleNamespace(Highs=Highs))
    highs.empty_program()
    assert capfd.readouterr().out == "output_flag\nthreads\n"


def _alternatives(rng: Random) -> tuple[tuple[frozenset[int], ...], ...]:
    return tuple(
        tuple(frozenset(rng.sample(range(6), rng.randint(1, 3))) for _ in range(rng.randint(1, 2)))
        for _ in range(rng.randint(1, 3))
    )


def _meets(rows: Sequence[CoverRow], chosen: Sequence[int]) -> bool:
    return all(row.is_met(frozenset(chosen)) for row in rows)


@with_highs
@pytest.mark.soak
def test_minima_of_the_vectors_are_proven() -> None:
    """A fourth of the lines, in which sizes and orders take turns; all of them in a soak."""
    lines = [line for line in frontier_vectors("episode") if _plain(line)][:: effort(4, 1)]
    for line in lines:
        search = search_of(line)
        minimum = search.solve()
        assert (len(minimum.worlds), minimum.floor) == (line["clairvoyant"], line["floor"])
        assert search.count(minimum.worlds) == minimum.floor
        assert certified_bound(minimum.rows, minimum.weights) == minimum.bound <= len(minimum.worlds)
        assert minimum.is_certified  # the relaxation was tight in all of these
    assert lines


def _minimum() -> ClairvoyantMinimum:
    line = next(line for line in frontier_vectors("episode") if _plain(line) and line["clairvoyant"] > 1)
    return search_of(line).solve()


@with_highs
@pytest.mark.parametrize("forgery", ["more", "negative", "missing"])
def test_forged_weights_prove_nothing(forgery: str) -> None:
    minimum = _minimum()
    weights = list(minimum.weights)
    place = next(i for i, weight in enumerate(weights) if weight.weight > 0)
    if forgery == "more":
        weights[place] = replace(weights[place], weight=weights[place].weight + len(weights))
    elif forgery == "negative":
        weights[place] = replace(weights[place], weight=Fraction(-1))
    else:
        weights = weights[:-1]
    with pytest.raises(ValueError, match=r"weighs|negative|shorter"):
        certified_bound(minimum.rows, weights)


def test_weights_are_scaled_until_no_world_exceeds_its_cost() -> None:
    rows = [
        CoverRow("a", ((frozenset({0, 1}),),)),
        CoverRow("b", ((frozenset({1, 2}),),)),
        CoverRow("c", ((frozenset({0}), frozenset({3})), (frozenset({4}), frozenset({5})))),
    ]
    weights = feasible_weights(rows, [0.9, 0.9, 1.0], [[], [], [[0.5, 0.5], [0.25, 0.25]]])
    assert certified_bound(rows, weights) == 2  # 0.9 + 0.9 + 0.5 over the load 1.8 of world 1, rounded up
    assert max(weight.weight for weight in weights) <= 1
    heavy = [RowWeight(Fraction(1)), RowWeight(Fraction(0)), RowWeight(Fraction(1), ((Fraction(1, 2),) * 2,) * 2)]
    with pytest.raises(ValueError, match="world 0 weighs 3/2"):
        certified_bound(rows, heavy)
    above = [RowWeight(Fraction(0))] * 2 + [RowWeight(Fraction(1), ((Fraction(1, 2), Fraction(1, 4)),) * 2)]
    with pytest.raises(ValueError, match="an alternative weighs more than its sets"):
        certified_bound(rows, above)
