"""Command `calibrant table`."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import typer

from calibrant.bench.commands import options as commands_options
from calibrant.bench.commands.guard import READS
from calibrant.bench.core.options import GivenOptions
from calibrant.bench.help import INPUT, VIEW
from calibrant.bench.terminal import json_text

if TYPE_CHECKING:
    from calibrant.bench.core.metrics import MetricSet
    from calibrant.bench.pools.capabilities import StoredResults
    from calibrant.bench.report.table import ResultTable
    from calibrant.dsl.answer_text import Thoughts

ATTRIBUTION = "attribution"
"""The view of the four classes of answers: earned, missed, lucky and short."""

_NOT_WITH_CONSISTENCY = ("--official", "--columns", "--decided-at", "--attribution", "--by")
AttributionOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--attribution",
        help="How many answers the evidence had decided: earned, missed, lucky, short. Runs on ReplaySCM and"
        " CauSim need --pool.",
        rich_help_panel=VIEW,
    ),
]
ConsistencyOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--consistency", metavar="FILE", help="Compare answers to copies of a pool of variants.", rich_help_panel=VIEW
    ),
    READS,
]


@commands_options.with_options("table")
def table(
    given: GivenOptions,
    sources: commands_options.RunSources = None,
    official: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="Score the model results that this pool file embeds, and compare; may be repeated.",
            rich_help_panel=INPUT,
        ),
        READS,
    ] = None,
    by: Annotated[
        Literal["pool", "setting", "stratum"],
        typer.Option(help="What gets a row of its own for each system.", rich_help_panel=VIEW),
    ] = "pool",
    columns: Annotated[
        str | None,
        typer.Option(
            metavar="VIEW|NAME,...",
            help="Which rates: a view (of ReplaySCM replay, structure or funnel), as many as fit the width; all; or"
            " columns by name. [default: the benchmark's first view]",
            rich_help_panel=VIEW,
        ),
    ] = None,
    attribution: AttributionOption = False,
    pools: commands_options.PoolsOption = None,
    decided_at: commands_options.DecidedAt = None,
    consistency: ConsistencyOption = None,
    thoughts: commands_options.ThoughtsChoice = None,
    as_json: commands_options.AsJson = False,
) -> int:
    """Print how often each system is right, in the shape of the published tables.

    A conditional rate over 1 to 5 instances is shown as *, a rate over none as a dash. Systems that answered instances
    several times get a table of their means, pass@k and majority too. --official lists every stored evaluation that
    comes out otherwise here, and exits with 1 if there is one.

    --json gives one object: rows (all columns; null for what is undefined or suppressed), samples, incomplete and more.
    """
    _check_sources(sources, official, thoughts)
    if consistency is not None:
        _refuse_with_consistency(given, official, columns, decided_at, attribution, by != "pool")
        _print_consistency(sources or (), consistency, pools or (), as_json=as_json)
        return 0
    if commands_options.print_set_table(sources or (), as_json=as_json):
        return 0
    if given.values.get("trajectory"):
        _refuse_with_trajectory(official, by, columns, decided_at, attribution=attribution)
        _print_trajectories(sources or (), given, pools or (), as_json=as_json)
        return 0
    needed = _needs_attribution(columns, pools, attribution=attribution, as_json=as_json)
    commands_options.require_level(decided_at, attribution=needed)
    stored = _stored_results(official or (), thoughts or "strip")
    print_table(
        sources or (),
        given,
        stored=stored,
        by=by,
        columns=ATTRIBUTION if attribution and columns is None else columns,
        pools=pools or (),
        level=decided_at,
        as_json=as_json,
        needs_attribution=needed,
        again=_same_table(sources or (), given, official, pools, by, decided_at),
    )
    return 1 if any(results.disagreements for results in stored.values()) else 0


def _check_sources(sources: Sequence[Path] | None, official: Sequence[Path] | None, thoughts: str | None) -> None:
    """Raise `typer.BadParameter` if there is nothing to tabulate, or if --thoughts is given without --official."""
    if not sources and not official:
        raise typer.BadParameter("folders of runs, or --official FILE", param_hint="DIR...")
    if not official:
        commands_options.refuse_options(
            {"--thoughts": thoughts}, "it is about texts that pool files embed: give --official"
        )


def _stored_results(official: Sequence[Path], thoughts: Thoughts) -> dict[Path, StoredResults]:
    """Return the results that official files embed, by file."""
    from calibrant.bench.core.registry import benchmark_of
    from calibrant.bench.pools.capabilities import STORED_RESULTS

    return {path: benchmark_of(path).require(STORED_RESULTS)(path, thoughts) for path in official}


def _same_table(
    sources: Sequence[Path],
    choices: GivenOptions,
    official: Sequence[Path] | None,
    pools: Sequence[Path] | None,
    by: str,
    decided_at: float | None,
) -> str:
    """Return the command for this table without --columns and --attribution; hints add `--columns all` or `--json`."""
    option_values: dict[str, Sequence[object] | None] = {
        "--official": official,
        "--pool": pools,
        "--by": [by] if by != "pool" else (),
        "--decided-at": [decided_at] if decided_at is not None else (),
    }
    option_values |= {f"--{name}": [str(value)] for name, value in choices.values.items() if name == "means"}
    options = [
        word for option, values in option_values.items() for value in values or () for word in (option, str(value))
    ]
    return shlex.join(["calibrant", "table", *map(str, sources), *options])


def _refuse_with_trajectory(
    official: object, by: str, columns: object, decided_at: object, *, attribution: bool
) -> None:
    """Raise `typer.BadParameter` if an option for the table of rates is given with --trajectory."""
    inapplicable = {
        "--official": official,
        "--columns": columns,
        "--decided-at": decided_at,
        "--attribution": attribution,
    }
    commands_options.refuse_options(
        inapplicable | {"--by": by != "pool"}, "--trajectory has rows and columns of its own"
    )


def _print_trajectories(
    sources: Sequence[Path], choices: GivenOptions, pools: Sequence[Path], *, as_json: bool
) -> None:
    """Print a table of the runs on these pools, with means by step, and how many runs it leaves out."""
    from calibrant.bench.core.registry import one_benchmark
    from calibrant.bench.pages.terminal_tables import aligned
    from calibrant.bench.report.capabilities import TRAJECTORIES
    from calibrant.bench.report.sources import items_of_pools, scored_answers, transcripts

    choices.refuse_foreign({context.benchmark for context, _ in scored_answers(sources)})
    if not pools:
        raise typer.BadParameter("steps are replayed: give the pools of the runs", param_hint="--pool")
    bench = one_benchmark(pools)
    table = bench.require(TRAJECTORIES)(transcripts(sources, pools), items_of_pools(bench.name, pools))
    if as_json:
        typer.echo(json_text(table.to_dict()))
        return
    typer.echo(aligned(list(table.headings), [row.cells() for row in table.rows]))
    if table.num_uncounted:
        typer.echo(f"{table.num_uncounted} runs left out: the mechanisms left are not counted", err=True)


def _refuse_with_consistency(choices: GivenOptions, *values: object) -> None:
    """Raise `typer.BadParameter` if an option for another table is given with --consistency.

    values: those of the options in _NOT_WITH_CONSISTENCY, in this order
    """
    options = dict(zip(_NOT_WITH_CONSISTENCY, values, strict=True))
    options |= choices.by_flag
    commands_options.refuse_options(
        {option: bool(value) for option, value in options.items()}, "it has no effect on --consistency"
    )


def _print_consistency(sources: Sequence[Path], variants: Path, pools: Sequence[Path], *, as_json: bool) -> None:
    """Print the table of answers to copies: rates clustered by original, and which changes flip answers.

    pools: files of the original items, from which answers without an attribution get one
    """
    from calibrant.bench.report.pool_attribution import add_attributions
    from calibrant.bench.report.sources import scored_answers
    from calibrant.bench.terminal import stated_width
    from calibrant.bench.variants import consistency_lines, measure_consistency, read_maps

    answers = add_attributions(scored_answers(sources), pools)
    rows = measure_consistency(answers, variants, read_maps(variants))
    if as_json:
        typer.echo(json_text([row.to_dict() for row in rows]))
        return
    for line in consistency_lines(rows, stated_width(sys.stdout)):
        typer.echo(line)


def _needs_attribution(columns: str | None, pools: Sequence[Path] | None, *, attribution: bool, as_json: bool) -> bool:
    """Return whether the table needs attributions, by --attribution or by a column of them.

    `typer.BadParameter` if --attribution is given with columns that have none, or --pool where nothing uses it.
    """
    from calibrant.bench.core.attribution import ATTRIBUTION_METRICS
    from calibrant.bench.pages.terminal_tables import ALL
    from calibrant.dsl.text import known_names, nearest_names

    attribution_names = {name for column in ATTRIBUTION_METRICS for name in (column.key, column.heading)} | {
        ATTRIBUTION
    }
    has_column = columns is not None and not attribution_names.isdisjoint(part.strip() for part in columns.split(","))
    if attribution and columns not in (None, ALL) and not has_column:
        for part in map(str.strip, (columns or "").split(",")):
            if part not in attribution_names and nearest_names(part, attribution_names, 1):
                names_text = known_names(part, [column.heading for column in ATTRIBUTION_METRICS])
                raise typer.BadParameter(f"unknown column '{part}'; {names_text}", param_hint="--columns")
        examples = "earned,missed,lucky,short"
        reason = f"none of these columns is about it: leave --columns out, or add {examples}, or give all"
        raise typer.BadParameter(reason, param_hint="--attribution")
    if pools and not (attribution or has_column or as_json or columns == ALL):
        raise typer.BadParameter("pools are read for attributions: give --attribution too", param_hint="--pool")
    return attribution or has_column


def print_table(
    sources: Sequence[Path],
    given: GivenOptions = GivenOptions("table", {}),  # noqa: B008  # frozen
    *,
    stored: Mapping[Path, StoredResults] = MappingProxyType({}),
    by: str = "pool",
    columns: str | None = None,
    pools: Sequence[Path] = (),
    level: float | None = None,
    as_json: bool = False,
    needs_attribution: bool = False,
    again: str = "",
) -> None:
    """Print a table of rates for each benchmark on standard output, and what it does not cover on standard error.

    stored: results that official files embed, by file; they are counted too, and their disagreements are printed
    pools: files of the items for which attributions are computed, where records have none
    level: posterior from which noisy readings decide
    again: a command that prints the same table, for hints
    """
    from calibrant.bench.core.metrics import InvalidHandling
    from calibrant.bench.core.names import FIRST
    from calibrant.bench.core.registry import benchmark
    from calibrant.bench.report.rows import Grouping
    from calibrant.bench.report.table import ResultTable
    from calibrant.bench.report.tidy import collect_tables

    collected = collect_tables(
        sources,
        chain.from_iterable(results.answers() for results in stored.values()),
        by=Grouping(by),
        pools=pools,
        level=level,
        handling=InvalidHandling(given.values.get("means", InvalidHandling.PUBLISHED)),
        needs_attribution=needs_attribution,
        select_metrics=lambda metrics: _check_columns(metrics, columns),
    )
    if collected.tables:
        given.refuse_foreign(collected.tables)
    if needs_attribution:
        collected.coverage.refuse_bare_pools(pools)
    tables = collected.tables or {FIRST: ResultTable(_check_columns(benchmark(FIRST).metrics, columns))}
    columns_of = _columns_of(tables, columns)
    if as_json:
        _print_json(tables.values(), [*stored.values()], [*collected.notes])
    else:
        for index, (name, table) in enumerate(tables.items()):
            if len(tables) > 1:
                typer.echo(("\n" if index else "") + benchmark(name).title)
            if columns_of[name] == "" != columns:
                typer.echo("none of these columns")
            else:
                print_rows(table, columns=columns_of[name], again=again)
        for note in collected.notes:
            typer.echo(note)
        for path, results in stored.items():
            _print_comparison(path, results)
    for line in collected.omissions(with_coverage=needs_attribution):
        typer.echo(line, err=True)


def _print_json(tables: Collection[ResultTable], stored: Sequence[StoredResults], notes: list[str]) -> None:
    for table in tables:
        _print_incomplete(table)
    printed = {
        "rows": [row for table in tables for row in table.to_json()],
        "samples": [row.to_dict() for table in tables for row in table.sample_rows()],
        "incomplete": [line for table in tables for line in table.incomplete()],
        "disagreements": [disagreement._asdict() for results in stored for disagreement in results.disagreements],
    }
    typer.echo(json_text(printed | ({"notes": notes} if notes else {})))


def _check_columns(metrics: MetricSet, columns: str | None) -> MetricSet:
    """Return these metrics; `UnknownColumnError` if a column is none of any benchmark, before anything is counted."""
    from calibrant.bench.core.registry import benchmarks
    from calibrant.bench.pages.terminal_tables import UnknownColumnError

    names = _column_names(columns)
    for name in names:
        if not any(_has_column(bench.metrics, name, is_only=len(names) == 1) for bench in benchmarks()):
            allowed = UnknownColumnError.allowed_of(metrics)
            raise UnknownColumnError(name, allowed)
    return metrics


def _column_names(columns: str | None) -> list[str]:
    return [*filter(None, map(str.strip, (columns or "").split(",")))]


def _has_column(metrics: MetricSet, name: str, *, is_only: bool) -> bool:
    """Return whether a benchmark has a column of this name, or a view of it.

    is_only: whether it is the only name given; a view is not combined with others
    """
    from calibrant.bench.pages.terminal_tables import ALL, REASONS_VIEW, named_column

    is_view = is_only and name in (*metrics.views, REASONS_VIEW, ALL)
    return is_view or named_column(metrics, name) is not None


def _columns_of(tables: Mapping[str, ResultTable], columns: str | None) -> dict[str, str | None]:
    """Return benchmark -> the given columns that it has, None if none are given.

    `UnknownColumnError` for a column that none of the tables has.
    """
    from calibrant.bench.core.registry import benchmarks
    from calibrant.bench.pages.terminal_tables import UnknownColumnError

    if columns is None:
        return dict.fromkeys(tables)
    names = _column_names(columns)
    has = partial(_has_column, is_only=len(names) == 1)
    for name in names:
        if not any(has(table.metrics, name) for table in tables.values()):
            owners = [bench.title for bench in benchmarks() if has(bench.metrics, name)]
            titles = ", ".join(bench.title for bench in benchmarks() if bench.name in tables)
            allowed = UnknownColumnError.allowed_of(next(iter(tables.values())).metrics)
            more = f" of {titles}: it is one of {', '.join(owners)}" if owners else ""
            raise UnknownColumnError(name, allowed, more)
    return {name: ",".join(c for c in names if has(table.metrics, c)) for name, table in tables.items()}


def print_rows(collected: ResultTable, *, columns: str | None = None, err: bool = False, again: str = "") -> None:
    """Print the rows of a table, then those on several samples; what was left out is listed on standard error.

    columns: a view, or names separated by commas; None: the benchmark's first view
    err: whether the rows go to standard error too
    again: a command that prints the same table, for the hint on how to see the rest
    """
    from calibrant.bench.core.metrics import UNDEFINED
    from calibrant.bench.pages.terminal_tables import LABELS, fit_columns, table_text
    from calibrant.bench.report.table import attribution_legend, sample_headings, tie_legend
    from calibrant.bench.terminal import is_quiet, stated_width, width_of

    _print_incomplete(collected)
    stream = sys.stderr if err else sys.stdout
    width = width_of(stream)
    cells = collected.cells()
    table = table_text(cells, collected.metrics, view=columns, width=width, line_width=stated_width(stream))
    typer.echo(table.text, err=err)
    key_by_heading = {metric.heading: metric.key for metric in collected.metrics.columns}
    with_values = [
        heading
        for heading in table.included
        if any(row.get(key_by_heading.get(heading, ""), UNDEFINED) != UNDEFINED for row in cells)
    ]
    legend = [] if is_quiet.get() else [*attribution_legend(with_values, width), *tie_legend(collected.chosen, width)]
    for line in legend:
        typer.echo(line, err=True)
    if _lacks_structure(collected.metrics, columns, cells):
        typer.echo("no answer was scored with its structure; `calibrant score --structure` counts it", err=True)
    if table.left_out:
        _print_left_out(table.left_out, width, f"{again} --columns all" if again else "")
    sampled = collected.sample_rows()
    if sampled:
        headings = sample_headings(sampled[0], collected.metrics.rights)
        rows = [row.cells_by_name() for row in sampled]
        several = fit_columns(headings, rows, labels={*LABELS, "way"}, needed=2, width=width)  # n and a rate
        typer.echo(f"\nSeveral samples, with 95% intervals over items\n{several.text}", err=err)
        if several.left_out:
            _print_left_out(several.left_out, width, f"{again} --json" if again else "")


def _lacks_structure(metrics: MetricSet, columns: str | None, rows: Sequence[Mapping[str, str]]) -> bool:
    """Return whether a column of the view `structure` was requested, and no answer was scored with its structure."""
    view = metrics.views.get("structure")
    requested = set(_column_names(columns))
    if view is None or requested.isdisjoint(
        {"structure", *(name for m in view.metrics for name in (m.key, m.heading))}
    ):
        return False
    return all(row.get("structure_scored", "0") == "0" for row in rows)


def _print_left_out(headings: Sequence[str], width: int, hint: str) -> None:
    more = f"; `{hint}` shows them" if hint else ""
    typer.echo(f"left out to fit {width} columns: {', '.join(headings)}{more}", err=True)


def _print_incomplete(collected: ResultTable) -> None:
    for line in collected.incomplete():
        typer.echo(f"incomplete: {line}", err=True)


def _print_comparison(path: Path, results: StoredResults) -> None:
    for disagreement in results.disagreements:
        typer.echo(disagreement)
    differing = {(disagreement.instance, disagreement.model) for disagreement in results.disagreements}
    agreeing = results.num_evaluated - len(differing)
    without = results.num_results - results.num_evaluated
    more = f"; {without} results have none" if without else ""
    typer.echo(f"{path.name}: {agreeing} of {results.num_evaluated} stored evaluations come out the same{more}")
