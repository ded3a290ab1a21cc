"""`calibrant demo` overwrites its own reports only; what is piped is as wide as COLUMNS says."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from calibrant.bench.commands import demo
from calibrant.bench.terminal import width_of
from calibrant.dsl.errors import CalibrantError
from tests.support.commands import refused


@pytest.mark.parametrize("name", ["report.html", "ladder.svg"])
def test_a_report_of_somebody_else_is_not_overwritten(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    (tmp_path / name).write_text("mine", encoding="utf-8")
    line = refused(capsys, "demo", "--out", tmp_path)
    assert line == f"{tmp_path / name}: not written by demo; give another --out, or --force to overwrite it"
    assert [file.name for file in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text(encoding="utf-8") == "mine"


def test_its_own_report_is_overwritten_until_somebody_changes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    report = tmp_path / "report.html"
    demo._require_own_report(tmp_path, force=False)  # nothing there
    report.write_text("made", encoding="utf-8")
    demo._sign(tmp_path)
    demo._require_own_report(tmp_path, force=False)
    report.write_text("changed", encoding="utf-8")
    with pytest.raises(CalibrantError, match="not written by demo"):
        demo._require_own_report(tmp_path, force=False)
    demo._require_own_report(tmp_path, force=True)


@pytest.mark.parametrize(
    ("stated", "width"),
    [("200", 200), ("40", 40), ("1", 40), ("401", 400), ("", 80), ("wide", 80), ("0", 80), ("9" * 30, 80)],
)
def test_what_is_piped_is_as_wide_as_columns_says(stated: str, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", stated)
    assert width_of(io.StringIO()) == width
