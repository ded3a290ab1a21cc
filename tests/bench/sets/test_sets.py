"""Sets of hypotheses: all members recover everything, and each measure is what counting by hand gives."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from math import isfinite
from pathlib import Path
from typing import Any

import pytest

from calibrant.bench.core.capabilities import FUNCTIONS
from calibrant.bench.core.registry import benchmark_of
from calibrant.bench.core.sets import HYPOTHESES
from calibrant.bench.replayscm.rows.exact import scm_answer
from calibrant.bench.scoring.sets import score_sets
from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.logic.score import answer_json
from calibrant.solvers.replayscm.members import members_by_size
from tests.support.commands import called

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
    of = benchmark_of(pool)
    for item in of.items.read_pool(pool).items:
        hypotheses = of.require(HYPOTHESES)(item)
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
