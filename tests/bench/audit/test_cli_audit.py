"""`calibrant audit`, `verify`, `separate`, `harden`, `generate`: exit codes, records, one-line refusals.

The small pool is X3 = X1 and X2. With all four rows exactly one function fits; without the row 11 there are two, `and`
and the constant 0; without 01 and 11 there are four. Held-out worlds show all rows, so one member replays them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from audits.replayscm.ambiguity import gold_class
from audits.replayscm.instance import audit_instance
from bench.audit import run as audit_run
from bench.audit.certificates import certificate_name
from bench.audit.text import short_count
from bench.cli import main
from bench.pools.bundled import bundled_pool
from dsl.replayscm.pools.files import read_pool, write_pool
from solvers.replayscm.version_space import VersionSpace
from tests.support.commands import command, refused
from tests.support.shared import shared_file
from tests.support.stub_protocols import small_pool

ALL_ROWS = ("000", "100", "010", "111")
TWO_MEMBERS = ("000", "100", "010")
FOUR_MEMBERS = ("000", "100")


def written_pool(path: Path, evidence: Sequence[Sequence[str]], **changes: Any) -> Path:
    """A pool of X3 = X1 and X2 with these training rows, one instance each; changes go into every record."""
    write_pool(small_pool(["good"] * len(evidence)), path)
    header, *lines = path.read_text(encoding="utf-8").splitlines()
    records = [json.loads(line) for line in lines]
    for record, rows in zip(records, evidence, strict=True):
        record["training"][0].update(rows=list(rows), units=[f"u{i}" for i in range(len(rows))])
        record.update(changes)
    path.write_text("\n".join([header, *map(json.dumps, records)]) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def pool(tmp_path: Path) -> Path:
    return written_pool(tmp_path / "small.jsonl", [ALL_ROWS, TWO_MEMBERS, FOUR_MEMBERS])


def audited(capsys: pytest.CaptureFixture[str], *arguments: object) -> list[dict[str, Any]]:
    """The records that the command prints."""
    assert main(["audit", *map(str, arguments), "--json", "--workers", "1"]) == 0
    records: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["instances"]
    return records


def test_counts_are_those_of_the_truth_table(pool: Path, capsys: pytest.CaptureFixture[str]) -> None:
    records = audited(capsys, pool)
    assert [record["instance"] for record in records] == ["I0", "I1", "I2"]
    for record, members in zip(records, ("1", "2", "4"), strict=True):
        found = record["findings"]
        assert [counted["max_parents"] for counted in found["classes"]] == [2, 3, 4, 5]
        assert {counted["members"] for counted in found["classes"]} == {members}
        assert {counted["heldout_exact"] for counted in found["classes"]} == {"1"}
        assert sum(map(int, found["spectrum"]["by_size"].values())) == int(members)
        assert [row["scored_cells"] for row in found["exposure"]] == [found["num_rows"]]
        assert found["left_out"] == {}
        local = {finding["exact"] for finding in found["bounded"]["stronger"]}
        assert local == {str(int(members) - 1)}


def test_one_parent_is_too_few_for_a_conjunction(pool: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Class k1: nothing fits all rows; without 11 the constant; without 01 and 11 the constant 0 and X2."""
    records = audited(capsys, pool, "--max-parents", "1")
    assert [record["findings"]["classes"][0]["members"] for record in records] == ["0", "1", "2"]
    assert main(["audit", str(pool), "--max-parents", "1", "--workers", "1"]) == 0
    printed = capsys.readouterr().out
    assert "functional parents <= 1: 1 unique, 1 ambiguous, 1 empty, of 3 instances" in printed


def test_fail_on_ambiguous(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    unique = written_pool(tmp_path / "unique.jsonl", [ALL_ROWS])
    two = written_pool(tmp_path / "two.jsonl", [ALL_ROWS, TWO_MEMBERS])
    for pool, condition, code in [
        (unique, "ambiguous", 0),
        (two, "ambiguous", 1),
        (two, "ambiguous:k2", 1),
        (two, "ambiguous:parents<=6", 1),
        (two, "ambiguous:k1", 1),  # nothing fits all rows of the first
        (unique, "ambiguous:k1", 1),
    ]:
        assert main(["audit", str(pool), "--fail-on", condition, "--workers", "1"]) == code, condition
    for nonsense in ("ambiguous:", "ambiguous:k7", "ambiguous:4", "unique", "ambiguous:parents<4"):
        line = refused(capsys_after(capsys), "audit", unique, "--fail-on", nonsense)
        assert line.startswith(f"--fail-on '{nonsense}': it has to be ambiguous, ambiguous:k4 or")


@pytest.fixture
def wide(tmp_path: Path) -> Path:
    """The first two bundled instances and one whose gold has five parents somewhere; nothing of four fits that."""
    path = tmp_path / "wide.jsonl"
    lines = bundled_pool("hidden-order").read_text(encoding="utf-8").splitlines(keepends=True)
    (strict,) = [line for line in lines if '"CAL_vhs_n9_dense_strict_20000001"' in line]
    path.write_text("".join([*lines[:3], strict]), encoding="utf-8")
    return path


def test_verdicts_are_of_the_smallest_class_with_gold(wide: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An empty class k <= 4 says nothing of an instance whose gold has five parents, and does not pass the gate."""
    records = audited(capsys, wide)
    assert [record["findings"]["headline"] for record in records] == [4, 4, 5]
    strict = {one["max_parents"]: int(one["members"]) for one in records[-1]["findings"]["classes"]}
    assert strict[4] == 0
    assert strict[5] > 1
    line = ["audit", str(wide), "--only", "CAL_vhs_n9_dense_strict_20000001", "--workers", "1"]
    assert main([*line, "--fail-on", "ambiguous"]) == 1
    printed = capsys.readouterr()
    assert "--fail-on: functional parents <= 5: 1 ambiguous, of 1 instances" in printed.err
    assert "ambiguous, k<=5" in printed.out
    for named in ("ambiguous:k4", "ambiguous:k2"):
        assert main([*line, "--fail-on", named]) == 1
        assert ": 1 empty, of 1 instances" in capsys.readouterr().err
    assert main([*line, "--max-parents", "4"]) == 0
    assert "empty, k<=4" in capsys.readouterr().out


def test_a_gate_in_a_class_where_every_instance_is_empty_fails(wide: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", str(wide), "--fail-on", "ambiguous:k1", "--workers", "1"]) == 1
    assert "--fail-on: functional parents <= 1: 3 empty, of 3 instances" in capsys.readouterr().err


def test_each_class_has_its_line_and_the_page_says_which_verdict_is_of_which(
    wide: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.html"
    assert main(["audit", str(wide), "--html", str(page), "--workers", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("functional parents <= 4: ") and line.endswith("of 2 instances") for line in lines)
    assert "functional parents <= 5: 1 ambiguous, of 1 instances" in lines
    text = page.read_text(encoding="utf-8")
    assert "functional parents &lt;= 4, any formula size, Hidden-order</b> (2 instances)" in text
    assert ">ambiguous, k ≤ 5</td>" in text


def test_only_and_limit_choose_what_is_audited(pool: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = audited(capsys, pool)
    assert audited(capsys, pool, "--only", "I2", "--only", "I0") == [whole[0], whole[2]]
    assert audited(capsys, pool, "--limit", "2") == whole[:2]
    folder = tmp_path / "certificates"
    assert main(["audit", str(pool), "--only", "I1", "--certificates", str(folder), "--workers", "1"]) == 0
    assert [path.name for path in folder.iterdir()] == ["I1.json"]
    capsys.readouterr()
    assert "no instance 'I9'; there is I0, I1, I2" in refused(capsys, "audit", pool, "--only", "I9")


def capsys_after(capsys: pytest.CaptureFixture[str]) -> pytest.CaptureFixture[str]:
    """The fixture without what was printed so far."""
    capsys.readouterr()
    return capsys


def without_timing(folder: Path) -> list[dict[str, Any]]:
    lines = (folder / "audits.jsonl").read_text(encoding="utf-8").splitlines()
    return [{key: value for key, value in json.loads(line).items() if key != "timing"} for line in lines]


def test_records_resume_after_a_torn_line_and_are_the_same_with_two_workers(
    pool: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    assert main(["audit", str(pool), "--out", str(one), "--workers", "1"]) == 0
    assert "3 instances audited, 0 had a record already" in capsys.readouterr().err
    records = without_timing(one)
    file = one / "audits.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(lines[2] + lines[0][:40])  # killed: the first two of them are lost, one of them half written
    assert main(["audit", str(pool), "--out", str(one), "--workers", "1"]) == 0
    assert "2 instances audited, 1 had a record already" in capsys.readouterr().err
    assert without_timing(one) == records
    assert main(["audit", str(pool), "--out", str(two), "--workers", "2"]) == 0
    assert without_timing(two) == records


def test_a_line_that_is_no_record_is_refused(pool: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "audits.jsonl").write_text("{}\n", encoding="utf-8")
    assert "line 1: not a record of an audit" in refused(capsys, "audit", pool, "--out", tmp_path, "--workers", "1")


def test_a_crash_costs_one_instance_and_is_tried_again(
    pool: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = audit_instance

    def crashes(problem: Any, options: Any) -> Any:
        if problem.id == "I1":
            raise RuntimeError("no idea")
        return honest(problem, options)

    line = ["audit", str(pool), "--out", str(tmp_path), "--workers", "1"]
    with monkeypatch.context() as patched:
        patched.setattr(audit_run, "audit_instance", crashes)
        assert main(line) == 1
    printed = capsys.readouterr()
    assert "I1: RuntimeError: no idea" in printed.err
    assert "1 unique, 1 ambiguous, of 2 instances\nno verdict: 1 crashed, of 1 instances\n" in printed.out
    assert main(line) == 0
    assert "1 instances audited, 2 had a record already" in capsys.readouterr().err


def test_an_instance_that_takes_too_long_is_no_success(pool: Path) -> None:
    done = command("audit", pool, "--budget", "0.001", "--workers", "1", "--fail-on", "ambiguous")
    assert done.returncode == 1
    assert "3 out_of_budget" in done.stdout
    assert "I0: not done in 0.001 seconds" in done.stderr


def test_certificates_are_verified_and_forgeries_refused(
    pool: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "certificates"
    assert main(["audit", str(pool), "--certificates", str(folder), "--workers", "1"]) == 0
    files = [folder / f"I{i}.json" for i in range(3)]
    capsys.readouterr()
    assert main(["verify", *map(str, files), str(pool)]) == 0
    assert [line.split(":")[2].split()[0] for line in capsys.readouterr().out.splitlines()] == ["1", "2", "4"]
    forged = json.loads(files[1].read_text(encoding="utf-8")) | {"count": "3"}
    files[1].write_text(json.dumps(forged), encoding="utf-8")
    files[2].write_text("{", encoding="utf-8")
    assert main(["verify", *map(str, files), str(pool), "--json"]) == 1
    fine, miscounted, broken = json.loads(capsys.readouterr().out)
    assert [v["verified"] for v in (fine, miscounted, broken)] == [True, False, False]
    assert miscounted["reason"] == "it claims 3 members; plain counting finds 2"
    assert broken["reason"].startswith("not JSON")
    other = written_pool(tmp_path / "other.jsonl", [TWO_MEMBERS])
    assert main(["verify", str(files[0]), str(other)]) == 1
    assert "it is about other evidence" in capsys.readouterr().out


def test_verify_wants_certificates_that_are_there_and_a_pool(pool: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "give at least one certificate" in refused(capsys, "verify", pool)
    assert refused(capsys, "verify", pool.parent / "none.json", pool).endswith("none.json: No such file or directory")


def test_certificates_have_names_that_a_folder_can_hold() -> None:
    assert certificate_name("RPOOL_7") == "RPOOL_7.json"
    for hostile in ("../up", "a/b", ".hidden", "x" * 200, ""):
        name = certificate_name(hostile)
        assert name.startswith("id_")
        assert len(name) < 60
        assert "/" not in name


def test_separate_finds_every_separating_intervention(
    pool: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And against or: fixing one argument leaves half of the assignments different; fixing X3 none."""
    answer = tmp_path / "or.json"
    answer.write_text(json.dumps({"mechanisms": {"X3": "(or X1 X2)"}}), encoding="utf-8")
    assert main(["separate", str(pool), "I0", "--against", str(answer), "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert made["notes"] == ["or.json does not fit: X3 in world good-0"]
    (pair,) = made["pairs"]
    found = {tuple(s["experiment"]["assignments"].items()): s["disagreement_rate"] for s in pair["separating"]}
    assert found == {(("X1", 0),): 0.5, (("X1", 1),): 0.5, (("X2", 0),): 0.5, (("X2", 1),): 0.5}
    assert pair["best"]["experiment"]["assignments"] == {"X1": 0}
    assert pair["witness"] == {
        "rootAssignment": {"X1": 0, "X2": 1},
        "differences": [{"variable": "X3", "reference": 0, "alternative": 1}],
    }
    assert main(["separate", str(pool), "I0", "--against", str(answer)]) == 0
    assert "witness  X1=0 X2=1: X3 is 0 | 1" in capsys.readouterr().out


def test_separate_tries_several_targets_at_once(pool: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And against or differ where X1 and X2 differ: in half of the rows unless X3 is set; X1=0, X2=1 shows it."""
    answer = tmp_path / "or.json"
    answer.write_text(json.dumps({"mechanisms": {"X3": "(or X1 X2)"}}), encoding="utf-8")
    line = ["separate", str(pool), "I0", "--against", str(answer)]
    assert main([*line, "--targets", "2", "--json"]) == 0
    (pair,) = json.loads(capsys.readouterr().out)["pairs"]
    assert [found["targets"] for found in pair["target_sets"]] == [[], ["X1"], ["X2"], ["X1", "X2"]]
    assert {found["disagreement_rate"] for found in pair["target_sets"]} == {0.5}
    both = pair["target_sets"][-1]
    assert both["constants_rate"] == 1.0
    assert sorted(both["constants"].values()) == [0, 1]
    assert main([*line, "--targets", "2"]) == 0
    assert "{X1, X2}  0.5000" in capsys.readouterr().out
    assert main([*line, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["pairs"][0]["target_sets"] == []


def test_separate_compares_members(pool: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for instance, number, pairs in (("I0", "2", 0), ("I1", "2", 1), ("I2", "4", 6)):
        assert main(["separate", str(pool), instance, "--members", number, "--json"]) == 0
        made = json.loads(capsys.readouterr().out)
        assert len(made["pairs"]) == pairs
        assert not any(pair["same_meaning"] for pair in made["pairs"])
    assert main(["separate", str(pool), "I1"]) == 0
    assert "2 only members" in capsys.readouterr().out


def test_separate_refuses_what_is_no_answer(pool: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answer = tmp_path / "answer.json"
    for text, reason in [("{", "not JSON"), ("[]", "not a JSON object"), ('{"mechanisms": {"X3": "X9"}}', "X9")]:
        answer.write_text(text, encoding="utf-8")
        assert reason in refused(capsys, "separate", pool, "I0", "--against", answer)
    assert "exclude each other" in refused(capsys, "separate", pool, "I0", "--against", answer, "--members", "3")


@pytest.fixture
def bundled(tmp_path: Path) -> Path:
    """Two instances of a bundled Hidden-order pool."""
    path = tmp_path / "two.jsonl"
    lines = bundled_pool("hidden-order").read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join(lines[:3]), encoding="utf-8")
    return path


def test_harden_until_one_member_is_left_and_certify_it(
    bundled: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, report, folder = tmp_path / "hard.jsonl", tmp_path / "report.jsonl", tmp_path / "certificates"
    line = ["harden", str(bundled), "--out", str(out), "--report", str(report), "--seed", "5", "--workers", "1"]
    assert main([*line, "--certificates", str(folder)]) == 0
    first = out.read_bytes()
    assert main(line) == 0
    assert out.read_bytes() == first
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
    assert "--goal needs --mode cex" in refused(capsys, *line, "--goal", "heldout-agreement", "--mode", "extra-worlds")


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
    assert main([*line, "--limit", "1"]) == 0
    assert [problem.id for problem in read_pool(out).problems] == [read_pool(wide).problems[0].id]
    assert read_pool(out).metadata["hardened"]["instances"] == [read_pool(wide).problems[0].id]


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


def test_counts_are_short_but_never_rounded_up() -> None:
    assert short_count("999999999") == "999999999"
    assert short_count("9999999999") == "9.99e9"
    assert short_count("74190873300490645405696") == "7.41e22"


def test_outputs_that_would_destroy_something_are_refused_before_the_work(
    bundled: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = bundled.read_bytes()
    out = tmp_path / "out.jsonl"
    for line in (
        ["audit", bundled, "--html", bundled],
        ["harden", bundled, "--out", bundled],
        ["harden", bundled, "--out", out, "--report", bundled],
        ["harden", bundled, "--out", out, "--report", tmp_path / "." / "out.jsonl"],
        ["generate", "--seed", "1", "--out", out, "--audits", out],
    ):
        assert " too; see 'calibrant " in refused(capsys, *line)
    assert "give --certificates too" in refused(capsys, "audit", bundled, "--max-size", "5")
    assert bundled.read_bytes() == before
    assert not out.exists()


def test_items_that_ask_for_an_alternative_are_not_hardened(
    bundled: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    items, out = tmp_path / "items.jsonl", tmp_path / "out.jsonl"
    assert main(["pool", "alternatives", str(bundled), str(items)]) == 0
    assert main(["harden", str(items), "--out", str(out), "--workers", "1"]) == 1
    assert "failed: it asks for an alternative to a reference" in capsys.readouterr().err
    assert read_pool(out).problems == read_pool(items).problems


def test_a_constant_that_nothing_can_say_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pool, folder = tmp_path / "p.jsonl", tmp_path / "certificates"
    task = {"kind": "CIND_A_SCM", "variables": ["A"], "units": ["u0"], "training": [{"id": "train_0", "rows": ["1"]}]}
    instance = {"id": "I1", **task, "disclosure": {"type": "hidden_order", "roots": []}, "sealed": {}}
    lines = [{"format": "calibrant-pool", "version": 1, "name": "p"}, instance]
    pool.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    assert main(["audit", str(pool), "--certificates", str(folder), "--workers", "1"]) in (0, 1)
    assert "no certificate of I1: 'A' is constant in a member" in capsys.readouterr().err
    assert "I1: 'A' is constant in a member" in refused(capsys, "separate", pool, "I1")


def test_generated_pools_have_their_audits_beside_them(tmp_path: Path) -> None:
    out = tmp_path / "pool.jsonl"
    line = ["generate", "--strata", "hs_n6_easy_calibration", "--per-stratum", "1", "--seed", "7", "--workers", "1"]
    assert main([*line, "--out", str(out)]) == 0
    (told,) = (tmp_path / "pool.audits.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(told)["id"] == read_pool(out).problems[0].id
