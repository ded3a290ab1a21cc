"""Difficulty: simulated systems whose difficulties are known, refusals, and both commands on a small pool."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest

from calibrant.bench.core.registry import benchmark, benchmark_of
from calibrant.bench.difficulty.models import (
    Coefficient,
    DifficultyFit,
    HeldOut,
    IntArray,
    OutcomeTable,
    fit_difficulty,
    fit_responses,
)
from calibrant.bench.difficulty.report import difficulty_reason
from calibrant.bench.difficulty.subsets import choose_subset
from calibrant.dsl.errors import CalibrantError
from tests.support.accessibility import measure, needs_axe
from tests.support.commands import called
from tests.support.packages import needs

needs("girth", "statsmodels")


def _simulated(
    num_items: int, num_systems: int, seed: int
) -> tuple[np.ndarray[tuple[int], np.dtype[np.float64]], IntArray]:
    """Return difficulties from -1.5 to 1.5 and answers of systems with normal abilities under the Rasch model."""
    rng = np.random.default_rng(seed)
    difficulty = np.linspace(-1.5, 1.5, num_items)
    odds = rng.normal(size=num_systems)[None, :] - difficulty[:, None]
    return difficulty, (rng.random(odds.shape) < 1 / (1 + np.exp(-odds))).astype(np.int64)


def _table(answers: IntArray) -> OutcomeTable:
    num_items, num_systems = answers.shape
    return OutcomeTable(
        benchmark("blickets"),
        tuple(("digest", f"item {k}") for k in range(num_items)),
        (None,) * num_items,
        ("all",) * num_items,
        tuple(f"s{k:02}" for k in range(num_systems)),
        answers.astype(np.float64),
        np.ones_like(answers),
    )


def test_rasch_difficulties_are_those_that_were_simulated() -> None:
    difficulty, answers = _simulated(40, 60, 1)
    model = fit_responses(answers)
    fitted = difficulty[list(model.items)]
    assert np.corrcoef(fitted, model.difficulty)[0, 1] > 0.93  # .91 at 30 systems on average, simulated apart
    # of 60 systems the standard error covers the truth, on the scale of the fit, about as often as it should
    scaled = (model.difficulty - model.difficulty.mean()) - (fitted - fitted.mean())
    assert np.mean(np.abs(scaled) < 2 * model.standard_error) > 0.85


def test_constant_items_are_listed_and_left_out() -> None:
    _, answers = _simulated(34, 12, 2)
    answers[3], answers[7] = 0, 1
    model = fit_responses(answers)
    assert {3, 7} <= set(model.constant)
    assert not set(model.items) & set(model.constant)
    assert np.abs(model.difficulty).max() < 6


@pytest.mark.parametrize(("items", "systems", "name"), [(24, 50, "rasch"), (40, 7, "rasch"), (40, 99, "2pl")])
def test_too_little_is_refused(items: int, systems: int, name: str) -> None:
    _, answers = _simulated(items, systems, 3)
    with pytest.raises(CalibrantError, match="needs 30"):
        fit_responses(answers, name)  # type: ignore[arg-type]


def test_an_informative_subset_estimates_the_pool_better_than_random_ones() -> None:
    _, answers = _simulated(60, 40, 4)
    table = _table(answers)
    families = {system: f"f{k % 5}" for k, system in enumerate(table.systems)}
    subset = choose_subset(table, 15, families)
    assert len(subset.rows) == len(set(subset.rows)) == 15
    assert subset.families == 5
    assert subset.error.mean < subset.random_error.mean
    assert subset.error.worst < 0.25
    again = choose_subset(table, 15, families)
    assert again == subset
    with pytest.raises(CalibrantError, match="one family"):
        choose_subset(table, 15, dict.fromkeys(table.systems, "x"))


def test_features_that_cause_difficulty_predict_new_systems() -> None:
    rng = np.random.default_rng(5)
    hard = rng.integers(0, 2, 80)
    rates = (rng.random((80, 6)) < np.where(hard, 0.2, 0.8)[:, None]).astype(np.int64)
    fit = fit_difficulty(_table(rates), [{"hard": float(h), "noise": float(rng.random()), "same": 1.0} for h in hard])
    assert fit.coefficients[0].feature == "hard"
    assert fit.coefficients[0].log_odds < -0.8
    assert {c.feature for c in fit.coefficients} == {"hard", "noise"}  # what does not vary explains nothing
    assert fit.by_features.auc is not None
    assert fit.by_stratum.auc is not None
    assert fit.by_features.auc > 0.75 > 0.6 > fit.by_stratum.auc  # one stratum orders nothing
    assert fit.by_features.log_loss < fit.by_stratum.log_loss - 0.1


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return a pool of 32 detectors and the verdicts on nine models, which are right more often on easy ones."""
    folder = tmp_path_factory.mktemp("difficulty")
    pool, answers, verdicts = folder / "pool.jsonl", folder / "answers.jsonl", folder / "verdicts.jsonl"
    made = called(
        "generate", "--benchmark", "logic", "--seed", "2", "--strata", "noisy", "--per-stratum", "32", "--out", pool
    )
    assert made.returncode == 0, made.stderr
    bench = benchmark_of(pool)
    rng, lines = random.Random(6), []
    for k, item in enumerate(bench.items.read_pool(pool).items):
        for model in range(9):
            is_right = rng.random() < 0.1 + 0.8 * (k % 8) / 7 * (model + 3) / 11
            answer = bench.training.gold(item) if is_right else {"model": []}
            lines.append(json.dumps({"id": item.id, "model": f"m{model}", "response": json.dumps(answer)}))
    answers.write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert called("score", pool, answers, "--out", verdicts).returncode == 0
    return pool, verdicts


def test_the_command_explains_and_writes_a_page(scored: tuple[Path, Path], tmp_path: Path) -> None:
    pool, verdicts = scored
    page = tmp_path / "page.html"
    result = called("difficulty", verdicts, "--pools", pool, "--model", "rasch", "--html", page, "--json")
    assert result.returncode == 0, result.stderr
    record = json.loads(result.stdout)
    assert len(record["systems"]) == 9
    assert record["answers"] == 9 * 32
    assert {c["feature"] for c in record["coefficients"]} >= {"log2_members", "edges"}
    fitted = record["responses"]["items"]
    assert len(fitted) + len(record["responses"]["constant"]) == 32
    assert "Which items are hard?" in page.read_text(encoding="utf-8")
    refused = called("difficulty", verdicts, "--pools", pool, "--model", "2pl")
    assert refused.returncode == 2
    assert "needs 30 items and 100 systems" in refused.stderr


def test_samples_are_counted_as_answers_and_fitted_as_their_mean(scored: tuple[Path, Path], tmp_path: Path) -> None:
    """Page, text and JSON have one number each of answers and of means; equal samples change no coefficient."""
    pool, verdicts = scored
    lines, twice = (pool.parent / "answers.jsonl").read_text("utf-8").splitlines(), tmp_path / "twice.jsonl"
    (tmp_path / "answers.jsonl").write_text("\n".join([*lines, *lines[:100]]) + "\n", encoding="utf-8")
    assert called("score", pool, tmp_path / "answers.jsonl", "--out", twice).returncode == 0
    page, words = tmp_path / "page.html", ["difficulty", twice, "--pools", pool]
    printed = called(*words, "--html", page).stdout.splitlines()
    sentence = "f several answers of a system to an item their mean counts: 288 means"
    assert printed[:2] == ["388 answers of 9 systems to 32 items", f"o{sentence}"]
    text = page.read_text("utf-8")
    assert "<li>388 answers</li>" in text
    assert f"O{sentence}." in text
    record = json.loads(called(*words, "--json").stdout)
    assert (record["answers"], record["means"]) == (388, 288)
    single = json.loads(called("difficulty", verdicts, "--pools", pool, "--json").stdout)
    assert record["coefficients"] == single["coefficients"]
    assert (single["answers"], single["means"]) == (288, 288)


def test_a_subset_of_a_pool_is_a_pool(scored: tuple[Path, Path], tmp_path: Path) -> None:
    pool, verdicts = scored
    small = tmp_path / "small.jsonl"
    families = tmp_path / "families.csv"
    families.write_text("system,family\n" + "".join(f"m{k},f{k // 3}\n" for k in range(9)), encoding="utf-8")
    result = called("pool", "subset", pool, small, "--runs", verdicts, "--items", "10", "--json")
    assert result.returncode in (0, 2), result.stderr
    if result.returncode == 2:  # eight systems are left when one is out, and fewer than 30 items may tell these apart
        assert "items tell systems apart" in result.stderr
        return
    record = json.loads(result.stdout)
    chosen = [item.id for item in benchmark_of(small).items.read_pool(small).items]
    assert chosen == record["items"]
    own = called("pool", "subset", pool, pool, "--runs", verdicts, "--items", "10")
    assert own.returncode == 2


@needs_axe
def test_the_page_is_accessible(scored: tuple[Path, Path], tmp_path: Path) -> None:
    pool, verdicts = scored
    page = tmp_path / "page.html"
    assert called("difficulty", verdicts, "--pools", pool, "--model", "rasch", "--html", page).returncode == 0
    assert measure(page.read_text(encoding="utf-8"), tmp_path, theme="dark", width=390).violations == []


@pytest.mark.parametrize(
    ("auc", "reason"),
    [
        (0.7, "Items with a larger least_size are harder. Features predict a system that was left out better than"),
        (
            0.27,
            "No feature tells which items are hard: the AUC for systems that were left out is 0.270, and a guess has",
        ),
        (None, "No feature tells which items are hard: the AUC for systems that were left out cannot be measured."),
    ],
)
def test_the_page_calls_items_harder_only_where_features_predict_better_than_a_guess(
    auc: float | None, reason: str
) -> None:
    coefficients = (Coefficient("least_size", 4.0, 1.0, -0.5),)
    fit = DifficultyFit(coefficients, HeldOut(auc, 0.6), HeldOut(0.5, 0.7), 30, 300, 300, ("a", "b"), {})
    assert difficulty_reason(fit).startswith(reason)
