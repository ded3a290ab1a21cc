"""Section of a report about blickets."""

from __future__ import annotations

from collections.abc import Sequence

from calibrant.bench.blickets.verdict import METRICS
from calibrant.bench.blickets.views import Items, blicket_tables
from calibrant.bench.report.figures.kinds import KIND_METRICS, KindPlot, attribution_plot
from calibrant.bench.report.rows import Answer, Grouping, Row, section_rows
from calibrant.bench.report.sections import ReportContents, Section

ABOUT = (
    "In brackets: 95 % score (Wilson) intervals of shares and normal intervals of means, over episodes."
    " * stands for a conditional rate over 1 to 5 answers, \N{EN DASH} for one over none."
)
CAPTION = (
    "Shares of answers by what the readings had decided: earned and missed where they left one answer, right and"
    " wrong; lucky and short where they left several, right and wrong. A panel for each condition and suite."
)


def _panel(row: Row) -> str:
    return row.setting if row.stratum in ("", row.setting) else f"{row.setting}, {row.stratum}"


KINDS = KindPlot("attribution", "Earned, missed, lucky, short", CAPTION, KIND_METRICS, _panel)


def blicket_section(title: str, answers: Sequence[Answer], contents: ReportContents, items: Items) -> Section:
    """Tables and plots of these answers; `CalibrantError` if they belong into none of the wanted tables."""
    tables = blicket_tables(answers, contents, items)
    rows = section_rows(answers, METRICS, Grouping.SETTING) if contents.with_plots else []
    plot = attribution_plot(rows, KINDS) if contents.with_plots else None
    return Section.of(title, ABOUT, answers, tables, () if plot is None else (plot,))
