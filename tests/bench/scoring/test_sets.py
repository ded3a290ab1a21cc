"""Scores of sets of hypotheses: plain, extended, and under priors."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from math import comb, isfinite, prod, sqrt
from pathlib import Path
from random import Random
from typing import Any

import pytest

from calibrant.audits.replayscm.extended.items import item_evidence
from calibrant.baselines.replayscm.posterior.choice import certified_member
from calibrant.baselines.replayscm.posterior.posterior import Posterior
from calibrant.bench.core.attribution import HYPOTHESES, covered_mass
from calibrant.bench.core.capabilities import FUNCTIONS
from calibrant.bench.core.registry import benchmark_of, bundled_sample
from calibrant.bench.lab.replayscm import rename
from calibrant.bench.replayscm.rows.exact import scm_answer
from calibrant.bench.replayscm.sets import hypotheses
from calibrant.bench.scoring.sets import SetScore, score_sets
from calibrant.dsl.causim.model import assignment_text, run
from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.formulas.text import render
from calibrant.dsl.logic.score import answer_json
from calibrant.dsl.replayscm.episode import task_class
from calibrant.dsl.replayscm.extensions.reference import Mechanisms, posterior_weights
from calibrant.dsl.replayscm.item import Pool, Problem
from calibrant.dsl.replayscm.pools.files import write_pool
from calibrant.solvers.replayscm.canonical import canonical_task
from calibrant.solvers.replayscm.experiments.policies import member_formulas
from calibrant.solvers.replayscm.members import members_by_size
from tests.support.commands import called, jsonl
from tests.support.replayscm.extensions import small_problem

# --- Sets of hypotheses: all members recover everything, and each measure is what counting by hand gives --------------
MAX_LISTED = 300


def _scms(item: Any) -> list[dict[str, Any]]:
    space = benchmark_functions("replayscm").version_space(item, max_parents=5, max_size=20)
    return [scm_answer(item.task.kind, model) for model in members_by_size(space)]


def benchmark_functions(name: str) -> Any:
    from calibrant.bench.core.registry import benchmark

    return benchmark(name).require(FUNCTIONS)


def _models(item: Any) -> list[dict[str, Any]]:
    return [answer_json(model) for model in benchmark_functions("logic").version_space(item).models()]


def _rules(item: Any) -> list[dict[str, Any]]:
    return [rule.as_json(item.task.objects) for rule in benchmark_functions("blickets").version_space(item).verdicts()]


def _frequencies(item: Any) -> list[dict[str, Any]]:
    verdicts = benchmark_functions("causalab").version_space(item).verdicts()
    return [{"frequency": value} for value in verdicts if isfinite(value)]


CASES: dict[str, tuple[Callable[[Any], list[dict[str, Any]]], str]] = {
    "replayscm": (_scms, ""),
    "logic": (_models, "missing"),
    "blickets": (_rules, "conjunctive"),
    "causalab": (_frequencies, "4nodes_quad_hard"),
}


@pytest.fixture(scope="module")
def pools(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    folder = tmp_path_factory.mktemp("sets")

    def make(name: str) -> Path:
        path = folder / f"{name}.jsonl"
        if name == "replayscm" and not path.exists():
            table = folder / "table.csv"
            table.write_text("a,b,c\n0,0,0\n0,1,0\n1,1,1\n", encoding="utf-8")
            assert called("fit", table, "--out", path).returncode == 0
        if not path.exists():
            options = ("--seed", "4", "--strata", CASES[name][1], "--per-stratum", "12", "--out", path)
            assert called("generate", "--benchmark", name, *options).returncode == 0
        return path

    return make


@pytest.mark.parametrize("name", CASES)
def test_all_members_recover_everything_and_one_of_them_its_share(
    name: str, pools: Callable[[str], Path], tmp_path: Path
) -> None:
    pool = pools(name)
    bench = benchmark_of(pool)
    for item in bench.items.read_pool(pool).items:
        hypotheses = bench.require(HYPOTHESES)(item)
        if 1 < hypotheses.count <= MAX_LISTED:
            break
    else:
        pytest.fail("no item of the pool has a few members")
    answers = CASES[name][0](item)
    assert len(answers) == hypotheses.count
    file = tmp_path / "sets.jsonl"
    file.write_text(
        json.dumps({"id": item.id, "model": "all", "hypotheses": answers})
        + "\n"
        + json.dumps({"id": item.id, "model": "same", "hypotheses": [answers[0]] * 3 + ["no answer"]})
        + "\n",
        encoding="utf-8",
    )
    whole, same = score_sets([pool], file, len(answers))
    assert (whole.num_fitting, whole.num_distinct, whole.count) == (len(answers),) * 3
    assert whole.recovery == whole.reach == whole.valid == 1
    assert whole.mass == 1
    assert (same.num_read, same.num_fitting, same.num_distinct) == (3, 3, 1)
    assert same.valid == 3 / len(answers)  # missing entries stay in k
    assert same.distinct == pytest.approx(1 / 3)
    assert same.recovery == pytest.approx(1 / len(answers))
    assert 0 < same.mass < 1
    # chance of a hypothesis in k independent draws: 1 - (1 - 1/N)^k; of N such draws the mean distinct number / N
    number = len(answers)
    assert whole.draws_reach == pytest.approx(float(1 - (1 - Fraction(1, number)) ** number))


def test_commands_score_print_and_read_back(pools: Callable[[str], Path], tmp_path: Path) -> None:
    pool = pools("blickets")
    item = benchmark_of(pool).items.read_pool(pool).items[0]
    rules = _rules(item)[:3]
    file, verdicts = tmp_path / "sets.jsonl", tmp_path / "verdicts.jsonl"
    text = f"I think of several.\n{json.dumps({'hypotheses': rules})}"
    file.write_text(json.dumps({"id": item.id, "model": "m", "response": text}) + "\n", encoding="utf-8")
    result = called("score", pool, file, "--set-size", "4", "--out", verdicts)
    assert result.returncode == 0, result.stderr
    assert "Recovery" in result.stdout
    line = json.loads(verdicts.read_text(encoding="utf-8"))
    assert (line["set_size"], line["fitting"], line["distinct"]) == (4, 3, 3)
    assert line["recovery"] == pytest.approx(3 / int(line["count"]))
    rows = json.loads(called("table", verdicts, "--json").stdout)["sets"]
    assert rows[0]["reach"] == 0.75
    assert called("table", verdicts).stdout == result.stdout
    report = called("report", verdicts, "--format", "csv").stdout.splitlines()
    assert any(row.startswith("sets,ours,,m,") and ",reach,0.750," in row for row in report)
    assert "a page of sets needs answers" in called("report", verdicts, "--out", tmp_path / "page.html").stderr


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ({"id": "ID", "model": "m", "response": "no list"}, "line 1: no list of hypotheses"),
        ({"id": "ID", "model": "m", "hypotheses": [{}] * 5}, "line 1: 5 hypotheses; --set-size allows 4"),
        ({"id": "nowhere", "model": "m", "hypotheses": [{}]}, "line 1: "),
    ],
)
def test_refusals_name_the_line(
    pools: Callable[[str], Path], tmp_path: Path, line: dict[str, Any], reason: str
) -> None:
    pool = pools("blickets")
    item = benchmark_of(pool).items.read_pool(pool).items[0]
    file = tmp_path / "sets.jsonl"
    file.write_text(json.dumps(line).replace('"ID"', json.dumps(item.id)) + "\n", encoding="utf-8")
    with pytest.raises(CalibrantError, match=reason) as refused:
        list(score_sets([pool], file, 4))
    assert "sets.jsonl: line 1: " in str(refused.value)


def test_two_sets_for_an_item_and_options_of_single_answers_are_refused(
    pools: Callable[[str], Path], tmp_path: Path
) -> None:
    pool = pools("blickets")
    item = benchmark_of(pool).items.read_pool(pool).items[0]
    file = tmp_path / "sets.jsonl"
    file.write_text(2 * (json.dumps({"id": item.id, "model": "m", "hypotheses": [{}]}) + "\n"), encoding="utf-8")
    twice = called("score", pool, file, "--set-size", "2")
    assert twice.returncode == 2
    assert "two sets" in twice.stderr
    workers = called("score", pool, file, "--set-size", "2", "--workers", "2")
    assert workers.returncode == 2
    assert "--workers" in workers.stderr
    assert "--structure" in called("score", pool, file, "--set-size", "2", "--structure").stderr


# --- Sets of SCMs with noise or hidden variables: number, membership and probabilities against plain enumeration ------


def _answer(item: Problem, mechanisms: Mechanisms) -> dict[str, Any]:
    formulas = member_formulas(task_class(item.task).roots, mechanisms)
    return {"mechanisms": {v: render(formula) for v, formula in formulas.items()}}


def _scored(folder: Path, item: Problem, entries: list[Any], size: int) -> SetScore:
    write_pool(Pool("small", (item,)), folder / "pool.jsonl")
    file = jsonl(folder / "sets.jsonl", {"instanceId": item.id, "model": "m", "hypotheses": entries})
    (score,) = score_sets([folder / "pool.jsonl"], file, size)
    return score


# one item each: 4,900 SCMs, all of them possible under noise; 26,600 with a hidden variable, few of which fit
@pytest.mark.parametrize(("rate", "num_hidden", "num_worlds"), [("1/4", 0, 1), (None, 1, 2)])
def test_sets_are_weighed_as_by_enumeration(rate: str | None, num_hidden: int, num_worlds: int, tmp_path: Path) -> None:
    item = small_problem(1, rate=rate, num_hidden=num_hidden, num_worlds=num_worlds, is_episode=False)
    listed = list(posterior_weights(task_class(item.task), item_evidence(item, ())))
    fitting = [(mechanisms, weight) for mechanisms, weight in listed if weight]
    chosen = Random(3).sample(fitting, 3)
    excluded = [_answer(item, mechanisms) for mechanisms, weight in listed if not weight][:1]
    repeated, fewer = _answer(item, chosen[0][0]), _answer(item, chosen[1][0])
    del fewer["mechanisms"][min(fewer["mechanisms"])]  # no SCM of the class
    entries = [*(_answer(item, mechanisms) for mechanisms, _ in chosen), repeated, fewer, "I do not know.", *excluded]
    score = _scored(tmp_path, item, entries, 8)
    assert (score.num_read, score.num_fitting, score.num_distinct) == (4 + len(excluded), 4, 3)
    assert score.count == len(fitting)
    total = sum((weight for _, weight in fitting), start=Fraction(0))
    assert score.prior_mass == pytest.approx(float(sum(weight for _, weight in chosen) / total))
    exact_draws = sum(float(weight / total) * (1 - float(1 - weight / total) ** 8) for _, weight in fitting)
    assert score.draws_prior_mass == pytest.approx(exact_draws, abs=0.1)  # a mean over 100 draws
    assert bool(excluded) is (rate is None)
    assert score.prior in ("the item's uniform prior", "the item's by_parents prior")  # the word of a pool file
    assert {_terms(other) for other in _renamed(item)} == {_terms(item)}


def _terms(item: Problem) -> str:
    prior = hypotheses(item).prior
    assert prior is not None
    return repr(prior.terms)


def _renamed(item: Problem) -> list[Any]:
    return [rename(item, Random(seed)).item for seed in range(2)]


def test_episodes_and_forecasts_have_no_sets() -> None:
    for item, asked in (
        (small_problem(1), "worlds to ask for"),
        (small_problem(1, is_episode=False, is_forecast=True), "a forecast to make"),
    ):
        with pytest.raises(CalibrantError, match=f"{asked}; sets are of passive items that ask for an SCM"):
            hypotheses(item)


# --- Masses under priors: closed forms, sums over all worlds, and frequencies of draws --------------------------------


def test_draws_cover_what_inclusion_and_exclusion_gives() -> None:
    """1 - sum p (1 - p)^k = 1 - sum_j (-1)^j C(k, j) S_(j+1), S_j the sum of p^j; and all draws listed."""
    shares = [Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)]
    for size in range(1, 5):
        sums = [sum(p**j for p in shares) for j in range(size + 2)]
        closed = 1 - sum((-1) ** j * comb(size, j) * sums[j + 1] for j in range(size + 1))
        listed = sum(
            prod(shares[i] for i in draws) * sum(shares[i] for i in set(draws))
            for draws in product(range(3), repeat=size)
        )
        assert closed == listed
        assert covered_mass([(float(p), float(p)) for p in shares], size) == pytest.approx(float(closed))
    assert covered_mass([(1.0, 1.0)], 3) == 1


def test_answers_of_questions_have_the_probability_of_their_worlds() -> None:
    bench = benchmark_of(bundled_sample("causim"))
    checked = 0
    for item in bench.items.read_pool(bundled_sample("causim")).items[::3]:
        hypotheses = bench.require(HYPOTHESES)(item)
        model, question = item.task.model, item.task.question
        if prod(len(node.support) for node in model.nodes) > 3_000 or hypotheses.prior is None:
            continue
        shares: Counter[str] = Counter()
        for values in product(*(node.support for node in model.nodes)):
            world = {node.noise: value for node, value in zip(model.nodes, values, strict=True)}
            factual, intervened = run(model, world, {}), run(model, world, question.do)
            if all(world[key] == value for key, value in question.fixed.items()) and all(
                factual[key] == value for key, value in question.observed.items()
            ):
                keys = question.required_keys(model)
                answer = {key: intervened[key] if key in model.position else world[key] for key in keys}
                weights = zip(model.nodes, values, strict=True)
                shares[assignment_text(answer)] += prod(n.weights[n.support.index(v)] for n, v in weights)
        total = sum(shares.values())
        assert len(shares) == hypotheses.count
        for text, share in shares.items():
            assert hypotheses.prior.probability(json.loads(text)) == pytest.approx(float(share / total))
        assert sum(weight for weight, _ in hypotheses.prior.terms) == pytest.approx(1)
        checked += 1
    assert checked >= 8


def test_scms_have_the_probability_of_their_draws() -> None:
    """Of draws from the posterior, the most frequent SCMs occur as often as their probability says."""
    bench = benchmark_of(bundled_sample("hidden_order"))
    item = bench.items.read_pool(bundled_sample("hidden_order")).items[12]
    prior = bench.require(HYPOTHESES)(item).prior
    assert prior is not None
    canonical, rng, number = canonical_task(item.task), Random(4), 400
    posterior = Posterior(canonical.task)
    draws = Counter(posterior.sample(rng) for _ in range(number))
    for member, times in draws.most_common(3):
        model = canonical.restore_scm(certified_member(canonical.task, member))
        probability = prior.probability(scm_answer(item.task.kind, model))
        assert abs(times / number - probability) < 5 * sqrt(probability * (1 - probability) / number)
        assert probability == pytest.approx(posterior.probability(member))
    assert prior.draws_mass(1) <= prior.draws_mass(4) <= 4 * prior.draws_mass(1)
