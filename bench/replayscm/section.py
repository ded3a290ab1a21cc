"""Section of a report about ReplaySCM."""

from __future__ import annotations

from collections.abc import Sequence

from calibrant.bench.answers.intervals import LEVEL, RESAMPLES
from calibrant.bench.replayscm.benchmark import BENCHMARK
from calibrant.bench.replayscm.tables.ambiguity import ambiguities
from calibrant.bench.replayscm.tables.appendix.facts import pool_facts
from calibrant.bench.replayscm.tables.report import TABLE_IDS, report_tables
from calibrant.bench.replayscm.tables.rows import report_rows
from calibrant.bench.report.rows import Answer
from calibrant.bench.report.sections import ReportContents, Section
from calibrant.bench.runs.jobs import Progress


class ReplayScmReport:
    """Implements Reportable (bench.report.capabilities)."""

    table_ids = TABLE_IDS

    def section(self, answers: Sequence[Answer], contents: ReportContents, progress: Progress) -> Section:
        facts = pool_facts(contents.pools)
        rows = report_rows(facts.relabelled(answers), contents.by, contents.means, facts.latents)
        audited = ambiguities(contents.audits)
        plots = []
        tables = report_tables(rows, contents, audited, facts, progress)
        if contents.with_plots:
            from calibrant.bench.replayscm.figures.plots import kinds_plot, report_plots

            options = {"with_paper": contents.with_paper, "with_times": contents.with_times}
            plots = report_plots(rows, audited, **options, progress=progress)
            kinds = kinds_plot(answers)
            plots += [] if kinds is None else [kinds]
        if contents.with_pictures and any("worlds" in score or "trainMatch" in score for _, score in answers):
            from calibrant.bench.replayscm.extended.plots import episode_plots

            plots += episode_plots(BENCHMARK, answers, contents)
        return Section(
            BENCHMARK.title,
            f"In brackets: {round(100 * LEVEL)} % percentile bootstrap over latent SCMs ({RESAMPLES:,} resamples),"
            " answers held fixed; problems that share a latent SCM are drawn together; a rate of 0 or 1 on"
            " every problem has Wilson\N{RIGHT SINGLE QUOTATION MARK}s interval. * stands for a conditional rate"
            " over 1 to 5 answers, \N{EN DASH} for one over none.",
            frozenset(row.system for row in rows),
            tuple(sorted({(name, digest) for row in rows for digest, name in row.pool_labels.items()})),
            len(answers),
            tuple(tables),
            tuple(plots),
        )


REPORT = ReplayScmReport()
