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
from calibrant.bench.report.sections import NoAnswersError, Part, ReportContents
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
    parts = _parts(answers, contents if form == HTML else replace(contents, transcripts={}), progress)
    if plots is not None:
        for plot in chain.from_iterable(part.plots for part in parts):
            write_atomically(plots / f"{plot.name}.svg", printable(plot.svg))
    if form != HTML:
        return printable(TEXTS[form]([table for part in parts for table in part.tables]))
    from calibrant.bench.report.html import as_html

    return as_html(parts)


def _parts(answers: Mapping[str, Sequence[Answer]], contents: ReportContents, progress: Progress) -> list[Part]:
    """Return the parts of the benchmarks that have one of the requested tables."""
    chosen = [
        benchmark(name) for name in answers if not contents.tables or contents.tables & {*benchmark(name).report_tables}
    ]
    missing = NoAnswersError(f"no answers that belong into table {', '.join(sorted(contents.tables))}")
    parts = []
    for of in chosen:
        try:
            parts.append(of.report(answers[of.name], contents, progress))
        except NoAnswersError as error:
            missing = error
    if not parts:
        raise missing
    return _told_apart(parts)


def _told_apart(parts: Sequence[Part]) -> list[Part]:
    """Return the parts; a table or plot of a name that an earlier one has too is named after its benchmark as well."""
    names: set[str] = set()
    renamed = []
    for part in parts:
        tables = [replace(t, id=f"{t.id} ({part.title})") if t.id in names else t for t in part.tables]
        plots = [p._replace(name=anchor_of(f"{part.title} {p.name}")) if p.name in names else p for p in part.plots]
        names |= {table.id for table in part.tables} | {plot.name for plot in part.plots}
        renamed.append(replace(part, tables=tuple(tables), plots=tuple(plots)))
    return renamed
