"""`python -m calibrant.bench.lab.limits`: a curve ends where it takes too long or is refused, and the page says so."""

from __future__ import annotations

import json
import os
from pathlib import Path
from signal import SIGKILL

import pytest

from calibrant.bench.lab.limits import sweep as sweeping
from calibrant.bench.lab.limits.__main__ import TOPICS, _sweeps, main
from calibrant.bench.lab.limits.sweep import Ask, Curve, Point, Sweep, plot, points, table
from calibrant.dsl.errors import CalibrantError

FAR = float("inf")


def answers(x: int, seed: int) -> Ask:
    return lambda: None


def refuses_above_2(x: int, seed: int) -> Ask:
    return lambda: "too large" if x > 2 else None


def refuses_odd_seeds(x: int, seed: int) -> Ask:
    return lambda: "no luck" if seed % 2 else None


def test_a_curve_ends_where_every_problem_is_refused() -> None:
    found = list(points(Sweep("key", "title", "size", [Curve("one", (1, 2, 3, 4), refuses_above_2)]), range(3), FAR))
    assert [(point.x, point.answered, point.stop) for point in found] == [(1, 3, ""), (2, 3, ""), (3, 0, "too large")]


def test_some_refused_problems_do_not_end_it() -> None:
    found = list(points(Sweep("key", "title", "size", [Curve("one", (1, 2), refuses_odd_seeds)]), range(4), FAR))
    assert [(point.problems, point.answered, point.stop) for point in found] == [(4, 2, ""), (4, 2, "")]


def test_a_curve_ends_where_a_problem_takes_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweeping, "seconds", lambda call, repeat: 31.0)
    (point,) = points(Sweep("key", "title", "size", [Curve("one", (1, 2), answers)]), range(2), FAR)
    assert point.stop == "a problem took over 30 s"


def test_what_does_not_end_is_interrupted_and_the_others_are_asked() -> None:
    def goes_on(x: int, seed: int) -> Ask:
        def ask() -> str | None:
            while seed == 1:
                pass
            return None

        return ask

    sweep = Sweep("key", "title", "size", [Curve("one", (1, 2), goes_on)], max_seconds=0.02)
    few = [(point.x, point.answered, point.stop) for point in points(sweep, (0, 0, 1), FAR)]
    assert few == [(1, 2, ""), (2, 2, "")]
    most = [(point.x, point.problems, point.answered, point.stop) for point in points(sweep, (0, 1, 1), FAR)]
    assert most == [(1, 3, 1, "a problem took over 0 s")]


def test_what_only_the_system_can_end_is_in_a_process_of_its_own() -> None:
    def gone(x: int, seed: int) -> Ask:
        return lambda: "too large" if seed == 1 else os.kill(os.getpid(), SIGKILL) if seed == 2 else None

    sweep = Sweep("key", "title", "size", [Curve("one", (1,), gone)], max_seconds=0.5, apart=True)
    (point,) = points(sweep, (0, 1, 2), FAR)
    assert (point.problems, point.answered, point.maximum) == (3, 1, 1.0)


def test_a_problem_that_crashes_is_no_late_one(capfd: pytest.CaptureFixture[str]) -> None:
    def crashed(x: int, seed: int) -> Ask:
        return lambda: str(1 // seed)

    sweep = Sweep("key", "title", "size", [Curve("one", (1,), crashed)], max_seconds=0.5, apart=True)
    with pytest.raises(CalibrantError, match="its process crashed"):
        list(points(sweep, (0,), FAR))
    assert "ZeroDivisionError" in capfd.readouterr().err


def test_no_further_size_is_begun_when_time_is_up() -> None:
    assert not list(points(Sweep("key", "title", "size", [Curve("one", (1, 2), answers)]), range(2), 0.0))


POINTS = (
    Point("key", "one", 1, 3, 3, 0.0002, 0.5),
    Point("key", "one", 2, 3, 0, 0.1, 0.1, "too large"),
    Point("key", "other", 2, 3, 2, 1.5, 40.0),
)
SHOWN = Sweep("key", "title", "size", [Curve("one", (1, 2), answers), Curve("other", (2,), answers)])


def test_the_table_says_what_was_answered_and_where_curves_end() -> None:
    assert table(SHOWN, POINTS) == (
        "| size | one | other |\n|--:|--:|--:|\n"
        "| 1 | 0.2 ms (500 ms) |  |\n"
        "| 2 | not answered | 1.5 s (40 s, 2 of 3) |\n\n"
        "- one ends at 2: too large\n"
    )


def test_the_plot_is_the_same_bytes_and_names_every_curve() -> None:
    drawn = plot(SHOWN, POINTS)
    assert drawn == plot(SHOWN, POINTS)
    assert all(f">{text}</text>" in drawn for text in ("one", "other", "size", "title"))


def test_every_curve_of_every_benchmark_answers_its_smallest_size() -> None:
    """Each once: nothing else runs them, so a renamed solver shows here alone. Most of the time is loading kernels."""
    for name in TOPICS:
        for sweep in _sweeps(name):
            for curve in sweep.curves:
                assert curve.prepare(curve.xs[0], 0)() is None, (sweep.key, curve.name)


def test_the_command_writes_figures_and_a_plot(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["causalab", "--out", str(tmp_path), "--minutes", "0.001"]) == 0
    assert json.loads((tmp_path / "causalab.json").read_text())[0]["curve"] == "graphs counted"
    assert (tmp_path / "causalab.svg").read_text().startswith("<svg")
    assert "### linear mechanisms" in capsys.readouterr().out


def test_an_unknown_sweep_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["caualab"]) == 2
    assert "unknown sweep 'caualab'; known: least-variables" in capsys.readouterr().err
