"""`calibrant show POOL ID --run FILE --gold`: what it prints, its page, its JSON and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from calibrant.bench.core.registry import bundled_files
from tests.audits.replayscm.why.appendix_cases import CASES, case_record
from tests.support.accessibility import DESKTOP, PHONE, measure, needs_axe
from tests.support.commands import called

HEADER = {"format": "calibrant-pool", "version": 1, "name": "cases", "metadata": {}}
NEVER_SHOWN = ["0000", "1100", "1101"]


@pytest.fixture
def case(tmp_path: Path) -> tuple[Path, Path]:
    """Return a pool with the paper's case 2 and answers to it: the printed one, gold's, one that does not parse."""
    pool, answers = tmp_path / "cases.jsonl", tmp_path / "answers.jsonl"
    pool.write_text("".join(json.dumps(line) + "\n" for line in (HEADER, case_record("case 2", NEVER_SHOWN))), "utf-8")
    variable, gold, answer = CASES["case 2"]
    texts = {"printed": answer, "right": gold, "broken": "(and X3"}
    lines = [
        {"instanceId": "case 2", "model": name, "response": json.dumps({"mechanisms": {variable: text}})}
        for name, text in texts.items()
    ]
    answers.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return pool, answers


def test_text_has_each_differing_assignment_and_the_first_wrong_cell(case: tuple[Path, Path]) -> None:
    pool, answers = case
    shown = called("show", pool, "case 2", "--run", answers, "--gold", "--system", "printed")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "3 of 16 assignments differ; 3 never shown" in shown.stdout
    assert " 1   1   0   1     0       1  never shown                1" in shown.stdout
    assert "with X3=0, X4=0, X6=0, X7=0, X5 is 1, the answer gives 0; the mechanism of X5 itself" in shown.stdout
    right = called("show", pool, "case 2", "--run", answers, "--gold", "--system", "right")
    assert "case 2: a right answer" in right.stdout


def test_json_is_the_object_behind_page_and_text(case: tuple[Path, Path]) -> None:
    pool, answers = case
    (content,) = json.loads(
        called("show", pool, "case 2", "--run", answers, "--gold", "--system", "printed", "--json").stdout
    )
    (variable,) = content["variables"]
    assert [row["train"] for row in variable["assignments"]] == [0, 0, 0]
    assert content["totals"]["train_world"] == 1.0


@needs_axe
@pytest.mark.parametrize("width", [DESKTOP, PHONE])
def test_the_page_is_accessible_and_loads_nothing(case: tuple[Path, Path], tmp_path: Path, width: int) -> None:
    pool, answers = case
    page, readable = tmp_path / "why.html", tmp_path / "readable.jsonl"
    lines = [line for line in answers.read_text("utf-8").splitlines() if "broken" not in line]
    readable.write_text("\n".join(lines), "utf-8")  # of two systems, whose parts need names of their own
    assert called("show", pool, "case 2", "--run", readable, "--gold", "--html", page).returncode == 0
    measured = measure(page.read_text("utf-8"), tmp_path, width=width)
    assert measured.violations == []
    assert measured.requests == []
    assert measured.scroll_width <= width


def test_what_cannot_be_explained_is_refused_in_one_line(case: tuple[Path, Path]) -> None:
    pool, answers = case
    broken = called("show", pool, "case 2", "--run", answers, "--gold", "--system", "broken")
    assert (broken.returncode, broken.stdout) == (2, "")
    assert "broken on case 2: the answer is not valid: " in broken.stderr
    page = answers.with_suffix(".html")
    for options in ((), ("--json",), ("--html", page)):
        others = called("show", pool, "case 2", "--run", answers, "--gold", *options)
        assert others.returncode == 0
        assert others.stderr.startswith("not shown: broken on case 2: the answer is not valid: ")
    assert "not shown: broken on case 2" in page.read_text("utf-8")
    nobody = called("show", pool, "case 2", "--run", answers, "--gold", "--system", "x")
    assert (nobody.returncode, "no answer of x to case 2" in nobody.stderr) == (2, True)
    both = called("show", pool, "case 2", "--run", answers, "--gold", "--why")
    assert both.returncode == 2
    other = bundled_files()["causim"][0]
    lacking = called(
        "show", other, json.loads(other.read_text("utf-8").splitlines()[1])["id"], "--run", answers, "--gold"
    )
    assert lacking.returncode == 2
    assert "`show --run --gold` does not support CauSim" in lacking.stderr


def test_a_report_counts_wrong_mechanisms_by_what_training_shows(case: tuple[Path, Path]) -> None:
    """Case 2 of the printed answer is never shown; with the whole table in training it is contradicted."""
    pool, answers = case
    lines = {}
    for name, hidden in (("never", NEVER_SHOWN), ("shown", [])):
        pool.write_text("".join(json.dumps(line) + "\n" for line in (HEADER, case_record("case 2", hidden))), "utf-8")
        report = called("report", "--predictions", answers, "--pool", pool, "--table", "wrong", "--format", "csv")
        assert report.returncode == 0
        fields = [line.split(",") for line in report.stdout.splitlines()[1:]]
        lines[name] = {(row[3], row[7]): row[8] for row in fields}
    for name, never, contradicted in (("never", "1", "0"), ("shown", "0", "1")):
        assert lines[name]["printed", "num_never_shown"] == never
        assert lines[name]["printed", "num_contradicted"] == contradicted
        assert lines[name]["right", "num_wrong"] == lines[name]["broken", "num_wrong"] == "0"
