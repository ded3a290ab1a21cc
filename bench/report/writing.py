"""Making a report's files: its text in one of the formats, and its plots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

from calibrant.bench.core.registry import benchmark, benchmarks
from calibrant.bench.pages.page import standalone_svg
from calibrant.bench.report.capabilities import REPORT
from calibrant.bench.report.consistency import section as consistency
from calibrant.bench.report.formats import TEXTS, as_terminal
from calibrant.bench.report.layout import Source, Table, anchor_of
from calibrant.bench.report.people.section import add_people
from calibrant.bench.report.people.tables import TABLE_IDS
from calibrant.bench.report.rows import Answer
from calibrant.bench.report.sections import NoAnswersError, ReportContents, Section
from calibrant.bench.report.sets import SETS_TABLE, set_tables
from calibrant.bench.runs.jobs import Progress
from calibrant.bench.terminal import printable
from calibrant.dsl.atomic_write import write_atomically
from calibrant.dsl.errors import CalibrantError, short_repr
from calibrant.dsl.text import known_names

HTML, TERMINAL = "html", "terminal"


def chosen_tables(names: Sequence[str]) -> frozenset[str]:
    """Table ids by name; `CalibrantError` says which are known."""
    reports = [report for of in benchmarks() if (report := of.capability(REPORT)) is not None]
    listed = (
        *chain.from_iterable(report.table_ids for report in reports),
        *TABLE_IDS,
        *consistency.TABLE_IDS,
        SETS_TABLE,
    )
    table_ids = list(dict.fromkeys(listed))
    for name in names:
        if name not in table_ids:
            raise CalibrantError(f"unknown table {short_repr(name)}; {known_names(name, table_ids)}")
    return frozenset(names)


def report_text(
    answers: Mapping[str, Sequence[Answer]],
    requested: ReportContents,
    form: str,
    *,
    plots: Path | None = None,
    width: int | None = None,
    progress: Progress = lambda name, done, total: None,
) -> str:
    """Return the report in a format of TEXTS, or as HTML: of one benchmark after the other.

    answers: by benchmark; plots: folder that gets every plot as an SVG file too; width: columns of a terminal, if any
    """
    is_page = form == HTML
    contents = replace(requested, with_plots=plots is not None, with_pictures=is_page or plots is not None)
    if is_page:
        contents = replace(contents, with_paper=True)  # in the page, hidden unless they are switched on
    items = consistency.without_copies(answers, contents)
    sections = _sections(answers, items, contents if is_page else replace(contents, transcripts={}), progress)
    if plots is not None:
        for plot in chain.from_iterable(section.plots for section in sections.values()):
            write_atomically(plots / f"{plot.name}.svg", standalone_svg(plot.svg))
    if not is_page:
        tables = [table for section in sections.values() for table in section.tables]
        fitting = [_without_other_items(table) for table in tables]
        return printable(as_terminal(fitting, width) if form == TERMINAL else TEXTS[form](fitting))
    from calibrant.bench.report.html import as_html

    return as_html(items, sections, replace(contents, with_paper=requested.with_paper))


def _sections(
    answers: Mapping[str, Sequence[Answer]],
    items: Mapping[str, Sequence[Answer]],
    contents: ReportContents,
    progress: Progress,
) -> dict[str, Section]:
    """Return, by benchmark, the sections that have one of the requested tables.

    items: the answers without those to copies of items
    """
    missing = NoAnswersError(f"no answers that belong into table {', '.join(sorted(contents.tables))}")
    sections = {}
    sets = {} if contents.tables and SETS_TABLE not in contents.tables else set_tables(contents.sets)
    for of in map(benchmark, answers):
        section, has_other = Section.of(of.title, "", items[of.name], (), ()), False
        if not contents.tables or contents.tables & {*of.require(REPORT).table_ids}:
            try:
                section, has_other = of.require(REPORT).section(items[of.name], contents, progress), True
            except NoAnswersError as error:
                missing = error
        section = add_people(section, of.name, items[of.name], contents)
        section = consistency.add_consistency(section, of.name, answers[of.name], contents)
        if of.name in sets:
            section = replace(section, tables=(*section.tables, sets[of.name]))
        if has_other or section.tables:
            sections[of.name] = section
    if not sections:
        raise missing
    return dict(zip(sections, _rename_duplicates([*sections.values()]), strict=True))


def _without_other_items(table: Table) -> Table:
    """Return a table of results without printed rows that are not about such items."""
    if table.fits or not table.is_result:
        return table
    return replace(table, rows=tuple(row for row in table.rows if row.source is Source.OURS))


def _rename_duplicates(sections: Sequence[Section]) -> list[Section]:
    """Return the sections; a table or plot whose name an earlier one has is named after its benchmark too."""
    names: set[str] = set()
    renamed = []
    for section in sections:
        tables = [replace(t, id=f"{t.id} ({section.title})") if t.id in names else t for t in section.tables]
        plots = [
            p._replace(name=anchor_of(f"{section.title} {p.name}")) if p.name in names else p for p in section.plots
        ]
        names |= {table.id for table in section.tables} | {plot.name for plot in section.plots}
        renamed.append(replace(section, tables=tuple(tables), plots=tuple(plots)))
    return renamed
