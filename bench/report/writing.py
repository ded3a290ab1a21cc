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
    known = list(dict.fromkeys(chain.from_iterable(one.report_tables for one in benchmarks())))
    for name in names:
        if name not in known:
            raise CalibrantError(f"unknown table {short_repr(name)}; known: {', '.join(known)}")
    return frozenset(names)


def report_text(
    answers: Mapping[str, Sequence[Answer]],
    wanted: ReportContents,
    form: str,
    *,
    plots: Path | None = None,
    progress: Progress = lambda name, done, total: None,
) -> str:
    """The report in a format of TEXTS, or as HTML: of one benchmark after the other.

    answers: by benchmark; plots: folder that gets every plot as an SVG file too
    """
    drawn = replace(wanted, with_plots=form == HTML or plots is not None)
    parts = _parts(answers, drawn if form == HTML else replace(drawn, transcripts={}), progress)
    if plots is not None:
        for plot in chain.from_iterable(part.plots for part in parts):
            write_atomically(plots / f"{plot.name}.svg", printable(plot.svg))
    if form != HTML:
        return printable(TEXTS[form]([table for part in parts for table in part.tables]))
    from calibrant.bench.report.html import as_html

    return as_html(parts)


def _parts(answers: Mapping[str, Sequence[Answer]], wanted: ReportContents, progress: Progress) -> list[Part]:
    """Return the parts of the benchmarks that have one of the requested tables."""
    asked = [
        benchmark(name) for name in answers if not wanted.tables or wanted.tables & {*benchmark(name).report_tables}
    ]
    missing = NoAnswersError(f"no answers that belong into table {', '.join(sorted(wanted.tables))}")
    made = []
    for one in asked:
        try:
            made.append(one.report(answers[one.name], wanted, progress))
        except NoAnswersError as error:
            missing = error
    if not made:
        raise missing
    return _told_apart(made)


def _told_apart(parts: Sequence[Part]) -> list[Part]:
    """The parts; a table or plot of a name that an earlier one has too is named after its benchmark as well."""
    taken: set[str] = set()
    made = []
    for part in parts:
        tables = [replace(t, id=f"{t.id} ({part.title})") if t.id in taken else t for t in part.tables]
        plots = [p._replace(name=anchor_of(f"{part.title} {p.name}")) if p.name in taken else p for p in part.plots]
        taken |= {table.id for table in part.tables} | {plot.name for plot in part.plots}
        made.append(replace(part, tables=tuple(tables), plots=tuple(plots)))
    return made
