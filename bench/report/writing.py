"""Making a report's files: its text in one of the formats, and its plots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

from calibrant.bench.core.registry import benchmark, benchmarks
from calibrant.bench.report.formats import TEXTS
from calibrant.bench.report.layout import anchor_of
from calibrant.bench.report.rows import Answer
from calibrant.bench.report.sections import NoAnswersError, ReportContents, Section
from calibrant.bench.runs.jobs import Progress
from calibrant.bench.terminal import printable
from calibrant.dsl.atomic_write import write_atomically
from calibrant.dsl.errors import CalibrantError, short_repr

HTML = "html"


def chosen_tables(names: Sequence[str]) -> frozenset[str]:
    """Table ids by name; `CalibrantError` says which are known."""
    table_ids = list(dict.fromkeys(chain.from_iterable(offered.report_tables for offered in benchmarks())))
    for name in names:
        if name not in table_ids:
            raise CalibrantError(f"unknown table {short_repr(name)}; known: {', '.join(table_ids)}")
    return frozenset(names)


def report_text(
    answers: Mapping[str, Sequence[Answer]],
    requested: ReportContents,
    form: str,
    *,
    plots: Path | None = None,
    progress: Progress = lambda name, done, total: None,
) -> str:
    """Return the report in a format of TEXTS, or as HTML: of one benchmark after the other.

    answers: by benchmark; plots: folder that gets every plot as an SVG file too
    """
    contents = replace(requested, with_plots=form == HTML or plots is not None)
    sections = _sections(answers, contents if form == HTML else replace(contents, transcripts={}), progress)
    if plots is not None:
        for plot in chain.from_iterable(section.plots for section in sections):
            write_atomically(plots / f"{plot.name}.svg", printable(plot.svg))
    if form != HTML:
        return printable(TEXTS[form]([table for section in sections for table in section.tables]))
    from calibrant.bench.report.html import as_html

    return as_html(sections)


def _sections(answers: Mapping[str, Sequence[Answer]], contents: ReportContents, progress: Progress) -> list[Section]:
    """Return the sections of the benchmarks that have one of the requested tables."""
    chosen = [
        benchmark(name) for name in answers if not contents.tables or contents.tables & {*benchmark(name).report_tables}
    ]
    missing = NoAnswersError(f"no answers that belong into table {', '.join(sorted(contents.tables))}")
    sections = []
    for of in chosen:
        try:
            sections.append(of.report(answers[of.name], contents, progress))
        except NoAnswersError as error:
            missing = error
    if not sections:
        raise missing
    return _rename_duplicates(sections)


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
