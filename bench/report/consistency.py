"""Part of a report about copies of items: how right answers hold up, and which kind of change flips them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from calibrant.bench.answers.rates import Interval
from calibrant.bench.core.registry import benchmark_of
from calibrant.bench.pages.charts import Part, stacked_svg
from calibrant.bench.report.layout import NOTHING, Cell, Heading, Table, TableRow, anchor_of, cell
from calibrant.bench.report.rows import Answer, named_answers
from calibrant.bench.report.sections import Plot, ReportContents, Section
from calibrant.bench.statistics import wilson
from calibrant.bench.variants import Consistency, is_variants_pool, measure_consistency, rate_of_copies, read_maps
from calibrant.dsl.records import pool_digest

CONSISTENCY_TABLE, CHANGES_TABLE, NAMES_TABLE = "consistency", "changes", "names"
TABLE_IDS = (CONSISTENCY_TABLE, CHANGES_TABLE, NAMES_TABLE)
MAX_PLOTTED = 6  # systems in one plot
PARTS = {
    "right as before": Part("good"),
    "gained": Part("scale-2"),
    "lost": Part("warn"),
    "wrong as before": Part("bad"),
}
CONSISTENCY = (
    "Right: mean over all copies, with the 95 % interval clustered by original (Student's t, Wilson's near 0 and 1, and"
    " of one copy an original). All equal:"
    " share of originals whose copies are all right or all wrong. Worst copy: mean over originals of the worst of"
    " their copies; it falls with their number. Originals: mean of answers to the originals of these copies."
)
CHANGES = (
    "Copies by the kind of change. Lost and gained count copies beside the answer to their original; p is that of"
    " McNemar's exact test, which takes copies of an original as independent."
)

NAMES_CAPTION = (
    "The same items with neutral and with published names. Neutral, Real: skill, the rate less chance over best less"
    " chance; the rate where chance is not known (--attribution). Prior knowledge: Real less Neutral, paired by item,"
    " with the 95 % interval over networks; none of fewer than six."
)


def variants_of(paths: Sequence[Path], name: str) -> list[Path]:
    """Return the pools of variants of a benchmark."""
    return [path for path in paths if is_variants_pool(path) and benchmark_of(path).name == name]


def add_consistency(section: Section, name: str, answers: Sequence[Answer], contents: ReportContents) -> Section:
    """Return the section with tables about the pools of variants among the report's pools that have answers."""
    if contents.tables and not contents.tables & {*TABLE_IDS}:
        return section
    digests = {context.pool_digest for context, _ in answers}
    pools = [path for path in variants_of(contents.pools, name) if pool_digest(path) in digests]
    if not pools:
        return section
    tables: list[Table] = []
    plots: list[Plot] = []
    named = [(answer.context, answer.score) for answer in named_answers(answers)]
    for path in pools:
        maps = read_maps(path)
        rows, title = measure_consistency(named, path, maps), maps.pool
        tables += [_consistency_table(rows, title), _changes_table(rows, title), _names_table(rows, title)]
        if contents.with_pictures:
            plots += _plot(rows, title, name)
    chosen = [table for table in tables if table.rows and (not contents.tables or table.id in contents.tables)]
    return replace(section, tables=(*section.tables, *chosen), plots=(*section.plots, *plots))


def without_copies(answers: Mapping[str, Sequence[Answer]], contents: ReportContents) -> dict[str, Sequence[Answer]]:
    """Return the answers without those to pools of variants, which are no items of their own.

    A benchmark that has no other answers keeps them.
    """
    digests = {pool_digest(path) for path in contents.pools if is_variants_pool(path)}
    rest = {
        name: [answer for answer in listed if answer[0].pool_digest not in digests] if digests else listed
        for name, listed in answers.items()
    }
    return {name: rest[name] or listed for name, listed in answers.items()}


def _consistency_table(rows: Sequence[Consistency], pool: str) -> Table:
    labels = (Heading("system", "System"), Heading("originals", "Originals"), Heading("copies", "Copies"))
    headings = (
        Heading("right", "Right"),
        Heading("all_equal", "All equal"),
        Heading("worst_copy", "Worst copy"),
        Heading("right_originals", "Right, originals"),
    )
    listed = tuple(
        TableRow(
            (row.system, str(len(row.rights)), str(row.num_copies)),
            (
                cell(f"{row.mean:.3f}", row.interval),
                cell(f"{row.share_equal:.3f}", Interval(*wilson(row.num_equal, len(row.rights)))),
                Cell(f"{row.worst:.3f}"),
                NOTHING if row.originals is None else Cell(f"{row.originals:.3f}"),
            ),
        )
        for row in rows
    )
    return Table(CONSISTENCY_TABLE, f"Consistency over copies of {pool}", CONSISTENCY, labels, headings, listed)


def _changes_table(rows: Sequence[Consistency], pool: str) -> Table:
    labels = (Heading("system", "System"), Heading("kind", "Change"), Heading("copies", "Copies"))
    headings = tuple(map(Heading, ("right", "lost", "gained", "p"), ("Right", "Lost", "Gained", "p")))
    title = f"Changes that flip answers to copies of {pool}"
    return Table(CHANGES_TABLE, title, CHANGES, labels, headings, tuple(_change_rows(rows)))


def _names_table(rows: Sequence[Consistency], pool: str) -> Table:
    labels = tuple(map(Heading, ("system", "items", "networks", "scale"), ("System", "Items", "Networks", "Scale")))
    headings = (Heading("neutral", "Neutral"), Heading("real", "Real"), Heading("prior_knowledge", "Prior knowledge"))
    listed = tuple(
        TableRow(
            (row.system, str(probe.num_items), str(probe.num_units), probe.scale),
            (
                Cell(f"{probe.neutral:.3f}"),
                Cell(f"{probe.real:.3f}"),
                cell(f"{probe.prior_knowledge:+.3f}", probe.interval),
            ),
        )
        for row in rows
        if (probe := row.names) is not None
    )
    title = f"Published names instead of neutral ones, {pool}"
    return Table(NAMES_TABLE, title, NAMES_CAPTION, labels, headings, listed)


def _change_rows(rows: Sequence[Consistency]) -> Iterator[TableRow]:
    for row in rows:
        for kind, rights in sorted(row.by_kind.items()):
            rate = rate_of_copies(rights)
            right = cell(f"{rate.mean:.3f}", rate.interval)
            flip = row.flips.get(kind)
            counts = (
                (NOTHING, NOTHING, NOTHING)
                if flip is None
                else (Cell(str(flip.lost)), Cell(str(flip.gained)), Cell(f"{flip.p_value:.3f}"))
            )
            yield TableRow((row.system, kind, str(sum(map(len, rights.values())))), (right, *counts))


def _plot(rows: Sequence[Consistency], pool: str, name: str) -> Iterator[Plot]:
    """Yield bars of copies by kind of change, for the systems that answered the originals too."""
    bars: dict[str, tuple[float, ...]] = {}
    answered = [row for row in rows if row.flips]
    for row in answered[:MAX_PLOTTED]:
        for kind, flip in sorted(row.flips.items()):
            right = rate_of_copies(row.by_kind[kind]).mean * flip.number
            wrong = flip.number - right - flip.lost
            bars[f"{row.system}, {kind}"] = (max(0.0, right - flip.gained), flip.gained, flip.lost, max(0.0, wrong))
    if bars:
        title = f"Answers to copies beside those to their originals, {pool}"
        note = "" if len(answered) <= MAX_PLOTTED else f" The first {MAX_PLOTTED} of {len(answered)} systems."
        plot_name = anchor_of(f"consistency {name} {pool}")
        svg = stacked_svg({"": bars}, PARTS, title)
        yield Plot(plot_name, title, f"Copies by kind of change.{note}", svg, in_page=True)
