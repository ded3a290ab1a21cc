"""Section of a report about CauSim."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from calibrant.bench.causim.benchmark import BENCHMARK
from calibrant.bench.causim.paper_tables.declared import ShownProgram, shown_programs
from calibrant.bench.causim.paper_tables.tables import (
    check_references,
    level_of,
    paper_tables,
    questions_asked,
    with_sources,
)
from calibrant.bench.causim.plots.pass_rates import causim_figures, own_rows
from calibrant.bench.causim.plots.profile import profile_plot
from calibrant.bench.causim.verdict import METRICS
from calibrant.bench.core.samples import Item
from calibrant.bench.report.answers.named import NamedAnswer, coverage_notes, named_answers
from calibrant.bench.report.kind_plot import KIND_METRICS, KindPlot, attribution_plot
from calibrant.bench.report.layout import Heading, Table
from calibrant.bench.report.rows import Answer, Grouping, Row, section_rows
from calibrant.bench.report.samples import sample_rows, sample_table
from calibrant.bench.report.sections import NoAnswersError, Plot, ReportContents, Section
from calibrant.bench.report.sources import items_of_pools
from calibrant.bench.report.table import ResultTable
from calibrant.bench.report.views import view_table
from calibrant.bench.runs.jobs import Progress

ABOUT = (
    "In brackets: 95 % score (Wilson) intervals over questions; several answers of a system to one count as their mean."
    " * stands for a conditional rate over 1 to 5 questions, \N{EN DASH} for one over none."
)
BY_LEVEL = "errors"  # the view whose rows are numbers of nodes
SAMPLES = "causim-samples"
PRINTED = ("3", "4", "5", "6", "11", "12", "13", "17", "18", "19", "20", "21", "22", "25", "33", "34")
TABLE_IDS = (*(view.id for view in METRICS.views.values()), SAMPLES, *PRINTED)
_BY_TOPOLOGY = {"setting": "Type and scenario", "stratum": "Topology"}
_BY_LEVEL = {"setting": "Type", "stratum": "Nodes"}


def causim_section(
    title: str, answers: Sequence[Answer], contents: ReportContents, programs: Mapping[Item, ShownProgram] | None = None
) -> Section:
    """Tables and plots of these answers; `CalibrantError` if they belong into none of the wanted tables.

    programs: what prompts of items show; by default those of the pools at hand
    """
    if programs is None:
        programs = shown_programs(items_of_pools("causim", contents.pools))
    entries = named_answers(answers)
    questions = questions_asked(entries, programs)
    printed = paper_tables(questions)
    compared = paper_tables(questions, contents.against) if contents.against else printed
    return Section.of(
        title,
        ABOUT,
        answers,
        _tables(entries, answers, contents, compared),
        (
            *(_plots(entries, answers) if contents.with_plots else ()),
            *(_figures(printed, with_paper=contents.with_paper) if contents.with_pictures else ()),
        ),
    )


def _tables(
    entries: Sequence[NamedAnswer],
    answers: Sequence[Answer],
    contents: ReportContents,
    compared: Sequence[Table],
) -> tuple[Table, ...]:
    rows = section_rows(by_topology(answers), METRICS, contents.by)
    notes = coverage_notes(entries)
    levels = section_rows(by_level(answers), METRICS, contents.by)
    views = [
        _label_table(view_table(view, levels, notes), _BY_LEVEL)
        if name == BY_LEVEL
        else _label_table(view_table(view, rows, notes), _BY_TOPOLOGY)
        for name, view in METRICS.views.items()
    ]
    samples = _samples(answers, contents.by)
    printed = [with_sources(table, with_paper=contents.with_paper) for table in compared]
    check_references(compared, contents.against)
    tables = [
        *views,
        *([] if samples is None else [samples]),
        *(table for table in printed if table.fits or contents.with_paper),
    ]
    selection = [table for table in tables if table.headings and (not contents.tables or table.id in contents.tables)]
    if not selection:
        raise NoAnswersError(f"no answers that belong into table {', '.join(sorted(contents.tables))}")
    return tuple(selection)


def by_topology(answers: Iterable[Answer]) -> list[Answer]:
    """Return the answers with the topology as their stratum."""
    return [(context._replace(stratum=level_of(context.stratum).topology), score) for context, score in answers]


def by_level(answers: Iterable[Answer]) -> list[Answer]:
    """Return the answers with the type as their setting and the number of nodes as their stratum."""
    return [
        (
            context._replace(setting=context.setting.partition("-")[0], stratum=str(level_of(context.stratum).nodes)),
            score,
        )
        for context, score in answers
    ]


def _label_table(table: Table, texts: Mapping[str, str]) -> Table:
    return replace(
        table, labels=tuple(Heading(heading.key, texts.get(heading.key, heading.text)) for heading in table.labels)
    )


def _samples(answers: Sequence[Answer], by: Grouping) -> Table | None:
    collected = ResultTable(METRICS, by=by)
    for origin, score in answers:
        collected.add(origin, score)
    table = sample_table(sample_rows(collected.collect_samples()))
    return None if table is None else replace(table, id=SAMPLES)


def _figures(tables: Sequence[Table], *, with_paper: bool) -> Iterator[Plot]:
    """Yield the paper's figures, with printed rows or without them."""
    yield from causim_figures(tables if with_paper else [own_rows(table) for table in tables])


def _plots(named: Sequence[NamedAnswer], answers: Sequence[Answer]) -> list[Plot]:
    kinds = attribution_plot(section_rows(answers, METRICS, Grouping.SETTING), KINDS)
    return [plot for plot in (profile_plot(named), kinds) if plot is not None]


def _panel(row: Row) -> str:
    return row.setting


KINDS = KindPlot(
    "causim-kinds",
    "Earned, missed, lucky, short",
    "Shares of answers to questions that are said to have one answer: earned and missed where they have, right and"
    " wrong; lucky and short where several are right. A panel for each type.",
    KIND_METRICS,
    _panel,
)


class CausimReport:
    """Implements Reportable (bench.report.capabilities)."""

    table_ids = TABLE_IDS

    def section(self, answers: Sequence[Answer], contents: ReportContents, progress: Progress) -> Section:
        return causim_section(BENCHMARK.title, answers, contents)


REPORT = CausimReport()
