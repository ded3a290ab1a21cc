"""Tables that compare answers: of pairs of systems, of copies of an item, and of responses by how they were read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, combinations
from pathlib import Path
from typing import Any

from calibrant.bench.answers.frame import AnswerFrame
from calibrant.bench.answers.rates import LEVEL, Difference, Interval, Means, paired_differences, wilson
from calibrant.bench.core.benchmark import Benchmark
from calibrant.bench.core.metrics import MAX_SUPPRESSED, READERS, SUPPRESSED, UNDEFINED, Metric, item_itself
from calibrant.bench.core.registry import benchmark_of
from calibrant.bench.core.responses import EXCLUDED, REASONS
from calibrant.bench.pages.charts import Part, stacked_svg
from calibrant.bench.papers import group_answers
from calibrant.bench.report.layout import NOTHING, Cell, Heading, Table, TableRow, anchor_of, cell, shown_columns
from calibrant.bench.report.rows import Answer, Grouping, Row, group, named_answers, with_tie_choice
from calibrant.bench.report.sections import Plot, ReportContents, Section, rate_cell
from calibrant.bench.report.table import ResultTable, readers_differ
from calibrant.bench.variants import Consistency, is_variants_pool, measure_consistency, rate_of_copies, read_maps
from calibrant.dsl.errors import CalibrantError, short_repr
from calibrant.dsl.records import pool_digest
from calibrant.dsl.text import plural

# --- Pairs of systems on the same items -------------------------------------------------------------------------------
PAIRED = "paired"
OVERALL = "all"  # the setting of a row over all settings
MAX_PAIRED_SYSTEMS = 6  # systems of which all pairs are compared, at most 15 rows
REFERENCE = "exact"  # method with which more systems than MAX_PAIRED_SYSTEMS are compared
PAIR_LABELS = (
    *(Heading("setting", "Setting"), Heading("system", "System"), Heading("other", "Compared with")),
    *(Heading("pool", "Pool"), Heading("n", "n")),
)


def differences(
    first: Row, second: Row, means: Callable[[AnswerFrame, int], Means], keys: Iterable[str]
) -> list[Difference]:
    """Return the mean difference of each metric, first row minus second, over the units where both rows have it.

    means: `AnswerFrame.item_means` (unit: an item) or `unit_means` (unit: the items about one model)
    """
    sides = [
        (means(first.frame, first.column_indices[key]), means(second.frame, second.column_indices[key])) for key in keys
    ]
    return paired_differences(sides, first.frame.clusters | second.frame.clusters)


def difference_headings(metrics: Iterable[Metric]) -> tuple[Heading, ...]:
    return tuple(Heading(f"{metric.key}_difference", f"Δ {metric.heading}") for metric in metrics)


def difference_cell(difference: Difference, decimals: int = 3) -> Cell:
    """Return a difference with its interval; as conditional rates, suppressed over at most MAX_SUPPRESSED units."""
    if difference.mean is None:
        return NOTHING
    if difference.num_units <= MAX_SUPPRESSED:
        return Cell(SUPPRESSED)
    # + 0.0: a mean of -0.0 is printed as +0.000
    return cell(f"{difference.mean + 0.0:+.{decimals}f}", difference.interval, decimals=decimals, signed=True)


def claim_of(difference: Difference) -> str:
    """Return "better", "worse" or "not separated", by the sign of the interval; UNDEFINED without an interval."""
    if difference.interval is None:
        return UNDEFINED
    if not difference.interval.excludes_zero:
        return "not separated"
    return "better" if difference.interval.low > 0 else "worse"


def comparisons(
    rows: Sequence[Row], metrics: Sequence[Metric], against: Sequence[str], *, units: str, on: str
) -> Table | None:
    """Return the table of pairs of systems on the same pools; None if there is no pair.

    Each system is compared with those of `against`. If that is empty, up to MAX_PAIRED_SYSTEMS systems are all compared
    with each other; more are compared with `exact` or, without it, with the best system of each setting and its pools.
    `CalibrantError` for a system of `against` that has no row.

    metrics: metrics that are compared; the last one gives the claim, and decides which system is best
    units: name of what the bootstrap resamples, for the caption; on: name of the last metric, for the claim's heading
    """
    systems = {row.system for row in rows}
    for name in against:
        if name not in systems:
            raise CalibrantError(
                f"no system {short_repr(name)} to compare with; there are {', '.join(sorted(systems))}"
            )
    references = tuple(against) or ((REFERENCE,) if len(systems) > MAX_PAIRED_SYSTEMS and REFERENCE in systems else ())
    is_against_best = len(systems) > MAX_PAIRED_SYSTEMS and not references
    keys = [metric.key for metric in metrics]
    lines = [
        _compare(first, second, keys)
        for rows_of_pools in group_answers(rows, lambda row: (row.setting, frozenset(row.pools))).values()
        for first, second in _pairs(rows_of_pools, _best(rows_of_pools, keys[-1]) if is_against_best else references)
    ]
    if not lines:
        return None
    headings = (*difference_headings(metrics), Heading("verdict", f"On {on}"))
    caption = (
        f"System minus the other, over the instances that both answered, with paired {LEVEL:.0%} percentile bootstrap"
        f" intervals over {units}. “Better” or “worse” is said only where the interval of {metrics[-1].heading}"
        " excludes zero; intervals are for one comparison each, not for all of them at once."
    )
    texts = [entry.text for line in lines for entry in line.cells]
    if SUPPRESSED in texts:
        caption += f" {SUPPRESSED} stands for a difference over 1 to {MAX_SUPPRESSED} instances."
    if UNDEFINED in texts:
        caption += (
            f" {UNDEFINED} stands for a verdict without an interval: too few {units} that both answered;"
            " more of them help, more answers to the same ones do not."
        )
    return Table(PAIRED, "Which row beats which", caption, PAIR_LABELS, headings, tuple(lines))


def _best(rows: Sequence[Row], key: str) -> tuple[str, ...]:
    """Return the system with the largest sum of a metric, the first of equal ones; () without rows."""
    return tuple(
        row.system for row in sorted(rows, key=lambda row: -float(row.frame.total(row.column_indices[key])))[:1]
    )


def _pairs(rows: Sequence[Row], references: tuple[str, ...]) -> Iterator[tuple[Row, Row]]:
    if not references:
        yield from combinations(rows, 2)
    for reference in (row for row in rows if row.system in references):
        yield from ((row, reference) for row in rows if row is not reference)


def _compare(first: Row, second: Row, keys: Sequence[str]) -> TableRow:
    deltas = differences(first, second, AnswerFrame.item_means, keys)
    labels = first.setting, first.system, second.system, first.pool, str(deltas[0].num_units)
    return TableRow(labels, (*map(difference_cell, deltas), Cell(claim_of(deltas[-1]))))


def describe_pair(table: Table, systems: Sequence[str]) -> str:
    """Return what the table of pairs says of the first two systems, in the first row that compares them.

    systems: best first. Empty if no row compares them; setting and pool are named if several rows do.
    """
    keys = [heading.key for heading in table.labels]
    rows = [(dict(zip(keys, row.labels, strict=True)), row.cells) for row in table.rows]
    rows = [(labels, cells) for labels, cells in rows if {labels["system"], labels["other"]} == {*systems[:2]}]
    if not rows:
        return ""
    labels, (*_, difference, claim) = rows[0]
    setting, omits_setting = labels["setting"], len(rows) == 1 or labels["setting"] == OVERALL
    relation = "is not separated from" if claim.text not in ("better", "worse") else f"is {claim.text} than"
    start = "" if omits_setting else f"{setting}, {labels['pool']}: "
    if claim.text == UNDEFINED:
        pair = f"{labels['system']} is better than {labels['other']}"
        return f"{start}Whether {pair} is not known: too few independent items for an interval."
    return f"{start}{labels['system']} {relation} {labels['other']}: {difference.text} {difference.interval}."


# --- Pairs of systems over all settings of a benchmark, each item with the same weight --------------------------------


def over_settings(answers: Iterable[Answer]) -> list[Answer]:
    """Return the answers with one setting for all, and without strata."""
    return [(context._replace(setting=OVERALL, stratum=""), score) for context, score in answers]


def add_pairs(section: Section, bench: Benchmark[Any], answers: Sequence[Answer], contents: ReportContents) -> Section:
    """Return the section with a table of pairs over all settings, then by setting.

    The section is unchanged unless the table `paired` was requested, or a page without a choice of tables; and if it
    has that table already, as ReplaySCM's has.
    """
    is_requested = PAIRED in contents.tables or (contents.is_page and not contents.tables)
    metrics = [metric for metric in bench.metrics.columns if metric.key == "accuracy"]  # ReplaySCM has none
    if not is_requested or not metrics or any(table.id == PAIRED for table in section.tables):
        return section
    by = Grouping.SETTING if contents.by is Grouping.SETTING else Grouping.POOL  # no finer rows: pairs share pools
    rows = group(over_settings(answers), bench.metrics, by)
    by_setting = group(answers, bench.metrics, by)
    if len({row.setting for row in by_setting}) > 1:
        rows += by_setting
    rows.sort(
        key=lambda row: (row.setting != OVERALL, *bench.metrics.setting_order_key(row.setting), row.pool, row.system)
    )
    units = "items" if bench.metrics.unit is item_itself else "items, those about one model drawn together"
    table = comparisons(rows, metrics, contents.against, units=units, on="right answers")
    return section if table is None else replace(section, tables=(*section.tables, table))


# --- Answers to copies of an item: an original with renamed, reordered or reworded parts; pools of variants hold copies
CONSISTENCY_TABLE, CHANGES_TABLE, NAMES_TABLE = "consistency", "changes", "names"
CONSISTENCY_TABLE_IDS = (CONSISTENCY_TABLE, CHANGES_TABLE, NAMES_TABLE)
MAX_PLOTTED = 6  # systems in one plot
BAR_PARTS = {
    "right as before": Part(token="good"),
    "gained": Part(token="scale-2"),
    "lost": Part(token="warn"),
    "wrong as before": Part(token="bad"),
}
CONSISTENCY = (
    "Right: mean over all copies, with the 95 % interval clustered by original (Student's t; Wilson's near 0 and 1, and"
    " where each original has one copy). All equal:"
    " share of originals whose copies are all right or all wrong. Worst copy: mean over originals of the worst of"
    " their copies; it falls with their number. Right, originals: mean of"
    " answers to the originals of these copies."
)
CHANGES = (
    "Copies by the kind of change. Lost and gained count copies beside the answer to their original; p is that of"
    " McNemar's exact test, which takes copies of an original as independent."
)

NAMES_CAPTION = (
    "The same items with neutral and with published names. Neutral, Real: skill, (rate - chance) / (best - chance);"
    " the rate where chance is not known (--attribution). Prior knowledge: Real less Neutral, paired by item,"
    " with the 95 % interval over networks; no interval for fewer than six networks."
)


def variants_of(paths: Sequence[Path], benchmark: str) -> list[Path]:
    """Return the pools of variants of a benchmark."""
    return [path for path in paths if is_variants_pool(path) and benchmark_of(path).name == benchmark]


def add_consistency(section: Section, benchmark: str, answers: Sequence[Answer], contents: ReportContents) -> Section:
    """Return the section with tables about the pools of variants among the report's pools that have answers."""
    if contents.tables and not contents.tables & {*CONSISTENCY_TABLE_IDS}:
        return section
    digests = {context.pool_digest for context, _ in answers}
    pools = [path for path in variants_of(contents.pools, benchmark) if pool_digest(path) in digests]
    if not pools:
        return section
    tables: list[Table] = []
    plots: list[Plot] = []
    named_scores = [(answer.context, answer.score) for answer in named_answers(answers)]
    for path in pools:
        renamings = read_maps(path)
        rows, pool = measure_consistency(named_scores, path, renamings), renamings.pool
        tables += [_consistency_table(rows, pool), _changes_table(rows, pool), _names_table(rows, pool)]
        if contents.with_pictures:
            plots += _plot(rows, pool, benchmark)
    chosen = [table for table in tables if table.rows and (not contents.tables or table.id in contents.tables)]
    return replace(section, tables=(*section.tables, *chosen), plots=(*section.plots, *plots))


def without_copies(answers: Mapping[str, Sequence[Answer]], contents: ReportContents) -> dict[str, Sequence[Answer]]:
    """Return the answers without those to pools of variants, whose items are copies of other items.

    A benchmark with answers to such pools alone keeps them.
    """
    digests = {pool_digest(path) for path in contents.pools if is_variants_pool(path)}
    if not digests:
        return dict(answers)
    originals = {
        benchmark: [answer for answer in scored if answer[0].pool_digest not in digests]
        for benchmark, scored in answers.items()
    }
    return {benchmark: originals[benchmark] or scored for benchmark, scored in answers.items()}


def _consistency_table(rows: Sequence[Consistency], pool: str) -> Table:
    labels = (Heading("system", "System"), Heading("originals", "Originals"), Heading("copies", "Copies"))
    headings = (
        Heading("right", "Right"),
        Heading("all_equal", "All equal"),
        Heading("worst_copy", "Worst copy"),
        Heading("right_originals", "Right, originals"),
    )
    table_rows = tuple(
        TableRow(
            (row.system, str(len(row.correct_by_original)), str(row.num_copies)),
            (
                cell(f"{row.mean:.3f}", row.interval),
                cell(f"{row.share_equal:.3f}", Interval(*wilson(row.num_equal, len(row.correct_by_original)))),
                Cell(f"{row.worst:.3f}"),
                NOTHING if row.originals_mean is None else Cell(f"{row.originals_mean:.3f}"),
            ),
        )
        for row in rows
    )
    return Table(CONSISTENCY_TABLE, f"Consistency over copies of {pool}", CONSISTENCY, labels, headings, table_rows)


def _changes_table(rows: Sequence[Consistency], pool: str) -> Table:
    labels = (Heading("system", "System"), Heading("kind", "Change"), Heading("copies", "Copies"))
    headings = tuple(map(Heading, ("right", "lost", "gained", "p"), ("Right", "Lost", "Gained", "p")))
    title = f"Changes that flip answers to copies of {pool}"
    return Table(CHANGES_TABLE, title, CHANGES, labels, headings, tuple(_change_rows(rows)))


def _names_table(rows: Sequence[Consistency], pool: str) -> Table:
    labels = tuple(map(Heading, ("system", "items", "networks", "scale"), ("System", "Items", "Networks", "Scale")))
    headings = (Heading("neutral", "Neutral"), Heading("real", "Real"), Heading("prior_knowledge", "Prior knowledge"))
    table_rows = tuple(
        TableRow(
            (row.system, str(effect.num_items), str(effect.num_units), effect.scale),
            (
                Cell(f"{effect.neutral:.3f}"),
                Cell(f"{effect.real:.3f}"),
                cell(f"{effect.prior_knowledge:+.3f}", effect.interval),
            ),
        )
        for row in rows
        if (effect := row.names) is not None  # the effect of published names
    )
    title = f"Published names instead of neutral ones, {pool}"
    return Table(NAMES_TABLE, title, NAMES_CAPTION, labels, headings, table_rows)


def _change_rows(rows: Sequence[Consistency]) -> Iterator[TableRow]:
    for row in rows:
        for kind, copies_by_original in sorted(row.by_kind.items()):
            rate = rate_of_copies(copies_by_original)
            right = cell(f"{rate.mean:.3f}", rate.interval)
            flip = row.flips.get(kind)
            counts = (
                (NOTHING, NOTHING, NOTHING)
                if flip is None
                else (Cell(str(flip.lost)), Cell(str(flip.gained)), Cell(f"{flip.p_value:.3f}"))
            )
            yield TableRow((row.system, kind, str(sum(map(len, copies_by_original.values())))), (right, *counts))


def _plot(rows: Sequence[Consistency], pool: str, benchmark: str) -> Iterator[Plot]:
    """Yield bars of copies by kind of change, for the systems that answered the originals too."""
    bars: dict[str, tuple[float, ...]] = {}
    answered = [row for row in rows if row.flips]
    for row in answered[:MAX_PLOTTED]:
        for kind, flip in sorted(row.flips.items()):
            num_copies = flip.num_copies
            right = rate_of_copies(row.by_kind[kind]).mean * num_copies
            wrong = num_copies - right - flip.lost
            # at least 0: a copy with several answers, some of them right, is gained or lost as a whole
            bars[f"{row.system}, {kind}"] = (max(0.0, right - flip.gained), flip.gained, flip.lost, max(0.0, wrong))
    if bars:
        title = f"Answers to copies beside those to their originals, {pool}"
        note = "" if len(answered) <= MAX_PLOTTED else f" The first {MAX_PLOTTED} of {len(answered)} systems."
        plot_name = anchor_of(f"consistency {benchmark} {pool}")
        svg = stacked_svg({"": bars}, BAR_PARTS, title)  # one group, without a title
        yield Plot(plot_name, title, f"Copies by kind of change.{note}", svg, in_page=True)


# --- Responses by how they were read ----------------------------------------------------------------------------------
READING_TABLE = "reading"
READING_TABLE_IDS = (READING_TABLE,)
READING_LABELS = (
    Heading("setting", "Setting"),
    Heading("system", "System"),
    Heading("pool", "Pool"),
    Heading("n", "n"),
)
TITLE = "How responses were read"
READERS_CAPTION = (
    "Correct: right answers by the chosen rule; published: by the published rule on the whole text; lenient: by the"
    " reader that also takes answers in other forms. Lenient less correct is what form alone costs."
)
REASONS_CAPTION = "The other columns count responses without an answer, by reason"
EXCLUDED_CAPTION = "not_run and infrastructure_error are in no rate and no n, all others are not right."


def add_reading(
    section: Section, bench: Benchmark[Any], answers: Sequence[Answer], contents: ReportContents
) -> Section:
    """Prepend the table of how responses were read, if the readers differ or some response holds no answer."""
    if contents.tables and READING_TABLE not in contents.tables:
        return section
    excluded = [(context, reason) for context, reason in contents.excluded if context.benchmark == bench.name]
    if not excluded and not any("correctPublished" in score for _, score in answers):
        return section  # there are only records of runs, whose answers were not read from responses
    collected = ResultTable(bench.metrics, by=contents.by, handling=contents.means)
    for answer in chain.from_iterable(map(with_tie_choice, answers)):  # of a mean over ties, also the chosen answer
        collected.add(*answer)
    for context, reason in excluded:
        collected.exclude(context, reason)
    table = _reading_table(collected)
    if table is None:
        return section
    return replace(section, tables=(table, *section.tables), reading=_describe_unanswered(collected))


def _describe_unanswered(collected: ResultTable) -> str:
    """Return a sentence on how many responses are in no rate and how many hold no answer; empty if none are."""
    counts = sum((reasons for _, reasons in (*collected.read_rows(), *collected.unrated())), start=Counter[str]())
    num_excluded = sum(counts[reason] for reason in EXCLUDED)
    num_unanswered = counts.total() - num_excluded
    parts = []
    if num_excluded:
        verb = "is" if num_excluded == 1 else "are"
        parts.append(f"{plural(num_excluded, 'responses')} {verb} in no rate: not run, or the request failed")
    if num_unanswered:
        verbs = "holds no answer and counts" if num_unanswered == 1 else "hold no answer and count"
        parts.append(f"{plural(num_unanswered, 'responses')} {verbs} as not right")
    return f"{'; '.join(parts)}." if parts else ""


def _reading_table(collected: ResultTable) -> Table | None:
    rows, unrated = [*collected.read_rows()], collected.unrated()
    reasons = [reason for reason in REASONS if any(counts[reason] for _, counts in (*rows, *unrated))]
    is_by_reader = any(readers_differ(row) for row, _ in rows)
    if not reasons and not is_by_reader:
        return None
    metrics = READERS if is_by_reader else READERS[:1]  # the other readers would repeat the first one's numbers
    headings = [Heading(metric.key, metric.heading) for metric in metrics]
    headings += [Heading(f"reason:{reason}", reason) for reason in reasons]
    lines = [
        TableRow(
            (row.setting, row.system, row.pool, str(row.num_items)),
            (*(rate_cell(row, metric) for metric in metrics), *_counts(counts, reasons)),
        )
        for row, counts in rows
    ]
    lines += [
        TableRow(
            (labels["setting"], labels["system"], labels["pool"], "0"),
            (*(NOTHING for _ in metrics), *_counts(counts, reasons)),
        )
        for labels, counts in unrated
    ]
    sentences = [*filter(None, (READERS_CAPTION if is_by_reader else "", collected.metrics.about_correct))]
    if reasons:
        sentences.append(f"{REASONS_CAPTION}; {EXCLUDED_CAPTION if set(reasons) & EXCLUDED else 'none is right.'}")
    return shown_columns(
        Table(READING_TABLE, TITLE, " ".join(sentences), READING_LABELS, tuple(headings), tuple(lines))
    )


def _counts(counts: Counter[str], reasons: Sequence[str]) -> Iterator[Cell]:
    yield from (Cell(str(counts[reason])) if counts[reason] else NOTHING for reason in reasons)
