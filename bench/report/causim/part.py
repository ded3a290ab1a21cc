"""What a report says of CauSim."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from calibrant.bench.answers.attribution import KEY
from calibrant.bench.causim.tables import level_of, paper_tables, questions_asked, with_sources
from calibrant.bench.causim.verdict import METRICS
from calibrant.bench.report.causim.profile import profile_plot
from calibrant.bench.report.layout import Heading, Source, Table
from calibrant.bench.report.part import Answer, NoAnswersError, Part, Plot, ReportContents
from calibrant.bench.report.rate_rows import CalibrationTable, Grouping
from calibrant.bench.report.samples import sample_rows, sample_table
from calibrant.bench.report.standing.attribution import KindPlot, attribution_plot
from calibrant.bench.report.standing.rows import Named, SettingRow, coverage_notes, named_answers, setting_rows
from calibrant.bench.report.standing.views import View, view_table

ABOUT = (
    "In brackets: 95 % score (Wilson) intervals over questions; several answers of a system to one count as their mean."
    " * stands for a conditional rate over 1 to 5 questions, \N{EN DASH} for one over none."
)
VIEWS = {
    "answers": View(
        "causim",
        "Systems by type, scenario and topology",
        "Accuracy: some world that fits gives the answer. Answered: an object with exactly the required keys."
        " Explained: every node of the answer has a reason.",
    ),
    "flags": View(
        "causim-flags",
        "What makes questions easy",
        "Shares of questions. Trivial: `do` covers every required key. Copyable: the evidence with `do` written over it"
        " is right. Vacuous: `do` changes nothing else in any world that fits. Beside them accuracy without each.",
    ),
    "attribution": View(
        "causim-attribution",
        "What the question had decided",
        "Of questions that are said to have one answer. Earned, missed: they do, and the answer was right, wrong;"
        " lucky, short: several are right.",
    ),
}
PROFILE = View(
    "causim-profile",
    "Error profile by type and number of nodes",
    "Share of nodes, over answers whose every node has a reason. Do ignored: an intervened node has another value."
    " Impossible: no noise gives the value from the answer's own parents (propagation). Wrong noise: some does, none"
    " that the evidence allows (abduction). First: of wrong answers, the reason of the first wrong node.",
)
SAMPLES = "causim-samples"
PRINTED = ("3", "4", "5", "6", "11", "12", "13", "17", "18", "19", "20", "21", "22", "25", "33")
TABLE_IDS = (VIEWS["answers"].id, PROFILE.id, VIEWS["flags"].id, VIEWS["attribution"].id, SAMPLES, *PRINTED)
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
    views = {
        name: _labelled(view_table(view, METRICS.views[name], rows, notes), _BY_TOPOLOGY)
        for name, view in VIEWS.items()
    }
    levels = setting_rows(by_level(named), wanted.by, METRICS)
    profile = _labelled(view_table(PROFILE, METRICS.views["errors"], levels, notes), _BY_LEVEL)
    samples = _samples(answers, wanted.by)
    printed = [with_sources(table, with_paper=wanted.with_paper) for table in paper_tables(questions_asked(named))]
    made = [
        *(views["answers"], profile, views["flags"], views["attribution"]),
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
