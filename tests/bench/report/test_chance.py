"""Causes of wrong answers, expectations of guessers, and skill, on each bundled pool."""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import fsum
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest

from calibrant.baselines.replayscm.posterior.posterior import Posterior
from calibrant.bench.core.attribution import CHANCE, KEY, answer_status
from calibrant.bench.core.registry import benchmark, benchmark_of, bundled_pools, bundled_sample
from calibrant.bench.core.scoring import AnswerContext
from calibrant.bench.replayscm.audit.records import BehaviourReplay
from calibrant.bench.replayscm.chance_and_best import (
    _behaviour_probability,
    _canonical,
    _with_columns,
    expect_under_prior,
)
from calibrant.bench.replayscm.report import GUIDE
from calibrant.bench.report.overview.results import read_results
from calibrant.bench.report.overview.screen import first_screen
from calibrant.bench.report.pool_attribution import expected_rates
from calibrant.bench.report.rows import Grouping, NamedAnswer, group
from tests.support.commands import called

HIDDEN_ORDER = bundled_pools()[2]
METRICS = benchmark("replayscm").metrics


def _rates(tmp_path: Path, pool: Path, responses: Mapping[str, str]) -> dict[str, Any]:
    lines = [{"instanceId": item, "model": "m", "response": text} for item, text in responses.items()]
    file = tmp_path / "predictions.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    called("score", pool, file, "--out", tmp_path / "verdicts.jsonl", "--workers", "1")
    output = called("table", tmp_path / "verdicts.jsonl", "--attribution", "--pool", pool, "--json").stdout
    row: dict[str, Any] = json.loads(output)["rows"][0]
    return row


@pytest.mark.parametrize("name", ["hidden_order", "blickets", "causalab", "causim", "logic"])
def test_a_refusal_to_answer_is_no_answer(tmp_path: Path, name: str) -> None:
    pool = bundled_sample(name)
    items = [item.id for item in benchmark_of(pool).items.read_pool(pool).items[:2]]
    rates = _rates(tmp_path, pool, dict.fromkeys(items, "I cannot help."))
    assert (rates["no_answer"], rates["invalid"]) == (1.0, 0.0)


@pytest.mark.parametrize("name", ["blickets", "causalab", "replayscm_episodes"])
def test_steps_that_submit_nothing_are_no_answer(tmp_path: Path, name: str) -> None:
    """Of a run and of its transcript alike: `score` reads the steps, a board too."""
    pool = bundled_sample(name)
    bench = benchmark_of(pool)
    item = bench.items.read_pool(pool).items[0]
    verdicts = tmp_path / "verdicts.jsonl"
    actions: dict[str, dict[str, Any]] = {
        "blickets": {"place": "A"},
        "causalab": {"set": "ph", "value": 3},
        "replayscm_episodes": {"do": {}},
    }
    episode = bench.play.open(item)
    episode.act(actions[name])
    steps = json.loads(msgspec.json.encode(episode.steps))
    lines = [{"instanceId": item.id, "model": str(i), "steps": made} for i, made in enumerate((steps[:-1], steps))]
    file = tmp_path / "predictions.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    assert called("score", pool, file, "--out", verdicts, "--workers", "1").returncode == 0
    statuses = [answer_status(json.loads(line)) for line in verdicts.read_text(encoding="utf-8").splitlines()]
    assert statuses == ["none", "none"]


@pytest.mark.parametrize("name", ["hidden_order", "causim"])
def test_an_answer_in_another_form_is_no_answer_everywhere(tmp_path: Path, name: str) -> None:
    """The lenient reader reads it: reason `wrong_format`, whether its objects or its quotes are not the paper's."""
    pool, write = bundled_sample(name), json.dumps
    items = benchmark_of(pool).items.read_pool(pool).items[:2]
    answers = {item.id: benchmark_of(pool).training.gold(item) for item in items}
    texts = {i: write({"answer": a}) if name == "causim" else write(a).replace('"', "'") for i, a in answers.items()}
    rates = _rates(tmp_path, pool, texts)
    assert {*rates["reasons"]} == {"wrong_format"}
    assert (rates["no_answer"], rates["invalid"]) == (1.0, 0.0)


def test_causes_of_wrong_answers_to_replayscm(tmp_path: Path) -> None:
    problems = benchmark_of(HIDDEN_ORDER).items.read_pool(HIDDEN_ORDER).items[:4]
    texts = ["I cannot help.", '{"mechanisms": {"X1": "(and X2)"}}']
    for problem in problems[2:]:
        root = problem.task.disclosure.roots[0]
        texts.append(json.dumps({"mechanisms": dict.fromkeys(problem.task.disclosure.endogenous, root)}))
    rates = _rates(tmp_path, HIDDEN_ORDER, dict(zip([p.id for p in problems], texts, strict=True)))
    assert [rates[key] for key in ("no_answer", "invalid", "misfit", "open_error")] == [0.25, 0.25, 0.5, 0.0]
    assert rates["short"] + rates["missed"] == 0.5


@pytest.mark.parametrize(
    ("score", "status"),
    [
        ({"no_answer": True, "valid": False, "funnel": {"extracted": True}}, "none"),
        ({"valid": False, "funnel": {"extracted": False}}, "none"),
        ({"valid": False, "funnel": {"extracted": True}}, "invalid"),
        ({"valid": True, "funnel": {"extracted": True}}, "valid"),
        ({"answered": False, "why": "wrong_keys", "problem": ""}, "invalid"),
        ({"answered": False, "why": "wrong_keys", "problem": "", "reason": "wrong_format"}, "none"),
        ({"answered": False, "why": "no_object", "problem": ""}, "none"),
        ({"closed": "open", "problem": ""}, "none"),
        ({"closed": "answered", "problem": ""}, "valid"),
        ({"submitted": 0.0, "problem": "hypothesis is 7, not an object"}, "invalid"),
        ({"valid": False, "error": "model: a list of clauses"}, "invalid"),
    ],
)
def test_statuses(score: dict[str, Any], status: str) -> None:
    assert answer_status(score) == status


def test_probabilities_of_behaviours_add_up_to_one() -> None:
    for problem in benchmark_of(HIDDEN_ORDER).items.read_pool(HIDDEN_ORDER).items[:3]:
        task, heldout = _canonical(problem)
        posterior, rng, replay = Posterior(task), Random(1), BehaviourReplay(heldout)
        behaviours = set(replay.behaviours([posterior.sample(rng) for _ in range(600)]))
        shares = [_behaviour_probability(posterior, _with_columns(heldout, columns)) for _, *columns in behaviours]
        # 600 draws leave out behaviours that are rare together
        assert 0.97 < fsum(shares) <= 1 + 1e-9
        expected = expect_under_prior(problem)
        assert expected is not None
        gold = _behaviour_probability(posterior, heldout)
        assert expected == {"draw": gold, "best": max([gold, *shares])}


def _context(instance: str) -> AnswerContext:
    return AnswerContext("m", "pool", "digest", 8, instance, "Hidden-order", "", benchmark="replayscm")


def _score(kind: str, draw: float | None, best: float | None) -> dict[str, Any]:
    attribution = {"kind": kind, "decided": False, "fits": True, "members": "2", "class": ""}
    return {"valid": True, KEY: attribution, CHANCE: {"uniform": draw, "draw": draw, "best": best}}


def test_skill_is_a_ratio_of_means_over_answers_with_both_guessers() -> None:
    kinds = ["lucky", "lucky", "lucky", "short", "lucky", "short", "short", "lucky"]
    answers = [(_context(f"i{n}"), _score(kind, 0.25, 0.75)) for n, kind in enumerate(kinds)]
    answers[-1] = _context("i7"), _score("lucky", None, None)  # left out: 4 of 7 remain
    (row,) = group(answers, METRICS, Grouping.SETTING)
    skill = row.rates["skill"]
    assert skill.value == pytest.approx((4 / 7 - 0.25) / (0.75 - 0.25))
    assert skill.value is not None
    interval = row.interval("skill")
    assert interval is not None
    assert interval.low < skill.value < interval.high
    assert skill.num_items == 7
    assert skill.text == "0.64"


def test_skill_is_undefined_where_the_best_is_no_better_than_a_draw() -> None:
    answers = [(_context(f"i{n}"), _score("earned", 1.0, 1.0)) for n in range(8)]
    (row,) = group(answers, METRICS, Grouping.SETTING)
    assert (row.rates["skill"].value, row.rates["skill"].text) == (None, "\N{EN DASH}")


def test_levels_of_a_report_have_the_name_of_the_column_that_they_equal() -> None:
    """The bundled pool has a prior: its chance is another figure than a uniform draw."""
    item = benchmark_of(HIDDEN_ORDER).items.read_pool(HIDDEN_ORDER).items[0]
    expected = expected_rates(benchmark("replayscm"), item, {})
    drawn = GUIDE.levels(item, (), {}).draw
    assert drawn == expected["uniform"] == 0.3680555555555556
    assert expected["draw"] == 1.0
    score = {"valid": True, "heldoutExact": False, "trainExact": False}
    context = AnswerContext("m", "p", "0" * 64, 1, item.id, item.setting, "")
    results = read_results("replayscm", "ReplaySCM", [NamedAnswer("m", context, score)], METRICS, GUIDE)
    results.systems[0].outcomes[0].levels = GUIDE.levels(item, (), {})
    screen = first_screen(results, "")
    cells = dict(zip(screen["level_headings"][1:], screen["rows"][0]["level_cells"], strict=True))
    assert cells["Uniform draw"] == "0.368"
    assert not {"Draw", "Chance"} & cells.keys()
    assert any(entry["text"].startswith("uniform draw: ") for entry in screen["legend"])
