"""The command tree of `calibrant`. Importing it imports typer and the command modules, and nothing heavier."""

from __future__ import annotations

from typing import Annotated

import typer

from calibrant.bench.commands.ambiguity.alternatives import alternatives
from calibrant.bench.commands.ambiguity.harden import harden
from calibrant.bench.commands.ambiguity.separate import separate
from calibrant.bench.commands.audit import audit
from calibrant.bench.commands.demo import demo
from calibrant.bench.commands.generate import generate, sample
from calibrant.bench.commands.guard import guard_paths
from calibrant.bench.commands.play import play
from calibrant.bench.commands.pool import pool_app
from calibrant.bench.commands.prompts import export, prompts, training
from calibrant.bench.commands.protocols import protocols
from calibrant.bench.commands.report import report
from calibrant.bench.commands.run import run
from calibrant.bench.commands.schema import schema
from calibrant.bench.commands.score import score
from calibrant.bench.commands.show import show
from calibrant.bench.commands.start.fitting import fit
from calibrant.bench.commands.start.listing import list_items
from calibrant.bench.commands.table import table
from calibrant.bench.commands.verify import verify
from calibrant.bench.examples import epilog
from calibrant.bench.help_groups import GroupedCommands, short_help
from calibrant.bench.option_help import ItemOptionsCommand

app = typer.Typer(
    name="calibrant",
    cls=GroupedCommands,
    help="Solve, score and calibrate executable causal-mechanism benchmarks.",
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for command in (
    run,
    protocols,
    score,
    table,
    report,
    show,
    prompts,
    sample,
    demo,
    audit,
    alternatives,
    harden,
    separate,
    verify,
    generate,
    export,
    play,
    schema,
    training,
    fit,
):
    app.command(
        cls=ItemOptionsCommand if command is generate else None,
        epilog=epilog(command.__name__),
        short_help=short_help(command.__name__),
    )(guard_paths(command))
app.command("list", epilog=epilog("list"), short_help=short_help("list"))(guard_paths(list_items))
app.add_typer(pool_app, name="pool", short_help=short_help("pool"))


def _print_version(wanted: bool) -> None:
    if wanted:
        from calibrant.bench.version import program_version

        typer.echo(f"calibrant {program_version()}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass
