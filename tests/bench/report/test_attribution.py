"""`calibrant report --attribution` on ReplaySCM: what the training worlds decided, as a table and as a plot.

X3 = X1 and X2. With all rows one function is left; with two rows there are four, and held-out worlds tell them apart.
"""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from calibrant.bench.cli import main
from calibrant.dsl.replayscm.pools.files import read_pool
from tests.support.commands import jsonl, refused
from tests.support.graded_records import blicket_record, graded, write_records
from tests.support.replayscm.audited_pools import ALL_ROWS, FOUR_MEMBERS, written_pool


@pytest.fixture
def pool(tmp_path: Path) -> Path:
    return written_pool(tmp_path / "p.jsonl", [ALL_ROWS] * 3 + [FOUR_MEMBERS] * 3)


@pytest.fixture
def answers(pool: Path, tmp_path: Path) -> Path:
    """`gold` is right everywhere, `constant` says that X3 is 0, which two rows allow and all rows do not."""
    lines = [
        {"instanceId": problem.id, "model": model, "response": json.dumps({"mechanisms": {"X3": formula}})}
        for problem in read_pool(pool).problems
        for model, formula in (("gold", "(and X1 X2)"), ("constant", "(and X1 (not X1))"))
    ]
    return jsonl(tmp_path / "answers.jsonl", *lines)


def figures(text: str) -> dict[tuple[str, str], tuple[str, str, str]]:
    rows = csv.DictReader(io.StringIO(text))
    return {(row["system"], row["column"]): (row["value"], row["low"], row["high"]) for row in rows}


def test_the_four_kinds_have_shares_and_intervals(pool: Path, answers: Path, tmp_path: Path) -> None:
    out = tmp_path / "r.csv"
    line = ["report", "--predictions", str(answers), "--pools", str(pool), "--table", "attribution", "--out", str(out)]
    assert main(line) == 0
    found = figures(out.read_text(encoding="utf-8"))
    kinds = ("earned", "missed", "lucky", "short")
    assert {system: tuple(found[system, kind][0] for kind in kinds) for system in ("gold", "constant")} == {
        "gold": ("0.500", "0.000", "0.500", "0.000"),
        "constant": ("0.000", "0.500", "0.000", "0.500"),
    }
    assert found["gold", "decided"][0] == found["constant", "decided"][0] == "0.500"
    assert (found["gold", "fits"][0], found["constant", "fits"][0]) == ("1.000", "0.500")
    assert found["gold", "missed"][1:] == ("0.000", "0.390")  # Wilson's interval of 0 of 6 ends at z² / (6 + z²)


def test_only_a_report_that_is_asked_has_it(pool: Path, answers: Path, tmp_path: Path) -> None:
    plain, asked = tmp_path / "plain.html", tmp_path / "asked.html"
    line = ["report", "--predictions", str(answers), "--pools", str(pool), "--no-times", "--out"]
    assert main([*line, str(plain)]) == 0
    assert main([*line, str(asked), "--attribution"]) == 0
    assert 'id="table-attribution"' not in plain.read_text(encoding="utf-8")
    assert "add <code>--attribution</code>" in plain.read_text(encoding="utf-8")
    assert 'id="table-attribution"' in asked.read_text(encoding="utf-8")
    assert "add <code>" not in asked.read_text(encoding="utf-8")


@pytest.mark.parametrize("suffix", [".txt", ".md", ".tex"])
def test_every_format_has_the_table(suffix: str, pool: Path, answers: Path, tmp_path: Path) -> None:
    out = tmp_path / f"r{suffix}"
    line = ["report", "--predictions", str(answers), "--pools", str(pool), "--attribution", "--out", str(out)]
    assert main(line) == 0
    text = out.read_text(encoding="utf-8")
    assert "What the evidence had decided" in text
    assert "Earned" in text


def test_beside_another_benchmark_the_table_is_of_those_that_have_it(pool: Path, tmp_path: Path) -> None:
    scms, episodes = tmp_path / "scms", write_records(tmp_path / "episodes", [blicket_record(0, graded())])
    assert main(["run", "exact", str(pool), "--out", str(scms), "--workers", "1"]) == 0
    line = ["report", str(scms), str(episodes), "--table", "attribution", "--out"]
    for name, asked, systems in (
        ("of_episodes", [], {"static"}),
        ("of_all", ["--pools", str(pool)], {"exact", "static"}),
    ):
        out = tmp_path / f"{name}.csv"
        assert main([*line, str(out), *asked]) == 0
        assert {system for system, _ in figures(out.read_text(encoding="utf-8"))} == systems


def test_without_pools_it_is_refused(pool: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = tmp_path / "run"
    assert main(["run", "exact", str(pool), "--out", str(run), "--workers", "1"]) == 0
    capsys.readouterr()
    for asked in (["--attribution"], ["--table", "attribution"]):
        assert "a pool of ReplaySCM, have none; add --pool POOL" in refused(capsys, "report", run, *asked)
