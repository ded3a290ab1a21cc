"""Answers and rates as tidy data frames, a row for each answer or for each metric of a system; and their columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Any, Generic, NamedTuple, TypeVar, get_args, get_type_hints

import msgspec
from msgspec import Meta

from calibrant.bench.core.metrics import READERS, SUPPRESSED, UNDEFINED, InvalidHandling
from calibrant.dsl.errors import CalibrantError, short_repr
from calibrant.dsl.pictures import Picture, Pictured, table_picture
from calibrant.dsl.text import plural

if TYPE_CHECKING:
    from pathlib import Path

    from calibrant.bench.core.metrics import MetricSet
    from calibrant.bench.core.scoring import AnswerContext
    from calibrant.bench.report.pool_attribution import AttributionCoverage
    from calibrant.bench.report.rows import Answer, Grouping
    from calibrant.bench.report.table import Excluded, ResultTable, UnansweredCounts
    from calibrant.bench.runs.records import Record

BACKENDS = ("pandas", "polars", "pyarrow", "modin")  # packages of frames that messages name; narwhals may know more


class Framed(Pictured):
    """A result that can be a data frame; notebooks display its first rows."""

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
            type_by_column = self.frame_types
            # in the order of `columns`: the frame takes its order from the schema
            schema = {name: types[type_by_column[name]] for name in columns if name in type_by_column}
            return narwhals.from_dict(columns, schema or None, backend=backend).to_native()
        except ImportError as error:
            raise CalibrantError(
                f"a frame of {short_repr(backend)} needs narwhals (pip install 'calibrant[frames]') and that package:"
                f" {error}"
            ) from None
        except (ValueError, AttributeError):
            if backend in BACKENDS:  # the columns do not fit their types
                raise
            raise CalibrantError(f"backend is {short_repr(backend)}; allowed: {', '.join(BACKENDS)}") from None

    def picture(self) -> Picture:
        """Return the first rows of the frame."""
        return table_picture(repr(self).strip("<>"), self.frame_columns)

    @property
    def frame_types(self) -> Mapping[str, type]:
        """Column -> str, int or float, if fixed; the types of other columns follow from their values."""
        return {}


# --- Columns of the frames: each field is a column; docs/names prints its description ---------------------------------
class AnswerColumns(msgspec.Struct, frozen=True):
    """First columns of a frame of answers; after them each metric of the benchmark by its key (docs/metrics.md)."""

    benchmark: Annotated[str, Meta(description="name of the benchmark")]
    item: Annotated[str, Meta(description="id of the item")]
    setting: Annotated[str, Meta(description="condition of the item, by which tables group rows")]
    stratum: Annotated[str, Meta(description="finer group, given by the generator; empty if there is none")]
    pool: Annotated[str | None, Meta(description="name of the pool (only for answers of `run`)")]
    system: Annotated[str | None, Meta(description="method or model that answered (only of `run`)")]
    options: Annotated[str | None, Meta(description="options of the method as JSON (only of `run`)")]
    sample: Annotated[int, Meta(description="index among the system's answers to the item, from 0")]
    outcome: Annotated[str | None, Meta(description="found, impossible, out_of_budget or crashed (only of `run`)")]
    seconds: Annotated[float | None, Meta(description="time that the answer took (only of `run`)")]
    failure: Annotated[str | None, Meta(description="why the answer is wrong, in one line (only of `score_many`)")]
    right: Annotated[
        float | None, Meta(description="1 if the answer is right, 0 if not; for tied answers the share that is right")
    ]


class RateColumns(msgspec.Struct, frozen=True):
    """Columns of a frame of rates: a row for each metric of each row of the table; undefined metrics have no row."""

    benchmark: Annotated[str, Meta(description="name of the benchmark")]
    setting: Annotated[str, Meta(description="condition of the items, by which tables group rows")]
    stratum: Annotated[str | None, Meta(description='finer group, with `by="stratum"`')]
    pool: Annotated[str, Meta(description="name of the pool, or how many there are")]
    system: Annotated[str, Meta(description="method or model, with the options in which its rows differ")]
    group: Annotated[str | None, Meta(description="group of the study's participants, for answers of people")]
    items: Annotated[int, Meta(description="number of items")]
    answers: Annotated[int, Meta(description="number of answers")]
    metric: Annotated[str, Meta(description="key of the metric (docs/metrics.md)")]
    heading: Annotated[str, Meta(description="heading of the metric in printed tables")]
    value: Annotated[
        float | None,
        Meta(description="mean over items; missing for a conditional metric over 1 to 5 items"),
    ]
    low: Annotated[float | None, Meta(description="lower end of the 95 % interval; missing if there is none")]
    high: Annotated[float | None, Meta(description="upper end of the interval")]
    defined: Annotated[int, Meta(description="number of items for which the metric is defined")]


class AnswerRow(NamedTuple):
    """An answer with its score. failure: why the answer is wrong, in one line; None if right or unknown."""

    context: AnswerContext
    score: Mapping[str, Any]
    failure: str | None


def answer_columns(rows: Sequence[AnswerRow]) -> dict[str, list[Any]]:
    """Return the columns of a frame of answers, with None for the metrics of other benchmarks."""
    from calibrant.bench.core.metrics import ObservationReader
    from calibrant.bench.core.registry import benchmark

    readers: dict[str, ObservationReader] = {}
    for context, _, _ in rows:
        if context.benchmark not in readers:
            readers[context.benchmark] = ObservationReader(benchmark(context.benchmark).metrics)
    keys = {metric.key: None for reader in readers.values() for metric in reader.metrics.columns}
    columns: dict[str, list[Any]] = {name: [] for name in (*AnswerColumns.__struct_fields__, *keys)}
    for context, score, failure in rows:
        reader = readers[context.benchmark]
        row = AnswerColumns(
            benchmark=context.benchmark,
            item=context.instance,
            setting=context.setting,
            stratum=context.stratum,
            pool=context.pool or None,
            system=context.system or None,
            options=msgspec.json.encode(context.config, order="sorted").decode() if context.system else None,
            sample=context.sample,
            outcome=context.outcome,
            seconds=context.seconds,
            failure=failure,
            right=reader.metrics.success.rate(score, context.setting),
        )
        values, _ = reader.read_values(context.setting, score)
        cells = dict(zip((metric.key for metric in reader.columns), values, strict=True)) | msgspec.structs.asdict(row)
        for name, column in columns.items():
            column.append(cells.get(name))
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
        return metrics | column_types(AnswerColumns)


V = TypeVar("V")


class Verdicts(_Answers, Iterator[V], Generic[V]):
    """Iterator of verdicts, each computed when it is taken; `to_frame` returns a frame of those not yet taken.

    scored: pairs (item, verdict on an answer to it)
    """

    def __init__(self, scored: Iterator[tuple[Any, V]]) -> None:
        self._scored = scored

    def __iter__(self) -> Verdicts[V]:
        return self

    def __next__(self) -> V:
        return next(self._scored)[1]

    def picture(self) -> Picture:
        """Return `repr` as text: displaying verdicts would consume them."""
        return Picture(repr(self).strip("<>"))

    def __repr__(self) -> str:
        return "<Verdicts: iterate, or to_frame()>"

    def answer_rows(self) -> list[AnswerRow]:
        """Return the answers that were not yet taken; several answers to an item are numbered as samples."""
        from calibrant.bench.core.registry import benchmark_of_item
        from calibrant.bench.core.scoring import AnswerContext

        rows, samples = [], Counter[str]()
        for item, verdict in self._scored:
            bench = benchmark_of_item(item)
            setting = bench.metrics.row_group(item.setting, "")  # "": no digest, the pool is unknown
            context = AnswerContext(
                system="",
                pool="",
                pool_digest="",
                pool_size=0,
                instance=item.id,
                setting=setting,
                stratum=item.stratum,
                sample=samples[item.id],
                benchmark=bench.name,
            )
            samples[item.id] += 1
            rows.append(AnswerRow(context, bench.functions.record(verdict), getattr(verdict, "failure", None)))
        return rows


class Records(list["Record"], _Answers):
    """Records of a run; a list, and a frame of answers."""

    def answer_rows(self) -> list[AnswerRow]:
        """Return the answers with their scores."""
        from calibrant.bench.report.sources import context_of, score_of

        return [AnswerRow(context_of(record), score_of(record), None) for record in self]

    def picture(self) -> Picture:
        """Return a picture of the answers without their metrics."""
        frame = self.frame_columns
        columns = {name: frame[name] for name in AnswerColumns.__struct_fields__}
        filled = {name: values for name, values in columns.items() if any(value is not None for value in values)}
        return table_picture(repr(self).strip("<>"), filled)

    def __repr__(self) -> str:
        outcomes = Counter(record.outcome for record in self)
        numbers = ", ".join(f"{number} {outcome}" for outcome, number in sorted(outcomes.items()))
        return f"<Records: {plural(len(self), 'answers')}{f': {numbers}' if numbers else ''}>"


# --- Rates of systems, collected from folders of runs and scored files ------------------------------------------------


@dataclass(frozen=True)
class CollectedTables:
    """Tables by benchmark, in the order of the registry, and what they do not cover.

    notes: the posterior at which noisy readings decide, and the error of sampling among equally good answers
    """

    tables: Mapping[str, ResultTable]
    notes: tuple[str, ...]
    coverage: AttributionCoverage
    unanswered: UnansweredCounts
    excluded: Excluded

    def omissions(self, *, with_coverage: bool) -> Iterator[str]:
        """Yield lines on what the tables do not cover; with_coverage: also on answers without an attribution."""
        yield from chain(self.coverage.lines() if with_coverage else (), self.unanswered.lines(), self.excluded.lines())


def collect_tables(
    sources: Sequence[Path],
    extra_answers: Iterable[Answer] = (),
    *,
    by: Grouping,
    pools: Sequence[Path] = (),
    level: float | None = None,
    handling: InvalidHandling = InvalidHandling.PUBLISHED,
    needs_attribution: bool = False,
    select_metrics: Callable[[MetricSet], MetricSet] = lambda metrics: metrics,
) -> CollectedTables:
    """Collect the rates of folders of runs and of files of `calibrant score`.

    extra_answers: further answers, not read from sources; pools: pool files whose answers get attributions
    level: least posterior at which noisy readings decide; by: how rows are grouped; handling: of invalid answers
    needs_attribution: whether a shown metric is one of attributions; adds notes on when the readings decide
    select_metrics: called before a benchmark's first answer is tabulated: metrics -> metrics to tabulate, or raises
    """
    from calibrant.bench.core.attribution import decision_notes
    from calibrant.bench.core.registry import NAMES, benchmark
    from calibrant.bench.report.pool_attribution import AttributionCoverage, add_attributions, apply_decision_level
    from calibrant.bench.report.rows import with_tie_choice
    from calibrant.bench.report.sources import scored_answers
    from calibrant.bench.report.table import DrawnTies, Excluded, ResultTable, UnansweredCounts

    tables: dict[str, ResultTable] = {}
    unanswered, ties = UnansweredCounts(), DrawnTies()
    coverage, notes = AttributionCoverage(), dict[str, None]()
    excluded = Excluded()
    from_sources = scored_answers(sources, with_steps=bool(pools), with_excluded=True)
    answers = excluded.filter_out(chain(from_sources, extra_answers))
    for context, score in apply_decision_level(add_attributions(answers, pools), level):
        coverage.count(context, score)
        if needs_attribution:
            notes |= dict.fromkeys(decision_notes((score,)))  # a dictionary is an ordered set
        if context.benchmark not in tables:
            metrics = select_metrics(benchmark(context.benchmark).metrics)
            tables[context.benchmark] = ResultTable(metrics, by=by, handling=handling)
        for answer in with_tie_choice((context, score)):
            tables[context.benchmark].add(*answer)
        unanswered.add(context)
        ties.add(context, score)
    notes |= dict.fromkeys(ties.lines())
    excluded.count_in(tables)
    in_order = {name: tables[name] for name in NAMES if name in tables}
    return CollectedTables(in_order, tuple(notes), coverage, unanswered, excluded)


@dataclass(frozen=True)
class RateTable(Framed):
    """Rates of systems as `calibrant table` prints them.

    tables: benchmark -> table; notes: lines on how they were computed, and on what they do not cover
    """

    tables: Mapping[str, ResultTable]
    notes: tuple[str, ...]

    def __repr__(self) -> str:
        number = sum(1 for table in self.tables.values() for _ in table.read_rows())
        return f"<RateTable: {plural(number, 'rows')} of {', '.join(self.tables) or 'no benchmark'}>"

    def __str__(self) -> str:
        """Return the tables as text."""
        from calibrant.bench.pages.terminal_tables import table_text

        texts = [
            table_text(table.cells(), table.metrics, view=None, width=120, line_width=120).text
            for table in self.tables.values()
        ]
        return "\n\n".join([*texts, *self.notes])

    def picture(self) -> Picture:
        """Return a picture of the printed tables."""
        return Picture(repr(self).strip("<>"), code=str(self))

    @property
    def frame_columns(self) -> Mapping[str, Sequence[Any]]:
        """A row for each metric of each row of the table."""
        rows = [row for name, table in self.tables.items() for row in _rate_rows(name, table)]
        return {name: [getattr(row, name) for row in rows] for name in RateColumns.__struct_fields__}

    @property
    def frame_types(self) -> Mapping[str, type]:
        return column_types(RateColumns)


def _rate_rows(benchmark: str, table: ResultTable) -> Iterator[RateColumns]:
    from calibrant.bench.report.table import readers_differ

    rows = [row for row, _ in table.read_rows()]
    # the chosen reader's rate is that of right answers; those of the others too if all answers are read alike
    hidden = {"chosen"} if any(map(readers_differ, rows)) else {metric.key for metric in READERS}
    for row in rows:
        for metric in row.columns:
            rate = row.rates[metric.key]
            if rate.text == UNDEFINED or metric.key in hidden:
                continue
            interval = None if rate.text == SUPPRESSED else row.interval(metric.key)
            low, high = (None, None) if interval is None else interval
            yield RateColumns(
                benchmark=benchmark,
                setting=row.setting,
                stratum=row.stratum or None,
                pool=row.pool,
                system=row.label,
                group=row.people_group or None,
                items=row.num_items,
                answers=row.num_answers,
                metric=metric.key,
                heading=metric.heading,
                value=rate.value,
                low=low,
                high=high,
                defined=rate.num_items,
            )


def column_types(struct: type[msgspec.Struct]) -> dict[str, type]:
    """Return field -> str, int or float; the first type of a union, so that of `float | None` is float."""
    return {name: (get_args(hint) or (hint,))[0] for name, hint in get_type_hints(struct).items()}
