"""Command `calibrant run`."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypedDict, Unpack

import typer

from calibrant.bench.commands.guard import RUN_FOLDER
from calibrant.bench.commands.options import AsJson, Budget, Cluster, Only, PoolPaths, Workers, execution, progress_bar
from calibrant.bench.help import EXECUTION, ITEMS, METHOD, OUTPUT
from calibrant.dsl.text import plural

if TYPE_CHECKING:
    from calibrant.bench.core.benchmark import Benchmark
    from calibrant.bench.protocols import Protocol
    from calibrant.bench.runs.executors import Execution
    from calibrant.bench.runs.runner import Selection
    from calibrant.bench.terminal import NextCommand
    from calibrant.dsl.errors import CalibrantError, UnknownNameError

PROTOCOL_HELP = (
    "How to answer: a protocol, several with commas between them, or all; `calibrant protocols` lists them. "
    "FILE.py:CLASS is one of your own."
)


Out: TypeAlias = Annotated[
    Path,
    typer.Option("--out", metavar="DIR", help="Folder of the records; an earlier run resumes.", rich_help_panel=OUTPUT),
    RUN_FOLDER,
]


def run(
    protocol: Annotated[str, typer.Argument(metavar="PROTOCOL", help=PROTOCOL_HELP)],
    pools: PoolPaths,
    out: Out,
    workers: Workers = None,
    cluster: Cluster = None,
    budget: Budget = None,
    max_parents: Annotated[
        int | None, typer.Option(min=1, help="Shorthand for --option max_parents=K.", rich_help_panel=METHOD)
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option("--option", "-o", metavar="NAME=VALUE", help="Option of the protocol.", rich_help_panel=METHOD),
    ] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Only the first so many instances of each pool.", rich_help_panel=ITEMS)
    ] = None,
    only: Only = None,
    retry_crashed: Annotated[
        bool,
        typer.Option(
            "--retry-crashed", help="Run instances again that crashed in an earlier run.", rich_help_panel=EXECUTION
        ),
    ] = False,
    as_json: AsJson = False,
) -> int:
    """Let solvers answer the items of pools, and print how often each is right.

    Every answered instance is appended to DIR/records.jsonl at once, with its score. The same command goes on where an
    earlier one was interrupted or killed. With one worker and without --budget everything happens in this process.
    """
    from calibrant.bench.core.registry import one_benchmark
    from calibrant.bench.protocols import applicable_protocols, chosen_protocols, left_out, protocols_of, with_installed
    from calibrant.bench.runs.runner import Selection
    from calibrant.bench.terminal import print_next
    from calibrant.dsl.errors import UnknownNameError

    _refuse_protocol_as_pool(protocol, pools)
    bench = one_benchmark(pools)
    listed = applicable_protocols(bench, pools) if protocol.strip() == "all" else protocols_of(bench)
    is_built_in = listed.keys() >= {name.strip() for name in protocol.split(",")}  # searching packages takes 50 ms
    protocol_by_name = listed if is_built_in else with_installed(listed, bench.name)
    try:
        chosen = chosen_protocols(protocol_by_name, protocol, _options(option or [], max_parents))
    except UnknownNameError as error:
        raise _explained(error, bench) from None
    for name, missing in left_out(protocol_by_name).items() if protocol.strip() == "all" else ():
        typer.echo(f"{name} is left out: {missing}", err=True)
    selection = Selection(frozenset(only or ()), limit)
    settings: _Settings = {"selection": selection, "retry_crashed": retry_crashed}
    by = execution(workers, cluster, budget)
    code = run_and_report(chosen, pools, out, by, as_json=as_json, **settings)
    if not as_json:
        print_next(_next_commands(pools, out))
    return code


def _refuse_protocol_as_pool(protocol: str, pools: Sequence[Path]) -> None:
    """Raise `CalibrantError` for a protocol given among the pools."""
    from calibrant.bench.core.registry import one_benchmark
    from calibrant.bench.protocols import protocols_of
    from calibrant.dsl.errors import CalibrantError

    existing = [path for path in pools if path.exists()]
    missing = [str(path) for path in pools if not path.exists()]
    names = protocols_of(one_benchmark(existing)) if existing and missing else {}
    misplaced = [name for name in missing if name in names]
    if misplaced:
        together = ",".join([protocol, *misplaced])
        raise CalibrantError(f"{misplaced[0]} is a protocol; several have commas between them: run {together} POOL")


def _next_commands(pools: Sequence[Path], out: Path) -> Iterator[NextCommand]:
    """Yield the commands to suggest after a run."""
    from calibrant.bench.terminal import NextCommand, unused_path

    yield NextCommand(("report", out, "--out", unused_path("report.html")), "tables and plots")
    pool_options = [word for pool in pools for word in ("--pool", pool)]
    yield NextCommand(("table", out, "--attribution", *pool_options), "earned or luck")
    yield NextCommand(("table", out, "--by", "stratum"), "rows by stratum")


def _explained(error: UnknownNameError, bench: Benchmark[Any]) -> CalibrantError:
    """Return the error with the names of the benchmarks that have a protocol of that name."""
    from calibrant.bench.core.registry import benchmarks
    from calibrant.bench.protocols import protocols_of
    from calibrant.bench.terminal import HintedError

    owners = [owner.title for owner in benchmarks() if error.name in protocols_of(owner)]
    if not owners:
        return error
    message = f"{bench.title}: no protocol '{error.name}'; it exists for {', '.join(owners)}"
    return HintedError(message, command=("protocols", "--benchmark", bench.name))


class _Settings(TypedDict, total=False):
    """Further arguments of bench.runs.runner.run."""

    selection: Selection
    retry_crashed: bool


def run_and_report(
    protocols: Sequence[Protocol],
    pools: Sequence[Path],
    out: Path,
    by: Execution,
    *,
    as_json: bool = False,
    **settings: Unpack[_Settings],
) -> int:
    """Run the protocols in turn, then print the table of all records in the folder; return 1 if an instance crashed."""
    from calibrant.bench.commands.table import print_table
    from calibrant.bench.runs.records import FILE_NAME
    from calibrant.dsl.errors import CalibrantError

    again = shlex.join(["calibrant", "table", str(out)])
    try:
        crashed = run_all(protocols, pools, out, by, **settings)
    except CalibrantError:
        with suppress(OSError):
            if len(protocols) > 1 and (out / FILE_NAME).stat().st_size:  # what is done stays
                print_table([out], as_json=as_json, again=again)
        raise
    print_table([out], as_json=as_json, again=again)
    return 1 if crashed else 0


def run_all(
    protocols: Sequence[Protocol],
    pools: Sequence[Path],
    out: Path,
    by: Execution,
    **settings: Unpack[_Settings],
) -> int:
    """Run the protocols in turn; return the number of crashed instances."""
    from calibrant.bench.runs.records import folder_records
    from calibrant.bench.runs.runner import EVERYTHING, require_startable, run, selected_keys
    from calibrant.bench.runs.workers import crash_summary

    for protocol in protocols:  # a missing library is reported before the first item
        require_startable(protocol)
    crashed = 0
    for protocol in protocols:
        name = f"{protocol.name}: " if len(protocols) > 1 else ""
        with progress_bar(name) as progress:
            summary = run(protocol, pools, out, execution=by, progress=progress, **settings)
        typer.echo(
            f"{name}{plural(summary.written, 'instances')} answered, {summary.skipped} had a record already", err=True
        )
        crashed += summary.crashed
    if crashed:
        typer.echo(f"{plural(crashed, 'instances')} crashed; --retry-crashed runs them again", err=True)
        keys = selected_keys(protocols, pools, settings.get("selection", EVERYTHING), by.wall_budget)
        for line in crash_summary(folder_records(out), keys):
            typer.echo(f"  {line}", err=True)
    return crashed


def _options(pairs: list[str], max_parents: int | None) -> dict[str, str | int]:
    options: dict[str, str | int] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise typer.BadParameter(f"'{pair}' is not NAME=VALUE", param_hint="--option")
        options[name] = value
    return options if max_parents is None else options | {"max_parents": max_parents}
