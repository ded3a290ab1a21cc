"""The soak: one line for each part, what failed is shown and decides the exit code, nothing begins after the end."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.support import effort, soak

REPORT = """<testsuites><testsuite tests="7" failures="1" errors="2" skipped="3"/><testsuite tests="2"/></testsuites>"""


def test_what_was_skipped_is_no_case_and_errors_are_failures(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    report.write_text(REPORT, encoding="utf-8")
    assert soak.counted(report) == (6, 3)


@pytest.mark.parametrize("failures", [0, 2])
def test_each_part_has_its_line_and_failures_are_shown(
    failures: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shares: list[float] = []

    def part(tally: soak.Tally, until: float) -> None:
        shares.append(until)
        tally.add(1_200, failures if len(shares) == 1 else 0, "what failed")

    clock = iter([0.0, 0.0, 10.0, 10.0, 40.0])
    monkeypatch.setattr("tests.support.soak.time.time", lambda: next(clock))
    monkeypatch.setattr(soak, "PARTS", {"first": part, "second": part})
    monkeypatch.setattr(sys, "argv", ["soak", "--minutes", "1"])
    assert soak.main() == (failures > 0)
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].split() == ["first", "1,200", "cases", str(failures), "failures", "10", "s"]
    assert printed[1:-1] == ["what failed"] * (failures > 0)
    assert printed[-1].split() == ["second", "1,200", "cases", "0", "failures", "30", "s"]
    assert shares == [30.0, 60.0]  # half of a minute, then all that is left


def test_a_process_that_fails_without_a_count_is_a_failure() -> None:
    tally = soak.Tally()
    soak.fuzzing("no such target")(tally, 0.0)
    assert (tally.cases, tally.failures) == (0, 1)
    assert "invalid choice: 'no such target'" in tally.reports[0]


def test_few_cases_are_those_of_all_other_runs() -> None:
    assert effort.effort(3, 50) == (50 if effort.SOAKING else 3)


def test_only_files_that_have_something_to_run_are_collected() -> None:
    long, drawn = soak.files_with("mark.soak"), soak.files_with("given(")
    assert "tests/solvers/replayscm/test_exact.py" in long
    assert "tests/test_layout.py" not in long
    assert "tests/dsl/formulas/test_text.py" in drawn
    assert not any("integrations" in file for file in [*long, *drawn])


def test_tests_and_properties_have_most_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    ends: dict[str, float] = {}
    parts = {name: lambda tally, until, name=name: ends.update({name: until}) for name in soak.PARTS}
    monkeypatch.setattr("tests.support.soak.time.time", lambda: 0.0)
    monkeypatch.setattr(soak, "PARTS", parts)
    monkeypatch.setattr(sys, "argv", ["soak", "--minutes", "16"])
    assert soak.main() == 0
    assert (ends["long versions"], ends["fuzz submissions"]) == (300.0, 160.0)  # on a clock that stands still
    assert ends["properties"] == 16 * 60 * 5 / 11
