"""Protocols that find nothing say why on the screen, with how many items it was."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from calibrant.bench.cli import main
from calibrant.bench.core.scoring import AnswerContext
from calibrant.bench.report.unanswered import UnansweredCounts
from calibrant.bench.runs.records import Record, folder_records
from tests.support.graded_records import blicket_record, graded, write_records

IMPOSSIBLE = "exact: 2 items: nothing of the class fits (exhausted: all of it)"
SPENT = "exact: 1 item: unanswered within the budget (3 of 9 sets)"


def _records(of: str) -> list[Record]:
    score = graded()
    said = [("impossible", {"exhausted": "all of it"})] * 2 + [("out_of_budget", {"reached": "3 of 9 sets"})]
    made = [
        blicket_record(k, score, protocol="exact", outcome=outcome, provenance=why)
        for k, (outcome, why) in enumerate([*said, ("found", {})])
    ]
    return [msgspec.structs.replace(one, benchmark=of) for one in made]


@pytest.mark.parametrize("as_json", [False, True])
def test_table_says_why_there_are_no_answers(as_json: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_records(tmp_path / "run", _records("blickets"))
    assert main(["table", str(folder), *(["--json"] if as_json else [])]) == 0
    printed = capsys.readouterr()
    lines = printed.err.splitlines()
    assert [line for line in lines if line.startswith("exact: ")] == [IMPOSSIBLE, SPENT]
    assert not as_json or json.loads(printed.out)


def test_run_says_it_after_the_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two rows of one unit that contradict every mechanism: X2 is 0 and 1 where its only possible parent is 0."""
    header = {"format": "calibrant-pool", "version": 1, "name": "mine"}
    item = {
        "id": "a",
        "kind": "CIND_A_SCM",
        "variables": ["X1", "X2"],
        "units": ["u0", "u1"],
        "disclosure": {"type": "hidden_order", "roots": ["X1"]},
        "training": [{"id": "w0", "rows": ["00", "01"]}],
        "sealed": {},
    }
    pool = tmp_path / "mine.jsonl"
    pool.write_text("".join(f"{json.dumps(line)}\n" for line in (header, item)), encoding="utf-8")
    assert main(["run", "exact", str(pool), "--out", str(tmp_path / "run"), "--workers", "1"]) == 0
    (record,) = folder_records(tmp_path / "run")
    (line,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("exact: ")]
    assert line.startswith("exact: 1 item: nothing of the class fits (exhausted: no acyclic admissible choice")
    assert record.provenance["exhausted"] in line + ")"


def _origin(outcome: str | None, reason: str) -> AnswerContext:
    return AnswerContext("row", "p", "d", 9, "i", "s", "t", outcome=outcome, reason=reason)


def test_of_several_reasons_the_most_frequent_is_printed_in_one_line() -> None:
    counts = UnansweredCounts()
    for reason in ("b", "a", "b\n", "b", "a\x1b" * 200):
        counts.add(_origin("out_of_budget", reason))
    counts.add(_origin("impossible", ""))
    counts.add(_origin("found", ""))
    counts.add(_origin(None, ""))
    assert list(counts.lines()) == [
        "row: 1 item: nothing of the class fits (exhausted: no reason recorded)",
        "row: 5 items: unanswered within the budget (b; 3 other reasons)",
    ]


@pytest.mark.parametrize("command", ["table", "report"])
def test_a_source_that_does_not_exist_is_named(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, str(tmp_path / "nofile.jsonl")]) == 2
    assert "nofile.jsonl: there is no such file or folder" in capsys.readouterr().err
