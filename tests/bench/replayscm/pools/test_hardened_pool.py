"""harden and generate as commands: what they write, what they say, and their exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from calibrant.audits.replayscm.ambiguity import gold_class
from calibrant.bench.cli import main
from calibrant.bench.core.registry import bundled_pool
from calibrant.dsl.replayscm.item import Pool
from calibrant.dsl.replayscm.pools.files import read_pool, write_pool
from calibrant.solvers.replayscm.space import VersionSpace
from tests.support.commands import refused
from tests.support.replayscm.pools import (
    ALL_ROWS,
    audited,
    two_bundled,
    with_a_wide_gold,
    written_pool,
)
from tests.support.shared import shared_file


@pytest.fixture
def bundled(tmp_path: Path) -> Path:
    return two_bundled(tmp_path / "two.jsonl")


@pytest.fixture
def wide(tmp_path: Path) -> Path:
    return with_a_wide_gold(tmp_path / "wide.jsonl")


def test_harden_until_one_member_is_left_and_certify_it(
    bundled: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, report, folder = tmp_path / "hard.jsonl", tmp_path / "report.jsonl", tmp_path / "certificates"
    line = ["harden", str(bundled), "--out", str(out), "--report", str(report), "--seed", "5", "--workers", "1"]
    assert main([*line, "--certificates", str(folder)]) == 0
    first = out.read_bytes()
    again = [str(tmp_path / "again.jsonl") if word == str(out) else word for word in line[:-6]]
    assert main([*again, "--seed", "5", "--workers", "1"]) == 0
    assert (tmp_path / "again.jsonl").read_bytes() == first
    before, after = read_pool(bundled), read_pool(out)
    for old, new, text in zip(before.problems, after.problems, report.read_text().splitlines(), strict=True):
        told = json.loads(text)
        worlds = old.task.training.worlds, new.task.training.worlds
        assert worlds[1][: len(worlds[0])] == worlds[0]
        assert told["worlds"] == [len(worlds[0]), len(worlds[1])]
        assert new.sealed.heldout == old.sealed.heldout
        assert (told["outcome"], told["members"][1]) == ("reached", "1")
    capsys.readouterr()
    assert main(["verify", *map(str, sorted(folder.iterdir())), str(out)]) == 0
    assert main(["audit", str(out), "--fail-on", "ambiguous", "--workers", "1"]) == 0
    assert main(["audit", str(bundled), "--fail-on", "ambiguous", "--workers", "1"]) == 1


def test_harden_until_all_members_replay_the_held_out_worlds(
    bundled: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, report = tmp_path / "hard.jsonl", tmp_path / "report.jsonl"
    line = ["harden", str(bundled), "--out", str(out), "--report", str(report), "--workers", "1"]
    assert main([*line, "--goal", "heldout-agreement"]) == 0
    told = [json.loads(text) for text in report.read_text(encoding="utf-8").splitlines()]
    assert [one["outcome"] for one in told] == ["reached"] * 2
    for problem in read_pool(out).problems:
        space = VersionSpace(problem.task, gold_class(problem))
        assert space.agreement(problem.sealed.heldout.worlds) == 1
    assert read_pool(out).metadata["hardened"]["goal"] == "heldout-agreement"
    capsys.readouterr()
    other = ["harden", bundled, "--out", tmp_path / "other.jsonl", "--goal", "heldout-agreement"]
    assert "--goal: it needs --mode cex" in refused(capsys, *other, "--mode", "extra-worlds")


def test_harden_until_named_searches_discover_no_alternative(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same searches are then run by the commands on the written items, and find gold alone."""
    pool = tmp_path / "bridges.jsonl"
    write_pool(Pool("bridges", read_pool(bundled_pool("hidden-order")).problems[6:9]), pool)
    out, report, runs = tmp_path / "hard.jsonl", tmp_path / "report.jsonl", tmp_path / "runs"
    searches = ["--goal", "no-discovered", "--searches", "exact,bnlearn+dsl", "--seeds", "3"]
    line = ["harden", str(pool), "--out", str(out), "--report", str(report), "--workers", "1"]
    assert main([*line, *searches]) == 0
    assert "last round, which discovered none: bnlearn+dsl 9 found, exact 3 found" in capsys.readouterr().out
    lines = [json.loads(text) for text in report.read_text(encoding="utf-8").splitlines()]
    assert [line["outcome"] for line in lines] == ["reached"] * 3
    separated = [entry for line in lines for entry in line["discovered"]]
    assert {entry["search"] for entry in separated} <= {"exact", *(f"bnlearn+dsl, seed {k}" for k in range(3))}
    assert separated
    assert all(entry["world"] for entry in separated)
    assert read_pool(out).metadata["hardened"]["searches"] == {"names": "exact,bnlearn+dsl", "num_seeds": 3}

    def discovered(path: Path, folder: Path) -> str:
        assert main(["run", "exact", str(path), "--out", str(folder), "--workers", "1"]) == 0
        file = folder.with_suffix(".jsonl")
        assert main(["alternatives", str(folder), "--out", str(file), "--sweep", str(path), "--seeds", "3"]) == 0
        return file.read_text(encoding="utf-8")

    assert discovered(pool, tmp_path / "before") != ""
    assert discovered(out, runs) == ""
    capsys.readouterr()
    other = ["harden", pool, "--out", tmp_path / "other.jsonl"]
    assert "--searches: it needs --goal no-discovered" in refused(capsys, *other, "--searches", "exact")
    unknown = refused(capsys, *other, "--goal", "no-discovered", "--searches", "nobody")
    assert "nobody" in unknown
    assert "exact" in unknown


def test_harden_says_by_its_exit_code_whether_every_instance_got_there(
    wide: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, report = tmp_path / "hard.jsonl", tmp_path / "report.jsonl"
    line = ["harden", str(wide), "--out", str(out), "--report", str(report), "--workers", "1"]
    strict = ["--only", "CAL_vhs_n9_dense_strict_20000001"]
    assert main([*line, *strict, "--max-parents", "4"]) == 1
    printed = capsys.readouterr()
    assert "1 impossible" in printed.out
    assert "has 5 functional parents in gold" in printed.err
    (unchanged,) = read_pool(out).problems
    assert unchanged in read_pool(wide).problems
    first = tmp_path / "first.jsonl"
    assert main(["harden", str(wide), "--out", str(first), "--workers", "1", "--limit", "1"]) == 0
    assert [problem.id for problem in read_pool(first).problems] == [read_pool(wide).problems[0].id]
    assert read_pool(first).metadata["hardened"]["instances"] == [read_pool(wide).problems[0].id]


def test_worlds_that_do_not_suffice_are_kept_and_the_exit_code_is_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pool = shared_file("thr2.jsonl", part="replayscm/adversarial")
    out, report = tmp_path / "hard.jsonl", tmp_path / "report.jsonl"
    line = ["harden", str(pool), "--out", str(out), "--report", str(report), "--seed", "1", "--workers", "1"]
    assert main(line) == 1
    assert "1 out of budget" in capsys.readouterr().out
    (told,) = [json.loads(text) for text in report.read_text(encoding="utf-8").splitlines()]
    assert told["outcome"] == "out_of_budget"
    assert told["worlds"][1] > told["worlds"][0]
    assert len(read_pool(out).problems[0].task.training.worlds) == told["worlds"][1]


def test_harden_without_gold_is_a_failed_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pool = written_pool(tmp_path / "p.jsonl", [ALL_ROWS])
    header, text = pool.read_text(encoding="utf-8").splitlines()
    record = json.loads(text)
    del record["sealed"]["gold"]
    pool.write_text(f"{header}\n{json.dumps(record)}\n", encoding="utf-8")
    out = tmp_path / "hard.jsonl"
    assert main(["harden", str(pool), "--out", str(out), "--workers", "1"]) == 1
    assert "I0: failed: problem 'I0' has no gold SCM" in capsys.readouterr().err
    assert read_pool(out).problems == read_pool(pool).problems
    (audit,) = audited(capsys, pool)  # what needs gold is left out, and says so; counts do not
    assert audit["findings"]["left_out"].keys() == {"exposure", "bounded", "coverage"}
    assert audit["findings"]["classes"][0]["members"] == "1"


def test_generate_writes_a_pool_and_its_audits(tmp_path: Path) -> None:
    made = []
    for name, workers in (("one", 1), ("two", 2)):
        out, audits = tmp_path / f"{name}.jsonl", tmp_path / f"{name}_audits.jsonl"
        line = ["generate", "--strata", "hs_n6_easy_calibration", "--per-stratum", "2", "--seed", "7"]
        assert main([*line, "--out", str(out), "--audits", str(audits), "--workers", str(workers)]) == 0
        made.append((out.read_bytes(), audits.read_bytes()))
    assert made[0] == made[1]
    pool = read_pool(tmp_path / "one.jsonl")
    assert [problem.stratum for problem in pool.problems] == ["hs_n6_easy_calibration"] * 2
    told = [json.loads(line)["id"] for line in (tmp_path / "one_audits.jsonl").read_text().splitlines()]
    assert told == [problem.id for problem in pool.problems]


def test_generate_names_the_strata_that_there_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = refused(capsys, "generate", "--strata", "none", "--seed", "1", "--out", tmp_path / "g.jsonl")
    assert "hs_n6_easy_calibration" in line


def test_items_that_ask_for_an_alternative_are_not_hardened(
    bundled: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    items, out = tmp_path / "items.jsonl", tmp_path / "out.jsonl"
    assert main(["pool", "alternatives", str(bundled), str(items)]) == 0
    assert main(["harden", str(items), "--out", str(out), "--workers", "1"]) == 1
    assert "failed: it asks for an alternative to a reference" in capsys.readouterr().err
    assert read_pool(out).problems == read_pool(items).problems


def test_generated_pools_have_their_audits_beside_them(tmp_path: Path) -> None:
    """From the command line on, hardening included: the files that it names are there and agree."""
    out = tmp_path / "pool.jsonl"
    line = ["generate", "--strata", "hs_n6_easy_calibration", "--per-stratum", "1", "--seed", "7", "--workers", "1"]
    assert main([*line, "--out", str(out)]) == 0
    (told,) = (tmp_path / "pool.audits.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(told)["id"] == read_pool(out).problems[0].id
