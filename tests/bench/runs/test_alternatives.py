"""`calibrant harden --alternatives`: every line is separated, not separable or refused, and the report says which."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from calibrant.bench.cli import main
from calibrant.bench.core.registry import bundled_pool
from calibrant.dsl.formulas.text import render
from calibrant.dsl.replayscm.disclosure import HiddenOrder
from calibrant.dsl.replayscm.item import Pool, Problem
from calibrant.dsl.replayscm.pools.files import read_pool, write_pool
from calibrant.dsl.replayscm.reference import replays_exactly
from calibrant.dsl.replayscm.scm import Scm
from calibrant.solvers.replayscm.members import sample_members
from calibrant.solvers.replayscm.space import ModelClass, VersionSpace
from tests.support.commands import jsonl, refused
from tests.support.replayscm.audited_pools import ALL_ROWS, FOUR_MEMBERS, written_pool
from tests.support.replayscm.written import written_problem, written_scm, written_world


def harden(pool: Path, alternatives: Path, folder: Path) -> list[dict[str, Any]]:
    line = ["harden", str(pool), "--out", str(folder / "hard.jsonl"), "--report", str(folder / "report.jsonl")]
    assert main([*line, "--alternatives", str(alternatives), "--workers", "1"]) == 0
    return [json.loads(text) for text in (folder / "report.jsonl").read_text(encoding="utf-8").splitlines()]


def line_for(problem: Problem, model: Scm) -> dict[str, Any]:
    return {"instance": problem.id, "mechanisms": {v: render(f) for v, f in model.mechanisms.items()}}


@pytest.mark.parametrize("setting", ["hidden-order", "hidden-roots"])
def test_members_are_separated_by_the_world_that_is_named(
    setting: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Which world shows a difference first is recomputed with the row-by-row reference."""
    problem = read_pool(bundled_pool(setting)).problems[0]
    pool = tmp_path / "one.jsonl"
    write_pool(Pool("one", (problem,), {}), pool)
    drawn = sample_members(VersionSpace(problem.task, ModelClass(4)), Random(1), 6)
    lines = [line_for(problem, model) for model in drawn]
    if setting == "hidden-roots":
        lines = [line | {"roots": list(model.roots)} for line, model in zip(lines, drawn, strict=True)]
    (report,) = harden(pool, jsonl(tmp_path / "found.jsonl", *lines), tmp_path)
    (hard,) = read_pool(tmp_path / "hard.jsonl").problems
    added = hard.task.training.worlds[len(problem.task.training.worlds) :]
    told = report["alternatives"]
    assert [one["line"] for one in told] == list(range(1, 7))
    seen: list[Scm] = []
    for one, model in zip(told, drawn, strict=True):
        if any(model.equivalent(other) for other in seen):
            assert (one["outcome"], one["why"].startswith("means the same as line")) == ("refused", True)
            continue
        first = next(world.id for world in added if not replays_exactly(model, [world]))
        assert (one["outcome"], one["world"], one["why"]) == ("separated", first, "")
        seen.append(model)
    assert len(seen) > 3
    assert f"alternatives: {len(seen)} separated, 0 not separated, {6 - len(seen)} refused\n" in capsys.readouterr().out


def test_what_is_no_alternative_is_refused_with_the_reason(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Gold is X3 = X1 and X2; I1 shows the rows 00 and 10 only."""
    pool = written_pool(tmp_path / "small.jsonl", [ALL_ROWS, FOUR_MEMBERS])
    supplied = [
        ("I1", "(and X2 X1)", "means the same as gold"),
        ("I1", "X1", "does not fit the training worlds: X3 in world good-1"),
        ("I1", "(or X1", "mechanism of 'X3'"),
        ("I1", "X2", ""),
        ("I1", "(not (not X2))", "means the same as line 4"),
        ("I0", "X2", "does not fit the training worlds: X3 in world good-0"),
        ("I7", "X2", "about no instance"),
    ]
    lines = [{"instance": name, "mechanisms": {"X3": text}} for name, text, _ in supplied]
    reports = harden(pool, jsonl(tmp_path / "found.jsonl", *lines), tmp_path)
    told = {one["line"]: one for report in reports for one in report["alternatives"]}
    assert [one["line"] for one in reports[0]["alternatives"]] == [6]
    for number, (_, _, why) in enumerate(supplied[:-1], 1):
        assert told[number]["outcome"] == ("refused" if why else "separated")
        assert told[number]["why"].startswith(why)
        assert bool(told[number]["world"]) != bool(why)
    printed = capsys.readouterr()
    assert "alternatives: 1 separated, 0 not separated, 5 refused; 1 are about no instance" in printed.out
    assert "I1: line 1: refused: means the same as gold\n" in printed.err


def test_what_no_admissible_world_shows_is_named(tmp_path: Path) -> None:
    """B to E copy A. The alternative differs where B, C, D, E are 1 and A is 0: that takes four targets."""
    copies = dict.fromkeys("BCDE", "(not (not A))")
    gold = written_scm("A", **copies, Z="B")
    other = written_scm("A", **copies, Z="(xor B (and (not A) B C D E))")
    names = " ".join(gold.variables)
    rows = " ".join("".join(bit for _ in gold.variables) for bit in "01")
    problem = written_problem(
        HiddenOrder(gold.variables, ("A",)), gold, [written_world("w", names, rows)], latent="A B C D E Z"
    )
    pool = tmp_path / "four.jsonl"
    write_pool(Pool("four", (problem,), {}), pool)
    (report,) = harden(pool, jsonl(tmp_path / "found.jsonl", line_for(problem, other)), tmp_path)
    (told,) = report["alternatives"]
    assert (told["outcome"], told["world"]) == ("not_separated", "")
    assert told["why"] == "agrees with gold in every row that an admissible world can show"


def test_files_that_hold_no_alternatives_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pool = written_pool(tmp_path / "small.jsonl", [ALL_ROWS])
    line = ["harden", pool, "--out", tmp_path / "hard.jsonl", "--workers", "1", "--alternatives"]
    found = tmp_path / "found.jsonl"
    for text, reason in [
        ("{", "line 2: not JSON: "),
        ("[]", "line 2: not an object with 'instance' and 'mechanisms'"),
        ('{"instance": 7, "mechanisms": {}}', "line 2: not an object with 'instance' and 'mechanisms'"),
        ('{"instance": "I0"}', "line 2: 'mechanisms' is None, not an object of variable: formula"),
    ]:
        jsonl(found, {"instance": "I0", "mechanisms": {"X3": "X2"}}, text)
        assert reason in refused(capsys, *line, found)
    (tmp_path / "bytes.jsonl").write_bytes(b"\xff\n")
    assert "not UTF-8" in refused(capsys, *line, tmp_path / "bytes.jsonl")
    assert refused(capsys, *line, tmp_path / "none.jsonl").endswith("none.jsonl: No such file or directory")
    assert "--alternatives: it needs --mode cex" in refused(capsys, *line, found, "--mode", "extra-worlds")


def test_a_class_without_gold_is_proved_impossible(tmp_path: Path) -> None:
    """X3 = X1 and X2 has two parents: no world that it simulates makes it the only SCM of one parent."""
    pool, report = written_pool(tmp_path / "small.jsonl", [ALL_ROWS]), tmp_path / "report.jsonl"
    line = ["harden", str(pool), "--out", str(tmp_path / "hard.jsonl"), "--report", str(report), "--max-parents", "1"]
    assert main([*line, "--workers", "1"]) == 1
    (told,) = map(json.loads, report.read_text(encoding="utf-8").splitlines())
    assert told["outcome"] == "impossible"
    assert told["why"] == "X3 has 2 functional parents in gold, so gold is not in the class, whatever worlds are added"
    assert read_pool(tmp_path / "hard.jsonl").problems == read_pool(pool).problems
    second = tmp_path / "second.jsonl"
    line[3], line[5], line[-1] = str(tmp_path / "harder.jsonl"), str(second), "2"
    assert main([*line, "--workers", "1"]) == 0
    assert json.loads(second.read_text(encoding="utf-8"))["outcome"] == "reached"
