"""Section of a report about logic models."""

from __future__ import annotations

from collections.abc import Sequence

from calibrant.bench.logic.benchmark import BENCHMARK
from calibrant.bench.logic.verdict import METRICS
from calibrant.bench.report.answers.named import coverage_notes, named_answers
from calibrant.bench.report.kind_plot import KIND_METRICS, KindPlot, attribution_plot
from calibrant.bench.report.rows import Answer, Grouping, section_rows
from calibrant.bench.report.sections import NoAnswersError, ReportContents, Section
from calibrant.bench.report.views import view_table
from calibrant.bench.runs.jobs import Progress

ABOUT = (
    "In brackets: 95 % score (Wilson) intervals over items; several answers of a system to one count as their mean."
    " * stands for a conditional rate over 1 to 5 answers, \N{EN DASH} for one over none."
)
KINDS = KindPlot(
    "logic-kinds",
    "Earned, missed, lucky, short",
    "Shares of answers by what the data had decided: earned and missed where all models that fit give the same held-out"
    " answers, right and wrong; lucky and short where they differ, right and wrong.",
    KIND_METRICS,
    lambda row: row.setting,
)


class LogicReport:
    """Implements Reportable (bench.report.capabilities)."""

    table_ids = tuple(view.id for view in METRICS.views.values())

    def section(self, answers: Sequence[Answer], contents: ReportContents, progress: Progress) -> Section:
        rows = section_rows(answers, METRICS, contents.by)
        notes = coverage_notes(named_answers(answers))
        tables = [view_table(view, rows, notes) for view in METRICS.views.values()]
        requested = [t for t in tables if t.headings and (not contents.tables or t.id in contents.tables)]
        if not requested:
            raise NoAnswersError(f"no answers that belong into table {', '.join(sorted(contents.tables))}")
        plot = (
            attribution_plot(section_rows(answers, METRICS, Grouping.SETTING), KINDS) if contents.with_plots else None
        )
        return Section.of(BENCHMARK.title, ABOUT, answers, tuple(requested), () if plot is None else (plot,))


REPORT = LogicReport()
