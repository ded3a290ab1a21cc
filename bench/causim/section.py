"""What a report says of CauSim."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from calibrant.bench.causim.profile_plot import profile_plot
from calibrant.bench.causim.tables import level_of, paper_tables, questions_asked, with_sources
from calibrant.bench.causim.verdict import METRICS
from calibrant.bench.core.attribution import KEY
from calibrant.bench.report.figures.kinds import KindPlot, attribution_plot
from calibrant.bench.report.layout import Heading, Source, Table
from calibrant.bench.report.rate_rows import CalibrationTable, Grouping
from calibrant.bench.report.rows import Named, SettingRow, coverage_notes, named_answers, setting_rows
from calibrant.bench.report.samples import sample_rows, sample_table
from calibrant.bench.report.sections import Answer, NoAnswersError, Part, Plot, ReportContents
from calibrant.bench.report.views import view_table

ABOUT = (
    "In brackets: 95 % score (Wilson) intervals over questions; several answers of a system to one count as their mean."
    " * stands for a conditional rate over 1 to 5 questions, \N{EN DASH} for one over none."
)
BY_LEVEL = "errors"  # the view whose rows are numbers of nodes
SAMPLES = "causim-samples"
PRINTED = ("3", "4", "5", "6", "11", "12", "13", "17", "18", "19", "20", "21", "22", "25", "33")
TABLE_IDS = (*(view.id for view in METRICS.views.values()), SAMPLES, *PRINTED)
_BY_TOPOLOGY = {"setting": "Type and scenario", "stratum": "Topology"}
_BY_LEVEL = {"setting": "Type", "stratum": "Nodes"}


def causim_part(title: str, answers: Sequence[Answer], wanted: ReportContents) -> Part:
    """Tables and plots of these answers; `CalibrantError` if they belong into none of the wanted tables."""
    named = named_answers(answers)
    return Part.of(
        title, ABOUT, answers, _tables(named, answers, wanted), tuple(_plots(named)) if wanted.with_plots else ()
    )


def _tables(named: Sequence[Named], answers: Sequence[Answer], wanted: ReportContents) -> tuple[Table, ...]:
    rows = setting_rows(by_topology(named), wanted.by, METRICS)
    notes = coverage_notes(named)
    levels = setting_rows(by_level(named), wanted.by, METRICS)
    views = [
        _labelled(view_table(view, levels, notes), _BY_LEVEL)
        if name == BY_LEVEL
        else _labelled(view_table(view, rows, notes), _BY_TOPOLOGY)
        for name, view in METRICS.views.items()
    ]
    samples = _samples(answers, wanted.by)
    printed = [with_sources(table, with_paper=wanted.with_paper) for table in paper_tables(questions_asked(named))]
    made = [
        *views,
        *([] if samples is None else [samples]),
        *(table for table in printed if any(row.source is Source.OURS for row in table.rows)),
    ]
    found = [table for table in made if table.headings and (not wanted.tables or table.id in wanted.tables)]
    if not found:
        raise NoAnswersError(f"no answers that belong into table {', '.join(sorted(wanted.tables))}")
    return tuple(found)


def by_topology(named: Iterable[Named]) -> list[Named]:
    """The answers, with the topology as their stratum."""
    return [one._replace(origin=one.origin._replace(stratum=level_of(one.origin.stratum).topology)) for one in named]


def by_level(named: Iterable[Named]) -> list[Named]:
    """The answers, with the type as their setting and the number of nodes as their stratum."""
    return [
        one._replace(
            origin=one.origin._replace(
                setting=one.origin.setting.partition("-")[0], stratum=str(level_of(one.origin.stratum).nodes)
            )
        )
        for one in named
    ]


def _labelled(table: Table, texts: Mapping[str, str]) -> Table:
    return replace(table, labels=tuple(Heading(one.key, texts.get(one.key, one.text)) for one in table.labels))


def _samples(answers: Sequence[Answer], by: Grouping) -> Table | None:
    collected = CalibrationTable(METRICS, by=by)
    for origin, score in answers:
        collected.add(origin, score)
    table = sample_table(sample_rows(collected.sampled()))
    return None if table is None else replace(table, id=SAMPLES)


def _plots(named: Sequence[Named]) -> list[Plot]:
    kinds = attribution_plot(setting_rows(named, Grouping.SETTING, METRICS), KINDS)
    return [plot for plot in (profile_plot(named), kinds) if plot is not None]


def _kind(answer: Named) -> str | None:
    said = answer.score.get(KEY)
    return str(said["kind"]) if isinstance(said, Mapping) else None


def _panel(row: SettingRow) -> str:
    return row.setting


KINDS = KindPlot(
    "causim-kinds",
    "Earned, missed, lucky, short",
    "Shares of answers to questions that are said to have one answer: earned and missed where they have, right and"
    " wrong; lucky and short where several are right. A panel for each type.",
    _kind,
    _panel,
)
