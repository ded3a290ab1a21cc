"""calibrant run"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypedDict, Unpack

import typer

from bench.commands.options import AsJson, PoolPaths

if TYPE_CHECKING:
    from bench.protocol import Protocol
    from bench.runner import Progress, Selection


def run(
    protocol: Annotated[str, typer.Argument(metavar="PROTOCOL", help="How to answer: exact.")],
    pools: PoolPaths,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder of the records; an earlier run resumes.")],
    workers: Annotated[int | None, typer.Option(min=1, help="Processes. [default: one per usable core]")] = None,
    budget: Annotated[
        float | None, typer.Option(min=0.001, help="Wall seconds per instance; then its process is killed.")
    ] = None,
    max_parents: Annotated[int | None, typer.Option(min=1, help="Shorthand for --option max_parents=K.")] = None,
    option: Annotated[
        list[str] | None, typer.Option("--option", "-o", metavar="NAME=VALUE", help="Option of the protocol.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first so many instances of each pool.")] = None,
    only: Annotated[list[str] | None, typer.Option(metavar="ID", help="Only this instance; may be repeated.")] = None,
    retry_crashed: Annotated[
        bool, typer.Option("--retry-crashed", help="Run instances again that crashed in an earlier run.")
    ] = False,
    as_json: AsJson = False,
) -> int:
    """Run a protocol on pools and print the calibration table.

    Every answered instance is appended to DIR/records.jsonl at once, with its score. The same command goes on where an
    earlier one was interrupted or killed. With one worker and without --budget everything happens in this process.
    """
    from bench.protocols import make_protocol
    from bench.runner import Selection

    chosen = make_protocol(protocol, _options(option or [], max_parents))
    selection = Selection(frozenset(only or ()), limit)
    settings: _Settings = {"selection": selection, "wall_budget": budget, "retry_crashed": retry_crashed}
    return run_and_report(chosen, pools, out, workers=workers, as_json=as_json, **settings)


class _Settings(TypedDict, total=False):
    """Further arguments of bench.runner.run."""

    selection: Selection
    wall_budget: float | None
    retry_crashed: bool


def run_and_report(
    protocol: Protocol,
    pools: Sequence[Path],
    out: Path,
    *,
    workers: int | None = None,
    as_json: bool = False,
    **settings: Unpack[_Settings],
) -> int:
    """Run with a progress bar, then print the table of everything in the folder; 1 if an instance crashed."""
    from bench.commands.table import print_table
    from bench.runner import run

    with _progress_bar() as progress:
        summary = run(protocol, pools, out, workers=workers or _usable_cores(), progress=progress, **settings)
    typer.echo(f"{summary.written} instances answered, {summary.skipped} had a record already", err=True)
    if summary.crashed:
        typer.echo(f"{summary.crashed} instances crashed; the provenance of their records says how", err=True)
    print_table([out], as_json=as_json)
    return 1 if summary.crashed else 0


def _usable_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _options(pairs: list[str], max_parents: int | None) -> dict[str, str | int]:
    options: dict[str, str | int] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise typer.BadParameter(f"'{pair}' is not NAME=VALUE", param_hint="--option")
        options[name] = value
    return options if max_parents is None else options | {"max_parents": max_parents}


@contextmanager
def _progress_bar() -> Iterator[Progress]:
    """A bar per pool on standard error, where that is a terminal; elsewhere nothing."""
    from rich.console import Console
    from rich.progress import Progress, TaskID

    console = Console(stderr=True)
    bars: dict[str, TaskID] = {}
    with Progress(console=console, disable=not console.is_terminal) as bar:

        def report(name: str, done: int, total: int) -> None:
            if name not in bars:
                bars[name] = bar.add_task(name, total=total)
            bar.update(bars[name], completed=done)

        yield report
