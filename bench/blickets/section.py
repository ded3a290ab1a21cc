"""Section of a report about blickets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from calibrant.bench.blickets.benchmark import BENCHMARK
from calibrant.bench.blickets.paper_tables.tables import CLASSES
from calibrant.bench.blickets.verdict import METRICS
from calibrant.bench.blickets.views import TABLE_IDS, Items, blicket_tables
from calibrant.bench.core.registry import benchmark_of
from calibrant.bench.pages.charts import Part, stacked_svg
from calibrant.bench.report.episodes import chosen_episodes
from calibrant.bench.report.kind_plot import KIND_METRICS, KindPlot, attribution_plot
from calibrant.bench.report.layout import NOTHING, Source, Table
from calibrant.bench.report.rows import Answer, Grouping, Row, section_rows
from calibrant.bench.report.sections import Plot, ReportContents, Section
from calibrant.bench.runs.jobs import Progress
from calibrant.dsl.records import file_digest

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
    plots = [
        attribution_plot(rows, KINDS) if contents.with_plots else None,
        class_plot(tables) if contents.with_pictures else None,
    ]
    return Section.of(title, ABOUT, answers, tables, tuple(plot for plot in plots if plot is not None))


CLASS_PARTS = tuple(map(Part, ("good", "warn", "scale-1", "scale-4", "bad")))


def class_plot(tables: Sequence[Table]) -> Plot | None:
    """Return the paper's Figure 2 with our systems below the printed ones; None without its table."""
    table = next((table for table in tables if table.id == "F2"), None)
    if table is None:
        return None
    bars = {}
    for row in table.rows:
        if row.cells[0] != NOTHING:
            name = f"{row.labels[0]} (paper)" if row.source is Source.PAPER else row.labels[0]
            bars[name] = [float(cell.text) for cell in row.cells]
    parts = dict(zip(CLASSES.values(), CLASS_PARTS, strict=True))
    caption = "Shares of episodes by class: 75 steps, three blickets after a switch at N = 3. RE: over N activations."
    return Plot("blicket-classes", table.title, caption, stacked_svg({"": bars}, parts, table.title))


class BlicketReport:
    """Implements Reportable (bench.report.capabilities)."""

    table_ids = TABLE_IDS

    def section(self, answers: Sequence[Answer], contents: ReportContents, progress: Progress) -> Section:
        pools = [path for path in contents.pools if benchmark_of(path) is BENCHMARK]
        items = {(file_digest(path), item.id): item for path in pools for item in BENCHMARK.items.read_pool(path).items}
        section = blicket_section(BENCHMARK.title, answers, contents, items)
        return replace(section, episodes=tuple(chosen_episodes(BENCHMARK, answers, contents, items)))


REPORT = BlicketReport()
