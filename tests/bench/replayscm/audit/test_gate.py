"""Which class a verdict is of, what passes the gate, and which instances are audited."""

from __future__ import annotations

from pathlib import Path

import pytest

from calibrant.bench.cli import main
from tests.support.commands import refused
from tests.support.replayscm.audited_pools import (
    ALL_ROWS,
    FOUR_MEMBERS,
    TWO_MEMBERS,
    audited,
    with_a_wide_gold,
    written_pool,
)


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
def pool(tmp_path: Path) -> Path:
    return written_pool(tmp_path / "small.jsonl", [ALL_ROWS, TWO_MEMBERS, FOUR_MEMBERS])


@pytest.fixture
def wide(tmp_path: Path) -> Path:
    return with_a_wide_gold(tmp_path / "wide.jsonl")


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
    assert "--fail-on: functional parents <= 5: 1 ambiguous, of 1 instance" in printed.err
    assert "ambiguous, k<=5" in printed.out
    for named in ("ambiguous:k4", "ambiguous:k2"):
        assert main([*line, "--fail-on", named]) == 1
        assert ": 1 empty, of 1 instance" in capsys.readouterr().err
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
    assert "functional parents <= 5: 1 ambiguous, of 1 instance" in lines
    text = page.read_text(encoding="utf-8")
    assert "functional parents &lt;= 4, any formula size, Hidden-order</b> (2 instances)" in text
    assert '"ambiguous, k ≤ 5"' in text


def test_only_and_limit_choose_what_is_audited(pool: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = audited(capsys, pool)
    assert audited(capsys, pool, "--only", "I2", "--only", "I0") == [whole[0], whole[2]]
    assert audited(capsys, pool, "--limit", "2") == whole[:2]
    folder = tmp_path / "certificates"
    assert main(["audit", str(pool), "--only", "I1", "--certificates", str(folder), "--workers", "1"]) == 0
    assert [path.name for path in folder.iterdir()] == ["I1.json"]
    capsys.readouterr()
    assert "no instance 'I9'; known: 'I0', 'I1', 'I2'" in refused(capsys, "audit", pool, "--only", "I9")


def capsys_after(capsys: pytest.CaptureFixture[str]) -> pytest.CaptureFixture[str]:
    """Return the fixture without what was printed so far."""
    capsys.readouterr()
    return capsys
