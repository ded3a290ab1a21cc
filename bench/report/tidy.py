"""Answers and rates as tidy frames: a row an answer, or a row for a metric of a system; columns are documented here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import chain
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from calibrant.bench.core.metrics import READERS, SUPPRESSED, UNDEFINED, InvalidHandling
from calibrant.dsl.errors import CalibrantError, short_repr
from calibrant.dsl.pictures import Picture, Pictured, table_picture
from calibrant.dsl.text import plural

if TYPE_CHECKING:
    from pathlib import Path

    from calibrant.bench.core.metrics import MetricSet
    from calibrant.bench.core.scoring import AnswerContext
    from calibrant.bench.report.pool_attribution import AttributionCoverage
    from calibrant.bench.report.rows import Answer, Grouping, Row
    from calibrant.bench.report.table import Excluded, ResultTable, UnansweredCounts
    from calibrant.bench.runs.records import Record


class Framed(Pictured):
    """A result or table as a data frame, a row for each of its parts."""

    @property
    def frame_columns(self) -> Mapping[str, Sequence[Any]]:
        """Columns of the frame by name."""
        raise NotImplementedError

    def to_frame(self, backend: str = "pandas") -> Any:
        """Return a data frame. backend: pandas, polars, pyarrow or another that narwhals (extra `frames`) writes."""
        columns = {name: list(values) for name, values in self.frame_columns.items()}
        try:
            narwhals = import_module("narwhals.stable.v2")
            types = {str: narwhals.String, int: narwhals.Int64, float: narwhals.Float64}
            schema = {name: types[kind] for name, kind in self.frame_types.items() if name in columns}
            return narwhals.from_dict(columns, schema or None, backend=backend).to_native()
        except ImportError as error:
            raise CalibrantError(
                f"a frame of {short_repr(backend)} needs narwhals (pip install 'calibrant[frames]') and that package:"
                f" {error}"
            ) from None
        except (ValueError, AttributeError):
            raise CalibrantError(f"backend is {short_repr(backend)}; allowed: pandas, polars, pyarrow, modin") from None

    def picture(self) -> Picture:
        """Return the first rows of the frame."""
        return table_picture(repr(self).strip("<>"), self.frame_columns)

    @property
    def frame_types(self) -> Mapping[str, type]:
        """Types of the columns (str, int, float), where they are the same in every frame; else those of the values."""
        return {}


# --- Answers and rates as tidy frames: a row an answer, or a row for a metric of a system; columns are documented here


class FrameColumn(NamedTuple):
    """Column of a tidy frame. kind: str, int or float, where a missing value is null or NaN; meaning: for docs."""

    name: str
    kind: type
    meaning: str


ANSWER_COLUMNS = (
    FrameColumn("benchmark", str, "its name"),
    FrameColumn("item", str, "id of the item"),
    FrameColumn("setting", str, "row group of tables"),
    FrameColumn("stratum", str, "finer group of the generator; empty if there is none"),
    FrameColumn("pool", str, "name of the pool; of `run`"),
    FrameColumn("system", str, "method or model that answered; of `run`"),
    FrameColumn("options", str, "its options as JSON; of `run`"),
    FrameColumn("sample", int, "number among the system's answers to the item, from 0"),
    FrameColumn("outcome", str, "found, impossible, out_of_budget or crashed; of `run`"),
    FrameColumn("seconds", float, "time that the answer took; of `run`"),
    FrameColumn("failure", str, "why the answer is wrong, in a line; of `score_many`"),
    FrameColumn("right", float, "1 if the answer is right, 0 if not; of equally good answers their share"),
)
"""First columns of a frame of answers; after them each metric of the benchmark by its key (docs/metrics.md)."""

RATE_COLUMNS = (
    FrameColumn("benchmark", str, "its name"),
    FrameColumn("setting", str, "row group"),
    FrameColumn("stratum", str, 'finer group, with `by="stratum"`'),
    FrameColumn("pool", str, "name of the pool, or how many there are"),
    FrameColumn("system", str, "method or model, with the options in which its rows differ"),
    FrameColumn("items", int, "number of items"),
    FrameColumn("answers", int, "number of answers"),
    FrameColumn("metric", str, "key of the metric (docs/metrics.md)"),
    FrameColumn("heading", str, "its heading in printed tables"),
    FrameColumn("value", float, "its mean over items; missing where it is over 1 to 5 of them and conditional"),
    FrameColumn("low", float, "lower end of its 95 % interval; missing where there is none"),
    FrameColumn("high", float, "upper end"),
    FrameColumn("defined", int, "number of items that it is defined for"),
)
"""Columns of a frame of rates: a row for each metric of each row of the table; undefined ones have none."""


class AnswerRow(NamedTuple):
    """An answer with its score. failure: why it is wrong, if that is known in words."""

    context: AnswerContext
    score: Mapping[str, Any]
    failure: str | None


def answer_columns(rows: Sequence[AnswerRow]) -> dict[str, list[Any]]:
    """Return the columns of a frame of answers; metrics of another benchmark are missing."""
    import msgspec

    from calibrant.bench.core.metrics import ObservationReader
    from calibrant.bench.core.registry import benchmark

    readers: dict[str, ObservationReader] = {}
    for context, _, _ in rows:
        if context.benchmark not in readers:
            readers[context.benchmark] = ObservationReader(benchmark(context.benchmark).metrics)
    keys = {metric.key: None for reader in readers.values() for metric in reader.metrics.columns}
    columns: dict[str, list[Any]] = {name: [] for name in (*(column.name for column in ANSWER_COLUMNS), *keys)}
    for context, score, failure in rows:
        reader = readers[context.benchmark]
        head = {
            "benchmark": context.benchmark,
            "item": context.instance,
            "setting": context.setting,
            "stratum": context.stratum,
            "pool": context.pool or None,
            "system": context.system or None,
            "options": msgspec.json.encode(context.config, order="sorted").decode() if context.system else None,
            "sample": context.sample,
            "outcome": context.outcome,
            "seconds": context.seconds,
            "failure": failure,
            "right": reader.metrics.success.rate(score, context.setting),
        }
        values, _ = reader.read_values(context.setting, score)
        read = dict(zip((metric.key for metric in reader.columns), values, strict=True))
        for name, column in columns.items():
            column.append(head[name] if name in head else read.get(name))
    return columns


class _Answers(Framed):
    """Answers that make a frame."""

    def answer_rows(self) -> list[AnswerRow]:
        raise NotImplementedError

    @property
    def frame_columns(self) -> Mapping[str, Sequence[Any]]:
        return answer_columns(self.answer_rows())

    @property
    def frame_types(self) -> Mapping[str, type]:
        from calibrant.bench.core.registry import benchmarks

        metrics = {metric.key: float for benchmark in benchmarks() for metric in benchmark.metrics.columns}
        return metrics | {column.name: column.kind for column in ANSWER_COLUMNS}


V = TypeVar("V")


class Verdicts(_Answers, Iterator[V], Generic[V]):
    """Verdicts one at a time, each made when it is taken; `to_frame` makes a frame of those not yet taken.

    scored: pairs of an item and the verdict on an answer to it
    """

    def __init__(self, scored: Iterator[tuple[Any, V]]) -> None:
        self._scored = scored

    def __iter__(self) -> Verdicts[V]:
        return self

    def __next__(self) -> V:
        return next(self._scored)[1]

    def picture(self) -> Picture:
        """Return how to take them: showing them takes none."""
        return Picture(repr(self).strip("<>"))

    def __repr__(self) -> str:
        return "<Verdicts: iterate, or to_frame()>"

    def answer_rows(self) -> list[AnswerRow]:
        """Return the answers that were not yet taken; of k answers to an item the samples are numbered."""
        from calibrant.bench.core.registry import benchmark_of_item
        from calibrant.bench.core.scoring import AnswerContext

        rows, samples = [], Counter[str]()
        for item, verdict in self._scored:
            of = benchmark_of_item(item)
            setting = of.metrics.row_group(item.setting, "")
            context = AnswerContext("", "", "", 0, item.id, setting, item.stratum, benchmark=of.name)
            context = context._replace(sample=samples[item.id])
            samples[item.id] += 1
            rows.append(AnswerRow(context, of.functions.record(verdict), getattr(verdict, "failure", None)))
        return rows


class Records(list["Record"], _Answers):
    """Records of a run; a list, and a frame of answers."""

    def answer_rows(self) -> list[AnswerRow]:
        """Return the answers with their scores."""
        from calibrant.bench.report.sources import context_of, score_of

        return [AnswerRow(context_of(record), score_of(record), None) for record in self]

    def picture(self) -> Picture:
        """Return the answers, without their metrics."""
        frame = self.frame_columns
        columns = {column.name: frame[column.name] for column in ANSWER_COLUMNS}
        filled = {name: values for name, values in columns.items() if any(value is not None for value in values)}
        return table_picture(repr(self).strip("<>"), filled)

    def __repr__(self) -> str:
        outcomes = Counter(record.outcome for record in self)
        numbers = ", ".join(f"{number} {outcome}" for outcome, number in sorted(outcomes.items()))
        return f"<Records: {plural(len(self), 'answers')}{f': {numbers}' if numbers else ''}>"


# --- Rates of systems, collected from folders of runs and scored files ------------------------------------------------


@dataclass(frozen=True)
class CollectedTables:
    """Tables of all benchmarks in their order, and what they do not cover.

    notes: on how readings decide, and on draws of equally good answers
    """

    tables: Mapping[str, ResultTable]
    notes: tuple[str, ...]
    coverage: AttributionCoverage
    unanswered: UnansweredCounts
    excluded: Excluded

    def omissions(self, *, with_coverage: bool) -> Iterator[str]:
        """Yield what was left out, in lines; with_coverage: also answers without an attribution."""
        yield from chain(self.coverage.lines() if with_coverage else (), self.unanswered.lines(), self.excluded.lines())


def collect_tables(
    sources: Sequence[Path],
    embedded: Iterable[Answer] = (),
    *,
    by: Grouping,
    pools: Sequence[Path] = (),
    level: float | None = None,
    handling: InvalidHandling = InvalidHandling.PUBLISHED,
    needs_attribution: bool = False,
    check: Callable[[MetricSet], MetricSet] = lambda metrics: metrics,
) -> CollectedTables:
    """Collect the rates of folders of runs and of files that `calibrant score` wrote.

    embedded: answers besides; pools: whose items attributions are made for; level: posterior from which noisy readings
    decide; check: refuses metrics before the work
    """
    from calibrant.bench.core.attribution import decision_notes
    from calibrant.bench.core.registry import NAMES, benchmark
    from calibrant.bench.report.pool_attribution import AttributionCoverage, add_attributions, decided_at
    from calibrant.bench.report.rows import with_chosen
    from calibrant.bench.report.sources import scored_answers
    from calibrant.bench.report.table import DrawnTies, Excluded, ResultTable, UnansweredCounts

    tables: dict[str, ResultTable] = {}
    unanswered, ties = UnansweredCounts(), DrawnTies()
    coverage, notes = AttributionCoverage(), dict[str, None]()
    of_sources, excluded = scored_answers(sources, with_steps=bool(pools), with_excluded=True), Excluded()
    answers = excluded.keep(chain(of_sources, embedded))
    for context, score in decided_at(add_attributions(answers, pools), level):
        coverage.count(context, score)
        notes |= dict.fromkeys(decision_notes((score,)) if needs_attribution else ())
        if context.benchmark not in tables:
            metrics = check(benchmark(context.benchmark).metrics)
            tables[context.benchmark] = ResultTable(metrics, by=by, handling=handling)
        for part in with_chosen((context, score)):
            tables[context.benchmark].add(*part)
        unanswered.add(context)
        ties.add(context, score)
    notes |= dict.fromkeys(ties.lines())
    excluded.count_in(tables)
    in_order = {name: tables[name] for name in NAMES if name in tables}
    return CollectedTables(in_order, tuple(notes), coverage, unanswered, excluded)


@dataclass(frozen=True)
class RateTable(Framed):
    """Rates of systems as `calibrant table` prints them.

    tables: by benchmark; notes: what they do not cover, and what was left out, in lines
    """

    tables: Mapping[str, ResultTable]
    notes: tuple[str, ...]

    def __repr__(self) -> str:
        number = sum(1 for table in self.tables.values() for _ in table.read_rows())
        return f"<RateTable: {plural(number, 'rows')} of {', '.join(self.tables) or 'no benchmark'}>"

    def __str__(self) -> str:
        """Return the tables as text."""
        from calibrant.bench.pages.aligned import table_text

        texts = [
            table_text(table.cells(), table.metrics, view=None, width=120, line_width=120).text
            for table in self.tables.values()
        ]
        return "\n\n".join([*texts, *self.notes])

    def picture(self) -> Picture:
        """Return the printed tables."""
        return Picture(repr(self).strip("<>"), code=str(self))

    @property
    def frame_columns(self) -> Mapping[str, Sequence[Any]]:
        """A row for each metric of each row of the table."""
        rows = [row for name, table in self.tables.items() for row in _rate_rows(name, table)]
        return {column.name: [row[column.name] for row in rows] for column in RATE_COLUMNS}

    @property
    def frame_types(self) -> Mapping[str, type]:
        return {column.name: column.kind for column in RATE_COLUMNS}


def _rate_rows(benchmark: str, table: ResultTable) -> Iterator[dict[str, Any]]:
    from calibrant.bench.report.table import readers_differ

    rows = [row for row, _ in table.read_rows()]
    hidden = {"chosen"} if any(map(readers_differ, rows)) else {metric.key for metric in READERS}
    for row in rows:
        head: dict[str, Any] = {
            "benchmark": benchmark,
            "setting": row.setting,
            "stratum": row.stratum or None,
            "pool": row.pool,
        }
        head |= {"system": row.system, "items": row.num_items, "answers": row.num_answers}
        yield from (head | rate for rate in _rates_of(row) if rate["metric"] not in hidden)


def _rates_of(row: Row) -> Iterator[dict[str, Any]]:
    for metric in row.columns:
        rate = row.rates[metric.key]
        if rate.text == UNDEFINED:
            continue
        interval = None if rate.text == SUPPRESSED else row.interval(metric.key)
        low, high = (None, None) if interval is None else interval
        label = {"metric": metric.key, "heading": metric.heading, "value": rate.value, "low": low, "high": high}
        yield label | {"defined": rate.num_items}


def column_table(columns: Iterable[FrameColumn]) -> str:
    """Return a Markdown table of columns, for a page of docs/names."""
    kinds = {str: "text", int: "whole number", float: "number"}
    rows = [f"| `{column.name}` | {kinds[column.kind]} | {column.meaning} |" for column in columns]
    return "\n".join(["| column | type | meaning |", "|---|---|---|", *rows])
