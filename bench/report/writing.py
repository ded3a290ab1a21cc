"""Making a report's files: its text in one of the formats, and its plots."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bench.report.ambiguity import Ambiguities
from bench.report.formats import TEXTS
from bench.report.rows import SystemRow
from bench.report.tables import Wanted, report_tables
from bench.runs.jobs import Progress
from dsl.whole_file import write_whole

HTML = "html"


def report_text(
    rows: Sequence[SystemRow],
    audited: Ambiguities,
    wanted: Wanted,
    form: str,
    *,
    plots: Path | None = None,
    progress: Progress = lambda name, done, total: None,
) -> str:
    """The report in a format of TEXTS, or as HTML. plots: folder that gets every plot as an SVG file too."""
    made = report_tables(rows, wanted, audited, progress)
    if form != HTML and plots is None:
        return TEXTS[form](made)
    from bench.report.figures.plots import report_plots

    drawn = report_plots(rows, audited, with_paper=wanted.with_paper, with_times=wanted.with_times, progress=progress)
    if plots is not None:
        for plot in drawn:
            write_whole(plots / f"{plot.name}.svg", plot.svg)
    if form != HTML:
        return TEXTS[form](made)
    from bench.report.html import as_html

    return as_html(rows, made, drawn)
