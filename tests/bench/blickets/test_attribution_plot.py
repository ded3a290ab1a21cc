"""The plot of earned, missed, lucky and short answers: the shares that it shows, and the file that it is."""

from __future__ import annotations

from pathlib import Path

from calibrant.audits.attribution import Kind
from calibrant.bench.blickets.report import KINDS
from calibrant.bench.blickets.scoring import METRICS
from calibrant.bench.cli import main
from calibrant.bench.core.scoring import AnswerContext
from calibrant.bench.report.rows import Answer, Grouping, Row, section_rows
from calibrant.bench.report.sections import attribution_plot, kind_shares
from tests.support.graded_records import blicket_record, graded, write_records


def _answers(system: str, stratum: str, kinds: str) -> list[Answer]:
    return [
        (
            AnswerContext(system, "p", "d", 4, f"I{i}", "moderator", stratum, benchmark="blickets"),
            graded() | {"attribution": {"kind": kind, "decided": kind in ("earned", "missed"), "fits": True}},
        )
        for i, kind in enumerate(kinds.split())
    ]


def _rows(*answers: list[Answer]) -> list[Row]:
    return section_rows([one for group in answers for one in group], METRICS, Grouping.SETTING)


def test_shares_are_of_the_answers_under_each_condition() -> None:
    rows = _rows(_answers("a", "easy-3", "earned earned lucky short"), _answers("b", "hard-3", "missed earned"))
    found = kind_shares(rows, KINDS)
    assert list(found) == ["moderator, easy-3", "moderator, hard-3"]
    assert found["moderator, easy-3"] == {
        "a": {Kind.EARNED: 0.5, Kind.MISSED: 0, Kind.LUCKY: 0.25, Kind.SHORT: 0.25},
    }
    assert found["moderator, hard-3"]["b"][Kind.MISSED] == 0.5


def test_answers_without_attribution_give_no_plot() -> None:
    assert attribution_plot(_rows([(run, graded()) for run, _ in _answers("a", "easy-3", "earned")]), KINDS) is None


def test_the_plot_names_systems_conditions_and_kinds_as_text() -> None:
    plot = attribution_plot(_rows(_answers("<b>$x$", "easy-3", "earned lucky")), KINDS)
    assert plot is not None
    for text in ("&lt;b&gt;$x$", "moderator, easy-3", "earned", "missed", "lucky", "short"):
        assert text in plot.svg
    assert "<b>" not in plot.svg


def test_the_plot_is_a_file_and_the_page_has_its_figures(tmp_path: Path) -> None:
    run = write_records(tmp_path / "run", [blicket_record(i, graded(correct=i < 3)) for i in range(4)])
    assert main(["report", str(run), "--out", str(tmp_path / "r.html"), "--plots", str(tmp_path / "plots")]) == 0
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert 'id="plot-attribution"' not in page  # its first screen has the same shares as bars
    assert "static: 3 earned, 1 short of 4" in page
    svg = (tmp_path / "plots" / "attribution.svg").read_text(encoding="utf-8")
    assert "moderator, easy-3" in svg
    assert "static" in svg
