"""`calibrant audit`, `verify` and `separate`: exit codes, records, one-line refusals.

The small pool is X3 = X1 and X2. With all four rows exactly one function fits; without the row 11 there are two, `and`
and the constant 0; without 01 and 11 there are four. Held-out worlds show all rows, so one member replays them.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from calibrant.audits.replayscm.items import audit_instance
from calibrant.bench.cli import main
from calibrant.bench.replayscm import audit as audit_run
from calibrant.bench.replayscm.audit.records import certificate_name
from calibrant.bench.replayscm.audit.text import short_count
from calibrant.dsl.replayscm.disclosure import HiddenOrder
from calibrant.dsl.replayscm.item import Pool
from calibrant.dsl.replayscm.pools.files import write_pool
from tests.support.commands import called, refused
from tests.support.replayscm.pools import (
    ALL_ROWS,
    FOUR_MEMBERS,
    TWO_MEMBERS,
    audited,
    two_bundled,
    written_pool,
)
from tests.support.replayscm.written import written_problem, written_scm, written_world


@pytest.fixture
def pool(tmp_path: Path) -> Path:
    return written_pool(tmp_path / "small.jsonl", [ALL_ROWS, TWO_MEMBERS, FOUR_MEMBERS])


@pytest.fixture
def bundled(tmp_path: Path) -> Path:
    return two_bundled(tmp_path / "two.jsonl")


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


@pytest.mark.parametrize("width", [60, 80, 100, 150, None])
def test_a_piped_table_fits_the_columns_that_are_stated(
    pool: Path, width: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without COLUMNS it has 80. The instance and its verdict are never left out, and what is left out is named."""
    monkeypatch.setenv("COLUMNS", str(width or ""))
    done = called("audit", pool)
    _, headings, *lines = done.stdout.split("\n\n", maxsplit=1)[0].splitlines()
    names = re.split(" {2,}", headings.strip())
    assert (names[0], names[-1], len(lines)) == ("Instance", "Verdict", 3)
    note = re.search(r"left out to fit the width: (.*); --json has all", done.stderr)
    missing = note[1].split(", ") if note else []
    assert len(names) + len(missing) == 15
    assert not set(names) & set(missing)
    assert bool(missing) is ((width or 80) < 150)
    assert all(len(line) <= (width or 80) for line in (headings, *lines))


def test_one_parent_is_too_few_for_a_conjunction(pool: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Class k1: nothing fits all rows; without 11 the constant; without 01 and 11 the constant 0 and X2."""
    records = audited(capsys, pool, "--max-parents", "1")
    assert [record["findings"]["classes"][0]["members"] for record in records] == ["0", "1", "2"]
    assert main(["audit", str(pool), "--max-parents", "1", "--workers", "1"]) == 0
    printed = capsys.readouterr().out
    assert "functional parents <= 1: 1 unique, 1 ambiguous, 1 empty, of 3 instances" in printed


def without_timing(folder: Path) -> list[dict[str, Any]]:
    lines = (folder / "audits.jsonl").read_text(encoding="utf-8").splitlines()
    return [{key: value for key, value in json.loads(line).items() if key != "timing"} for line in lines]


def test_records_resume_after_a_torn_line_and_are_the_same_with_two_workers(
    pool: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whole audits of three items, twice: a record that depends on its worker or on a resumption shows here."""
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
    assert "1 unique, 1 ambiguous, of 2 instances\nno verdict: 1 crashed, of 1 instance\n" in printed.out
    assert main(line) == 0
    assert "1 instance audited, 2 had a record already" in capsys.readouterr().err


def test_an_instance_that_takes_too_long_is_no_success(pool: Path) -> None:
    done = called("audit", pool, "--budget", "0.001", "--workers", "1", "--fail-on", "ambiguous")
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
    assert "witness  do(X1=0), X1=0 X2=1: X3 is 0 | 1" in capsys.readouterr().out


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


def test_separate_ends_with_the_intervention_that_closes_most(
    pool: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of the functions 0, X2, X1 and X2, X2 without X1 every pair differs where X2 is 1, which do(X2=1) shows most."""

    def last(*more: str) -> str:
        assert main(["separate", str(pool), *more]) == 0
        return capsys.readouterr().out.splitlines()[-1]

    assert last("I2", "--members", "4") == "closes most: do(X2=1) separates 6 of 6 pairs, mean rate 0.6667"
    assert last("I1") == "closes most: do(X1=1), rate 0.5000"
    assert last("I1", "--targets", "2").startswith("closes most: ")
    same = tmp_path / "same.json"
    same.write_text(json.dumps({"mechanisms": {"X3": "(and X2 X1)"}}), encoding="utf-8")
    assert last("I0", "--against", str(same)) == "closes most: there is nothing to tell apart"


def test_separate_points_to_more_targets_where_one_does_not_suffice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """X2 or X3 against X2 xor X3, where both are the constant 0: only setting the two of them to 1 shows it."""
    zero = "(xor X1 X1)"
    gold = written_scm("X1", X2=zero, X3=zero, X4="(or X2 X3)")
    world = written_world("w", "X1 X2 X3 X4", "0000 1000")
    problem = written_problem(HiddenOrder(("X1", "X2", "X3", "X4"), ("X1",)), gold, [world])
    path, answer = tmp_path / "p.jsonl", tmp_path / "a.json"
    write_pool(Pool("p", (problem,)), path)
    answer.write_text(json.dumps({"mechanisms": {"X2": zero, "X3": zero, "X4": "(xor X2 X3)"}}), encoding="utf-8")
    line = ["separate", str(path), problem.id, "--against", str(answer)]
    assert main(line) == 0
    printed = capsys.readouterr().out
    assert "no single-variable intervention separates them; --targets 2 tries two at once" in printed
    hint = "--targets 2 tries so many variables at once"
    assert printed.splitlines()[-1] == f"closes most: nothing that was tried separates any pair; {hint}"
    assert main([*line, "--targets", "2"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "closes most: per-row values of X2, X3, rate 0.2500"


def test_audit_says_in_a_line_which_world_closes_most(pool: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", str(pool), "--workers", "1"]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("closes most: ")]
    assert line.startswith("closes most: one more world removes median 0.6250 of 2 instances; least ")
    assert "0.5000 of the members of I1; most " in line
    assert line.endswith("0.7500 of the members of I2")
    assert main(["audit", str(pool), "--only", "I0", "--workers", "1"]) == 0
    assert "closes most" not in capsys.readouterr().out  # one member: nothing to close


def test_separate_refuses_what_is_no_answer(pool: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answer = tmp_path / "answer.json"
    for text, reason in [("{", "not JSON"), ("[]", "not a JSON object"), ('{"mechanisms": {"X3": "X9"}}', "X9")]:
        answer.write_text(text, encoding="utf-8")
        assert reason in refused(capsys, "separate", pool, "I0", "--against", answer)
    assert "exclude each other" in refused(capsys, "separate", pool, "I0", "--against", answer, "--members", "3")


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
        assert refused(capsys, *line).endswith(" too")
    assert "give --certificates too" in refused(capsys, "audit", bundled, "--max-size", "5")
    assert bundled.read_bytes() == before
    assert not out.exists()


def test_a_constant_that_nothing_can_say_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pool, folder = tmp_path / "p.jsonl", tmp_path / "certificates"
    task = {"kind": "CIND_A_SCM", "variables": ["A"], "units": ["u0"], "training": [{"id": "train_0", "rows": ["1"]}]}
    instance = {"id": "I1", **task, "disclosure": {"type": "hidden_order", "roots": []}, "sealed": {}}
    lines = [{"format": "calibrant-pool", "version": 1, "name": "p"}, instance]
    pool.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    assert main(["audit", str(pool), "--certificates", str(folder), "--workers", "1"]) in (0, 1)
    assert "no certificate of I1: 'A' is constant in a member" in capsys.readouterr().err
    assert "I1: 'A' is constant in a member" in refused(capsys, "separate", pool, "I1")
