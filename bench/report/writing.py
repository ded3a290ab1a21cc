"""Writing of a report: its text in one of the formats, its plots, and the table of answers that are sets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

from calibrant.bench.answers.frame import estimate
from calibrant.bench.answers.rates import INTERVALS
from calibrant.bench.core.names import TITLES
from calibrant.bench.core.registry import benchmark, benchmarks
from calibrant.bench.pages.page import standalone_svg
from calibrant.bench.report import comparisons, layout
from calibrant.bench.report.capabilities import REPORT
from calibrant.bench.report.people import TABLE_IDS, add_people, groups_of_people
from calibrant.bench.report.rows import Answer
from calibrant.bench.report.sections import NoAnswersError, ReportContents, Section
from calibrant.bench.runs.executors import Progress
from calibrant.bench.scoring import sets as scoring_sets
from calibrant.bench.terminal import printable
from calibrant.dsl.atomic_write import write_atomically
from calibrant.dsl.errors import CalibrantError, short_repr
from calibrant.dsl.text import known_names

# --- Table of answers that are sets, from verdicts of `calibrant score --set-size` ------------------------------------
SETS_TABLE = "sets"
RATES_WITH_INTERVAL = ("valid_rate", "distinct_rate", "reach", "prior_mass")


def set_tables(paths: Sequence[Path]) -> dict[str, layout.Table]:
    """Return a table for each benchmark of the verdicts; `CalibrantError` for lines that do not name one."""
    by_benchmark: dict[str, list[Mapping[str, Any]]] = {}
    for line in scoring_sets.read_set_lines(paths):
        name = line.get("benchmark")
        if name not in TITLES:
            raise CalibrantError("verdicts on sets without their benchmark: score the sets again")
        by_benchmark.setdefault(name, []).append(line)
    return {name: _sets_table(lines) for name, lines in by_benchmark.items()}


def _sets_table(verdicts: Sequence[Mapping[str, Any]]) -> layout.Table:
    keys = ("pool", "system", "n", scoring_sets.MARK)
    labels = tuple(map(layout.Heading, keys, scoring_sets.LABELS))
    headings = tuple(map(layout.Heading, scoring_sets.RATES, scoring_sets.HEADINGS[len(scoring_sets.LABELS) :]))
    rows = tuple(
        layout.TableRow((pool, system, str(len(lines)), str(size)), tuple(_cells(lines)))
        for (pool, system, size), lines in scoring_sets.group_sets(verdicts)
    )
    caption = " ".join(scoring_sets.MEANINGS) + f" Means over items; {INTERVALS}"
    return layout.Table(SETS_TABLE, "Answers that are sets", caption, labels, headings, rows)


def _cells(lines: Sequence[Mapping[str, Any]]) -> Iterator[layout.Cell]:
    for name in scoring_sets.RATES:
        values = scoring_sets.rate_values(lines, name)
        if not values:
            yield layout.NOTHING
            continue
        rate = estimate((index, str(index), value) for index, value in enumerate(values))
        assert rate is not None
        yield layout.cell(scoring_sets.short_rate(rate.mean), rate.interval if name in RATES_WITH_INTERVAL else None)


# --- Text and plots of a report ---------------------------------------------------------------------------------------
HTML, TERMINAL = "html", "terminal"


def chosen_tables(names: Sequence[str]) -> frozenset[str]:
    """Return the names after checking that each is a table's id; `CalibrantError` for an unknown one lists the ids."""
    reports = [report for bench in benchmarks() if (report := bench.capability(REPORT)) is not None]
    all_ids = (
        *chain.from_iterable(report.table_ids for report in reports),
        *TABLE_IDS,
        *comparisons.CONSISTENCY_TABLE_IDS,
        *comparisons.READING_TABLE_IDS,
        comparisons.PAIRED,
        SETS_TABLE,
    )
    table_ids = list(dict.fromkeys(all_ids))
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
    """Return the report, benchmark by benchmark, in a format of TEXTS or as HTML.

    answers: benchmark -> its answers; plots: folder for SVG files of all plots, None for no files
    width: columns of the terminal; None for another output
    """
    is_page = form == HTML
    contents = replace(requested, with_plots=plots is not None, with_pictures=is_page or plots is not None)
    if is_page:
        # the paper's rows are always in the page, hidden until a reader switches them on
        contents = replace(contents, with_paper=True, is_page=True)
    items = comparisons.without_copies(answers, contents)
    sections = _sections(answers, items, contents if is_page else replace(contents, transcripts={}), progress)
    if plots is not None:
        for plot in chain.from_iterable(section.plots for section in sections.values()):
            write_atomically(plots / f"{plot.name}.svg", standalone_svg(plot.svg))
    if not is_page:
        tables = [table for section in sections.values() for table in section.tables]
        is_requested = bool(contents.tables or contents.cohorts)  # such tables are printed even without numbers
        printed = [table for table in map(_without_other_items, tables) if table.headings or is_requested]
        return printable(layout.as_terminal(printed, width) if form == TERMINAL else layout.TEXTS[form](printed))
    from calibrant.bench.report.overview.page import as_html

    return as_html(items, sections, replace(contents, with_paper=requested.with_paper))


def _sections(
    answers: Mapping[str, Sequence[Answer]],
    items: Mapping[str, Sequence[Answer]],
    contents: ReportContents,
    progress: Progress,
) -> dict[str, Section]:
    """Return benchmark -> section, for the benchmarks that have one of the requested tables.

    items: the answers without those to pools of variants, whose items are copies of others
    """
    missing = NoAnswersError(f"no answers that belong into table {', '.join(sorted(contents.tables))}")
    sections = {}
    sets = {} if contents.tables and SETS_TABLE not in contents.tables else set_tables(contents.sets)
    for bench in map(benchmark, answers):
        section, has_benchmark_section = Section.of(bench.title, "", items[bench.name], (), ()), False
        if not contents.tables or contents.tables & {*bench.require(REPORT).table_ids}:
            try:
                section, has_benchmark_section = (
                    bench.require(REPORT).section(items[bench.name], contents, progress),
                    True,
                )
            except NoAnswersError as error:
                missing = error
        section = add_people(section, bench.name, items[bench.name], contents)
        section = comparisons.add_consistency(section, bench.name, answers[bench.name], contents)
        section = comparisons.add_reading(section, bench, items[bench.name], contents)
        section = comparisons.add_pairs(section, bench, items[bench.name], contents)
        if bench.name in sets:
            section = replace(section, tables=(*section.tables, sets[bench.name]))
        groups = groups_of_people(items[bench.name])
        section = replace(section, tables=tuple(layout.with_groups(table, groups) for table in section.tables))
        if has_benchmark_section or section.tables:
            sections[bench.name] = section
    if not sections:
        raise missing
    return dict(zip(sections, _rename_duplicates([*sections.values()]), strict=True))


def _without_other_items(table: layout.Table) -> layout.Table:
    """Return the table, a result table without the paper's rows if these are about other items than this run's."""
    if table.fits or not table.is_result:
        return table
    return layout.own_rows(table)


def _rename_duplicates(sections: Sequence[Section]) -> list[Section]:
    """Return the sections, with the benchmark's title added to names of tables and plots that occurred before."""
    names: set[str] = set()
    renamed = []
    for section in sections:
        tables = [replace(t, id=f"{t.id} ({section.title})") if t.id in names else t for t in section.tables]
        plots = [
            p._replace(name=layout.anchor_of(f"{section.title} {p.name}")) if p.name in names else p
            for p in section.plots
        ]
        names |= {table.id for table in section.tables} | {plot.name for plot in section.plots}
        renamed.append(replace(section, tables=tuple(tables), plots=tuple(plots)))
    return renamed
