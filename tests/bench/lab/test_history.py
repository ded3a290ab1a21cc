"""The history of ratios: runs are appended, the last of a version counts, anything else is refused in one line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from calibrant.bench.lab.speed import report
from calibrant.bench.lab.speed.__main__ import main as speed
from calibrant.bench.lab.speed.comparison import Row
from calibrant.bench.lab.speed.report import append_release, main, plot_history, read_history
from calibrant.dsl.errors import CalibrantError
from tests.support.commands import CHECKOUT

ROWS = (Row("replay", "one", "ours"), Row("replay", "one", "NumPy", ratio=3.5))


def test_the_last_run_of_a_version_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "history.jsonl"
    for version, ratio in (("0.1.0", 3.0), ("0.2.0", 4.0), ("0.1.0", 5.0)):
        monkeypatch.setattr(report, "machine", lambda version=version: {"calibrant": version})
        append_release(path, [ROWS[0], Row("replay", "one", "NumPy", ratio=ratio)])
    ratios = {version: release.ratios for version, release in read_history(path).items()}
    assert ratios == {"0.1.0": {"replay / one / NumPy": 5.0}, "0.2.0": {"replay / one / NumPy": 4.0}}


def test_a_run_is_measured_and_appended(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "history.jsonl"
    assert speed(["parse", "--quick", "--json", "--append", str(path)]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    (release,) = read_history(path).values()
    assert release.ratios == {f"{r['topic']} / {r['case']} / {r['rival']}": r["ratio"] for r in rows if "ratio" in r}
    assert release.ratios


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "the history is empty"),
        ("no JSON\n", "line 1: not a line of a history of speed"),
        ('{"machine": {}, "ratios": {}}\n', "line 1: not a line of a history of speed"),
        ('{"machine": {"calibrant": "1"}, "ratios": {"a": "fast"}}\n', "line 1: not a line of a history of speed"),
    ],
)
def test_what_is_no_history_is_refused_before_anything_is_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, reason: str
) -> None:
    path = tmp_path / "history.jsonl"
    path.write_text(text)
    assert speed(["parse", "--append", str(path)]) == 2
    assert main([str(path), "--out", str(tmp_path / "plot.svg")]) == 2
    printed = capsys.readouterr().err.splitlines()
    assert len(printed) == 2
    assert all(reason in line for line in printed)
    assert path.read_text() == text


def test_the_kept_history_is_plotted(tmp_path: Path) -> None:
    """Each ratio of the newest release stands in the plot's legend; the page shows such a plot."""
    kept = read_history(CHECKOUT / "bench/lab/speed/history.jsonl")
    *_, newest = kept.values()
    svg = plot_history(kept, "Ordered")
    assert all(name.rpartition(" / ")[2] in svg for name in newest.ratios if "Ordered" in name)
    with pytest.raises(CalibrantError, match="no ratio of the history has 'Random' in its name"):
        plot_history(kept, "Random")
    assert (CHECKOUT / "docs/images/speed_history.svg").read_text(encoding="utf-8").startswith("<svg")
