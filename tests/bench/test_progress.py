"""Progress where there is no terminal: lines now and then, none for work that is short or done."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest

from calibrant import load_pool
from calibrant.bench.commands.options import DEFAULT_PACE, QUICK_PACE, ProgressLines, execution, progress_bar
from calibrant.bench.core.registry import bundled_sample
from tests.support.commands import called


@pytest.fixture(autouse=True)
def lines_of_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take back what `no_progress_lines` does to all tests."""
    monkeypatch.setattr("calibrant.bench.commands.options.DEFAULT_PACE", DEFAULT_PACE)
    monkeypatch.setattr("calibrant.bench.commands.options.QUICK_PACE", QUICK_PACE)


class Waits:
    """Stands in for time: each wait passes at once, and the work is over after the last."""

    def __init__(self, lines: ProgressLines, reports: list[tuple[str, int, int]]) -> None:
        self.lines = lines
        self.reports = reports
        self.waited: list[float] = []

    def __call__(self, seconds: float) -> bool:
        self.waited.append(seconds)
        if not self.reports:
            return True
        self.lines.report(*self.reports.pop(0))
        return False


def ticking() -> Iterator[float]:
    yield from (0.0, 2.0, 7.0, 12.0, 17.0)


def test_a_line_comes_after_a_while_and_then_now_and_then() -> None:
    lines, out = ProgressLines("seed 1 of 2: ", QUICK_PACE, ticking().__next__), io.StringIO()
    waits = Waits(lines, [("pool", 0, 3), ("pool", 2, 3), ("pool", 3, 3)])
    lines.print_until(waits, out)
    first, second = out.getvalue().splitlines()
    assert first == "seed 1 of 2: pool: 0 of 3 done after 2 s"
    assert second == "seed 1 of 2: pool: 2 of 3 done after 7 s"
    assert waits.waited == [QUICK_PACE[0], *[QUICK_PACE[1]] * 3]


def test_names_cannot_act_on_a_terminal() -> None:
    lines, out = ProgressLines("", QUICK_PACE), io.StringIO()
    lines.print_until(Waits(lines, [("a\x1b[2Jb\nc", 1, 3)]), out)
    assert out.getvalue().count("\n") == 1
    assert "\x1b" not in out.getvalue()


def test_short_work_is_silent(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_bar() as progress:
        progress("pool", 0, 2)
        progress("pool", 2, 2)
    assert capsys.readouterr().err == ""


def test_an_error_ends_the_lines_too(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match="broken"), progress_bar():
        raise ValueError("broken")
    assert capsys.readouterr().err == ""


def test_without_a_number_of_workers_all_usable_cores_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("calibrant.bench.commands.options.usable_cores", lambda: 7)
    assert execution(None, None).workers == 7
    assert execution(2, None).workers == 2


def test_work_of_unknown_length_is_counted() -> None:
    lines, out = ProgressLines("scoring ", QUICK_PACE, ticking().__next__), io.StringIO()
    lines.print_until(Waits(lines, [("answers.csv", 1_000, 0), ("answers.csv", 2_000, 0)]), out)
    assert out.getvalue().splitlines() == [
        f"scoring answers.csv: {number} done after {seconds} s" for number, seconds in ((1_000, 2), (2_000, 7))
    ]


@pytest.mark.parametrize("suffix", [".jsonl", ".json"])
def test_a_long_file_is_scored_with_progress(suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After every so many answers, with the number of lines where it is known before."""
    reports: list[tuple[str, str, int, int]] = []
    monkeypatch.setattr("calibrant.bench.commands.score.PROGRESS_STEP", 3)
    monkeypatch.setattr(
        "calibrant.bench.commands.options.progress_bar",
        lambda doing: nullcontext(lambda name, done, total: reports.append((doing, name, done, total))),
    )
    pool = bundled_sample("causim")
    answers = [{"instanceId": item.id, "model": "m", "response": "none"} for item in list(load_pool(pool))[:8]]
    file = tmp_path / f"answers{suffix}"
    lines = "".join(f"{json.dumps(answer)}\n" for answer in answers)
    file.write_text(lines if suffix == ".jsonl" else json.dumps(answers), encoding="utf-8")
    assert called("score", pool, file).returncode == 0
    total = len(answers) if suffix == ".jsonl" else 0
    assert reports == [("scoring ", file.name, number, total) for number in (3, 6)] + [
        ("scoring ", file.name, total, total)
    ]


def test_a_bar_leaves_standard_output_to_other_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """With standard error on a terminal and standard output in a pipe, lines of verdicts reach the pipe."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setattr("rich.console.Console.is_terminal", True)
    before = sys.stdout
    with progress_bar() as progress:
        progress("pool", 1, 2)
        assert sys.stdout is before
