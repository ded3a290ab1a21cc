"""A benchmark's section of a report: tables of views, the plot of attributions, episodes shown step by step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from calibrant.bench.answers.rates import differing_names, natural, option_suffix
from calibrant.bench.core.attribution import INVALID, KEY, KINDS, NONE, SHARES, answer_class, share_words
from calibrant.bench.core.metrics import InvalidHandling, Metric, View
from calibrant.bench.core.scoring import AnswerContext
from calibrant.bench.pages.capabilities import TIMELINES
from calibrant.bench.pages.charts import Part, stacked_svg
from calibrant.bench.pages.timeline import Timeline
from calibrant.bench.report.layout import Cell, Heading, Table, TableRow, cell, shown_columns
from calibrant.bench.report.rows import Answer, Grouping, Row
from calibrant.bench.report.sources import Transcript, transcripts
from calibrant.bench.scoring.answers import FieldNames
from calibrant.dsl.episode import TranscriptError
from calibrant.dsl.errors import CalibrantError, in_one_line, short_repr

if TYPE_CHECKING:
    from calibrant.bench.core.benchmark import Benchmark


# --- Contents that a report was requested with, and a benchmark's section of it ---------------------------------------


class NoAnswersError(CalibrantError):
    """No requested table has a row for a benchmark's answers."""


@dataclass(frozen=True)
class ReportContents:
    """Contents of a report.

    tables: requested table ids, empty for all; against: systems to compare the others with, empty for the default
    with_paper: add the paper's rows; with_times: add times, which differ between equal runs
    with_plots: make plots that are only written to files; with_pictures: make plots that pages show too
    is_page: whether the report is a page, which has the table of pairs by default
    by: property that groups answers into rows; means: value of invalid submissions in means
    pools: pool files of the answers; audits: folders of audits
    cohorts: NAME=POOL texts; answers to each pool are compared with those to the first
    transcripts: benchmark -> folders of runs and files of predictions with episodes to show
    fields: names of the fields in predictions
    runs, predictions (by benchmark): inputs from which responses and times are read
    embed: largest number of responses embedded in a page for each class of answers
    sets: files of verdicts on sets; excluded: (context, reason) of responses that are in no rate
    """

    tables: frozenset[str] = frozenset()
    against: tuple[str, ...] = ()
    with_paper: bool = True
    with_times: bool = True
    with_plots: bool = False
    by: Grouping = Grouping.POOL
    means: InvalidHandling = InvalidHandling.PUBLISHED
    pools: tuple[Path, ...] = ()
    audits: tuple[Path, ...] = ()
    cohorts: tuple[str, ...] = ()
    transcripts: Mapping[str, Sequence[Path]] = field(default_factory=dict)
    fields: FieldNames | None = None
    runs: tuple[Path, ...] = ()
    predictions: Mapping[str, Sequence[Path]] = field(default_factory=dict)
    embed: int = 200
    with_pictures: bool = False
    is_page: bool = False
    sets: tuple[Path, ...] = ()
    excluded: tuple[tuple[AnswerContext, str], ...] = ()


class Plot(NamedTuple):
    """Plot of a section.

    name: stem of its file and anchor in the page; in_page: whether the page shows it
    """

    name: str
    title: str
    caption: str
    svg: str
    in_page: bool = False


@dataclass(frozen=True)
class Section:
    """A benchmark's section of a report.

    title: title of the benchmark; about: note on intervals
    systems: names of systems; pools: (name, digest) of each pool; answers: number of answers
    episodes: episodes shown step by step; reading: sentence on responses in no rate or without an answer
    """

    title: str
    about: str
    systems: frozenset[str]
    pools: tuple[tuple[str, str], ...]
    answers: int
    tables: tuple[Table, ...]
    plots: tuple[Plot, ...] = ()
    episodes: tuple[Timeline, ...] = ()
    reading: str = ""

    @classmethod
    def of(
        cls, title: str, about: str, answers: Sequence[Answer], tables: tuple[Table, ...], plots: tuple[Plot, ...]
    ) -> Section:
        """Return the section of these tables and plots, with systems, pools and number of their answers."""
        systems = frozenset(in_one_line(context.system) for context, _ in answers)
        pools = sorted({(in_one_line(context.pool), context.pool_digest) for context, _ in answers})
        return cls(title, about, systems, tuple(pools), len(answers), tables, plots)


# --- A view of a benchmark's metrics as a table: a row for each setting, stratum, pool and system, with intervals -----
ROW_LABELS = (
    *(Heading("setting", "Setting"), Heading("stratum", "Stratum"), Heading("system", "System")),
    *(Heading("pool", "Pool"), Heading("n", "n")),
)


def view_table(view: View, rows: Sequence[Row], notes: tuple[str, ...]) -> Table:
    """Return the table of a view, without columns that are undefined in every row."""
    lines = tuple(
        TableRow(
            (row.setting, row.stratum, row.system, row.pool, str(_num_items(view, row))),
            _metric_cells(row, view.metrics),
        )
        for row in rows
    )
    headings = tuple(Heading(column.key, column.heading) for column in view.metrics)
    table = shown_columns(Table(view.id, view.title, "", ROW_LABELS, headings, lines, notes))
    return replace(table, caption=view.caption({heading.key for heading in table.headings}))


def view_tables(views: Mapping[str, View], rows: Sequence[Row], notes: Callable[[str], tuple[str, ...]]) -> list[Table]:
    """Return the tables of views; optional views are omitted if no answer has any of their metrics.

    notes: name of a view -> notes of its table
    """
    tables = ((view, view_table(view, rows, notes(name))) for name, view in views.items())
    return [table for view, table in tables if table.headings or not view.optional]


def _num_items(view: View, row: Row) -> int:
    """Return the number of items in a view: those with an attribution for a view of attributions, else all."""
    is_of_attributions = any(metric.key == "earned" for metric in view.metrics)
    return row.rates["earned"].num_items if is_of_attributions else row.num_items


def _metric_cells(row: Row, columns: Sequence[Metric]) -> tuple[Cell, ...]:
    return tuple(rate_cell(row, column) for column in columns)


def rate_cell(row: Row, column: Metric) -> Cell:
    """Return the cell of a rate with its interval; `*` for a suppressed rate, a dash for an undefined one."""
    return cell(row.rates[column.key].text, row.interval(column.key), decimals=column.decimals)


# --- Plot of the classes of answers (earned, lucky, ...) by setting and system ----------------------------------------
# parts of bars: striped if undecided, grey (edge, line, sunk) for answers without one of the four kinds
PARTS = {
    "earned": Part("good"),
    "lucky": Part("good", is_striped=True),
    "short": Part("bad", is_striped=True),
    "missed": Part("bad"),
    "uncounted": Part("edge"),
    "invalid": Part("line"),
    "no_answer": Part("sunk"),
}


def interval_note(rows: Iterable[Row], *, items: str = "items", unit: str = "latent model") -> str:
    """Return the note on the intervals in brackets and on the marks `*` and dash.

    items: plural noun for the items; unit: noun for the latent model that several items may share
    """
    rows = [*rows]
    units = {unit for row in rows for unit in row.units}
    is_clustered = len(units) < len({item for row in rows for item in row.items})
    kinds = "of shares Wilson's, of other means Student's t"
    if is_clustered:
        kinds += (
            f"; where {items} share a {unit}, clustered by it: Student's t, of shares near 0 and 1 Wilson's at as many"
            f" {items} as there are {unit}s"
        )
    if any(row.is_group for row in rows):
        kinds += "; of people participants and items drawn again (clustered bootstrap)"
    return (
        f"In brackets: 95 % intervals over {items}, {kinds}. Several answers of a system to one of the {items} count as"
        f" their mean. * stands for a conditional rate over 1 to 5 {items}, \N{EN DASH} for one over none."
    )


OTHERS = "In grey: answers whose evidence was not counted, invalid ones, and none given."


class KindPlot(NamedTuple):
    """Description of a plot of classes.

    name, title, caption: see `Plot`; panel: row -> title of its panel
    part: prefix of the metrics' keys for a part of the attribution; empty for the whole
    """

    name: str
    title: str
    caption: str
    panel: Callable[[Row], str]
    part: str = ""


def kind_shares(rows: Sequence[Row], about: KindPlot) -> dict[str, dict[str, dict[str, float]]]:
    """Return panel -> system -> share of each of SHARES, which add up to 1; every item weighs the same.

    Empty if no answer is earned, missed, lucky or short.
    """
    sums: dict[str, dict[str, dict[str, Fraction]]] = {}
    for row in rows:
        keys = {kind: about.part + kind if kind in KINDS else kind for kind in SHARES}
        totals = {kind: row.frame.total(row.column_indices[key]) for kind, key in keys.items()}
        if any(totals.values()):
            sums_of_system = sums.setdefault(about.panel(row), {}).setdefault(
                row.system, dict.fromkeys(SHARES, Fraction())
            )
            sums_of_system |= {kind: sums_of_system[kind] + number for kind, number in totals.items()}
    if not any(totals[kind] for by_system in sums.values() for totals in by_system.values() for kind in KINDS):
        return {}
    return {
        panel: {
            system: {kind: float(number / sum(kinds.values())) for kind, number in kinds.items()}
            for system, kinds in by_system.items()
        }
        for panel, by_system in sums.items()
    }


def attribution_plot(rows: Sequence[Row], about: KindPlot) -> Plot | None:
    """Return a plot of stacked shares; None if no answer has an attribution."""
    shares = kind_shares(rows, about)
    if not shares:
        return None
    panels = {
        panel: {system: [kinds[kind] for kind in PARTS] for system, kinds in of_systems.items()}
        for panel, of_systems in shares.items()
    }
    present = [any(values[k] for bars in panels.values() for values in bars.values()) for k in range(len(PARTS))]
    parts = {
        share_words(kind): part for (kind, part), is_present in zip(PARTS.items(), present, strict=True) if is_present
    }
    panels = {
        panel: {system: [*compress(values, present)] for system, values in bars.items()}
        for panel, bars in panels.items()
    }
    svg = stacked_svg(panels, parts, about.title, "share of answers")
    return Plot(about.name, about.title, about.caption, svg)


# --- Episodes that a report shows step by step: the first of each class -----------------------------------------------
_Key: TypeAlias = tuple[str, str, str, str, int]


def chosen_episodes(
    bench: Benchmark[Any],
    answers: Sequence[Answer],
    contents: ReportContents,
    items: Mapping[tuple[str, str], Any],
) -> Iterator[Timeline]:
    """Yield the first episode of each class, by system and item, whose item and transcript are available.

    items: (digest of the pool, id) -> item
    """
    pools = [path for path in contents.pools if _is_pool_of(path, bench)]
    sources = contents.transcripts.get(bench.name, ())
    if not pools or not sources:
        return
    first: dict[tuple[str, str], AnswerContext] = {}  # (class, system) -> its first answer
    for context, score in sorted(answers, key=lambda answer: (natural(answer[0].system), natural(answer[0].instance))):
        if (context.pool_digest, context.instance) in items and score.get(KEY):
            first.setdefault((answer_class(score), context.system), context)
    keys = {_key(context) for context in first.values()}
    transcript_by_key = {
        _key(origin.context): origin
        for origin in transcripts(sources, pools, contents.fields)
        if _key(origin.context) in keys
    }
    for kind in (*KINDS, INVALID, NONE):
        keys_of_kind = [_key(context) for (kind_of_key, _), context in first.items() if kind_of_key == kind]
        transcript = next((transcript_by_key[key] for key in keys_of_kind if key in transcript_by_key), None)
        if transcript is not None:
            context = transcript.context
            configs = [origin.config for origin, _ in answers if origin.system == context.system]
            name = in_one_line(context.system + option_suffix(context.config, differing_names(configs)))
            yield _build_timeline(bench, items[context.pool_digest, context.instance], transcript, name)


def _is_pool_of(path: Any, bench: Benchmark[Any]) -> bool:
    from calibrant.bench.core.registry import benchmark_of

    return benchmark_of(path).name == bench.name


def _key(context: AnswerContext) -> _Key:
    return context.pool_digest, context.instance, context.system, context.options, context.sample


def _build_timeline(bench: Benchmark[Any], item: Any, transcript: Transcript, name: str) -> Timeline:
    try:
        return bench.require(TIMELINES)(item, transcript.steps, name)
    except TranscriptError as error:
        raise CalibrantError(f"{name} on {short_repr(item.id)} of {transcript.context.pool}: {error}") from None
