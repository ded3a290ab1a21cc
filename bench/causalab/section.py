"""Section of a report about CausaLab."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from calibrant.bench.causalab.benchmark import BENCHMARK
from calibrant.bench.causalab.fields import GRAPH
from calibrant.bench.causalab.paper_tables.tables import NUMBERS, paper_tables, without_printed
from calibrant.bench.causalab.plots.differences import ID as DIFFERENCES
from calibrant.bench.causalab.plots.differences import difference_table
from calibrant.bench.causalab.plots.frontiers import lab_figures
from calibrant.bench.causalab.plots.picture import lab_picture
from calibrant.bench.causalab.verdict import METRICS
from calibrant.bench.core.attribution import KEY, decision_notes
from calibrant.bench.core.samples import Item
from calibrant.bench.pages.graphs import GraphPicture, graphs_svg
from calibrant.bench.report.answers.named import NamedAnswer, coverage_notes, named_answers
from calibrant.bench.report.kind_plot import KIND_METRICS, KindPlot, attribution_plot
from calibrant.bench.report.layout import Table, anchor_of
from calibrant.bench.report.rows import Answer, Grouping, Row, natural, section_rows
from calibrant.bench.report.sections import NoAnswersError, Plot, ReportContents, Section
from calibrant.bench.report.sources import items_of_pools
from calibrant.bench.report.views import view_tables
from calibrant.bench.runs.jobs import Progress
from calibrant.dsl.causalab.item import LabItem
from calibrant.dsl.causalab.mechanism import FREQUENCY
from calibrant.dsl.errors import in_one_line

ABOUT = (
    "In brackets: 95 % intervals over episodes, score (Wilson) intervals of figures between 0 and 1, normal ones of"
    " other means. * stands for a conditional rate over 1 to 5 answers, \N{EN DASH} for one over none."
)
TABLE_IDS = (*(view.id for view in METRICS.views.values()), DIFFERENCES, *NUMBERS)
MAX_PICTURES = 6
_GRAPHS_CAPTION = (
    f"What the first {MAX_PICTURES} systems stated on the first item of the suite, beside what their own readings"
    " proved; filled: properties that were set, and to what."
)
_KINDS_CAPTION = (
    "Shares of answers by what the readings had decided of the {}: earned and missed where they left one, right and"
    " wrong; lucky and short where they left several, right and wrong. A panel for each suite."
)


def lab_section(
    title: str, answers: Sequence[Answer], contents: ReportContents, items: Mapping[Item, LabItem] | None = None
) -> Section:
    """Tables and plots of these answers; `CalibrantError` if they belong into none of the wanted tables."""
    entries = named_answers(answers)
    at_hand = items_of_pools("causalab", contents.pools) if items is None else items
    figures = _figures(entries, contents, at_hand) if contents.with_pictures else ()
    tables = _tables(entries, contents, at_hand)
    return Section.of(title, ABOUT, answers, tables, (*_plots(entries, contents), *figures))


def _tables(
    entries: Sequence[NamedAnswer], contents: ReportContents, items: Mapping[Item, LabItem]
) -> tuple[Table, ...]:
    rows = section_rows((entry.answer for entry in entries), METRICS, contents.by)
    notes = coverage_notes(entries)
    notes_by_view = {"attribution": (*notes, *decision_notes(entry.score for entry in entries))}
    tables = view_tables(METRICS.views, rows, lambda name: notes_by_view.get(name, notes))
    differences = difference_table(rows, contents.against)
    tables += [] if differences is None else [differences]
    printed = paper_tables(entries, items)
    tables += printed if contents.with_paper else [without_printed(table) for table in printed if table.fits]
    selection = [table for table in tables if table.headings and (not contents.tables or table.id in contents.tables)]
    if not selection:
        raise NoAnswersError(f"no answers that belong into table {', '.join(sorted(contents.tables))}")
    return tuple(selection)


def _figures(entries: Sequence[NamedAnswer], contents: ReportContents, items: Mapping[Item, LabItem]) -> Iterator[Plot]:
    """Yield the paper's figures, of the tables in which some of the answers have a row."""
    tables = [table for table in paper_tables(entries, items) if table.fits]
    yield from lab_figures(tables if contents.with_paper else [without_printed(table) for table in tables])


def _plots(entries: Sequence[NamedAnswer], contents: ReportContents) -> Iterator[Plot]:
    rows = (
        section_rows((entry.answer for entry in entries), METRICS, Grouping.SETTING) if contents.with_pictures else []
    )
    if contents.with_plots:
        yield from (plot for about in KINDS if (plot := attribution_plot(rows, about)) is not None)
    if not contents.with_pictures:
        return
    suites: dict[str, list[NamedAnswer]] = {row.setting: [] for row in rows}
    for entry in entries:
        suites[in_one_line(entry.context.setting)].append(entry)
    for suite, answers in suites.items():
        pictures = _first_item(answers)
        if pictures:
            title = f"Stated graphs, {suite}"
            name = anchor_of(f"lab-graphs {suite}")
            yield Plot(name, title, _GRAPHS_CAPTION, graphs_svg(pictures, f"{name}-"), in_page=True)


def _first_item(answers: Sequence[NamedAnswer]) -> list[GraphPicture]:
    """Return what each system stated on the first item of which that is known; of several samples the first."""
    by_item: dict[tuple[str, str], dict[str, GraphPicture]] = {}
    for answer in sorted(answers, key=lambda answer: (natural(answer.context.instance), answer.context.sample)):
        attribution = answer.score.get(KEY)
        picture = (
            lab_picture(f"{answer.system}, {answer.context.instance}", attribution)
            if isinstance(attribution, Mapping)
            else None
        )
        if picture is not None:
            by_item.setdefault((answer.context.pool_digest, answer.context.instance), {}).setdefault(
                answer.system, picture
            )
    first = next(iter(by_item.values()), {})
    nodes = {node for picture in first.values() for node in picture.nodes}
    ordered = (*sorted(nodes - {FREQUENCY}), FREQUENCY)
    return [replace(first[system], nodes=ordered) for system in sorted(first, key=natural)][:MAX_PICTURES]


def _suite(row: Row) -> str:
    return row.setting


KINDS = tuple(
    KindPlot(
        f"lab-{subject}",
        f"The {subject}: earned, missed, lucky, short",
        _KINDS_CAPTION.format(subject),
        metrics,
        _suite,
    )
    for subject, metrics in (("frequency", KIND_METRICS), ("graph", tuple(f"{GRAPH}_{key}" for key in KIND_METRICS)))
)


class LabReport:
    """Implements Reportable (bench.report.capabilities)."""

    table_ids = TABLE_IDS

    def section(self, answers: Sequence[Answer], contents: ReportContents, progress: Progress) -> Section:
        return lab_section(BENCHMARK.title, answers, contents)


REPORT = LabReport()
