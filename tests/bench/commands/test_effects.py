"""Options that have no effect on the small files of `test_options`: here they have one, on every benchmark."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from calibrant.bench.core.registry import bundled_sample
from tests.bench.commands.lines import BENCHMARKS, Files
from tests.support.commands import called, jsonl

FINDINGS = {"blickets": "vacuous", "causalab": "vacuous", "causim": "copyable"}  # a kind that is proved of some items


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Files]:
    return cache(lambda name: Files.made(name, tmp_path_factory.mktemp(name)))


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_unknown_instances_are_passed_over(benchmark: str, files: Callable[[str], Files], tmp_path: Path) -> None:
    known = files(benchmark).predictions.read_text("utf-8").splitlines()
    predictions = jsonl(
        tmp_path / "more.jsonl", {"id": "nowhere", "model": "m", "rawResponse": "{}"}, *map(json.loads, known)
    )
    assert called("score", files(benchmark).pool, predictions).returncode == 2
    scored = called("score", files(benchmark).pool, predictions, "--skip-unknown")
    assert scored.returncode == 0
    assert scored.stdout == called("score", files(benchmark).pool, files(benchmark).predictions).stdout


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_a_report_without_times_shows_none(benchmark: str, files: Callable[[str], Files], tmp_path: Path) -> None:
    """The same answers given slower: with times ReplaySCM's report differs, without them none does."""
    slower = tmp_path / "run"
    slower.mkdir()
    for source in files(benchmark).run.iterdir():
        text = re.sub(r'("seconds": ?)[^,}]+', r"\g<1>1000.0", source.read_text("utf-8"))
        (slower / source.name).write_text(text, "utf-8")
    reports = [
        [called("report", run, *option).stdout for run in (files(benchmark).run, slower)]
        for option in ([], ["--no-times"])
    ]
    assert (reports[0][0] == reports[0][1]) is (benchmark != "replayscm")
    assert reports[1][0] == reports[1][1]


@pytest.mark.parametrize("benchmark", ["blickets", "causalab"])
def test_episodes_are_attributed_with_the_option_and_without(benchmark: str, files: Callable[[str], Files]) -> None:
    usual, asked = (called("report", files(benchmark).run, *option) for option in ([], ["--attribution"]))
    assert usual.stdout == asked.stdout
    assert "Earned" in usual.stdout


@pytest.mark.parametrize(("benchmark", "kind"), FINDINGS.items())
def test_findings_fail_the_audit_of_the_chosen_items(benchmark: str, kind: str, tmp_path: Path) -> None:
    pool = tmp_path / "pool.jsonl"
    pool.write_text("".join(bundled_sample(benchmark).read_text("utf-8").splitlines(keepends=True)[:13]), "utf-8")
    whole = called("audit", pool, "--json")
    findings = json.loads(whole.stdout)
    ids = [json.loads(line)["id"] for line in pool.read_text("utf-8").splitlines()[1:]]
    assert whole.returncode == 0
    assert called("audit", pool, "--fail-on", kind).returncode == 1
    proved = {one["instance"] for one in findings if one["kind"] == kind and one["verdict"] == "proved"}
    others = [one["instance"] for one in findings if one["instance"] not in proved]
    if others:
        assert called("audit", pool, "--fail-on", kind, "--only", others[0]).returncode == 0
    for chosen, option in ((findings[-1]["instance"], "--only"), (findings[0]["instance"], "--limit")):
        value = chosen if option == "--only" else ids.index(chosen) + 1
        shown = json.loads(called("audit", pool, "--json", option, value).stdout)
        assert shown == [one for one in findings if one["instance"] in {item["instance"] for item in shown}]
        assert chosen in {one["instance"] for one in shown}
        assert len(shown) < len(findings)


def test_pools_show_episodes_of_blickets_in_a_page(files: Callable[[str], Files]) -> None:
    line = ["report", files("blickets").run, "--format", "html"]
    assert "episode-0-0" in called(*line, "--pool", files("blickets").pool).stdout
    assert "episode-0-0" not in called(*line).stdout
