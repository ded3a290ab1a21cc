"""The command tree of `calibrant`. Importing it imports typer and the command modules, and nothing heavier."""

from __future__ import annotations

from typing import Annotated

import typer

from bench.commands.alternatives import alternatives
from bench.commands.audit import audit
from bench.commands.demo import demo
from bench.commands.generate import generate, sample
from bench.commands.guard import guarded
from bench.commands.harden import harden
from bench.commands.play import play
from bench.commands.pool import pool_app
from bench.commands.prompts import export, prompts, training
from bench.commands.protocols import protocols
from bench.commands.report import report
from bench.commands.run import run
from bench.commands.schema import schema
from bench.commands.score import score
from bench.commands.separate import separate
from bench.commands.show import show
from bench.commands.table import table
from bench.commands.verify import verify
from bench.examples import epilog

app = typer.Typer(
    name="calibrant",
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
):
    app.command(epilog=epilog(command.__name__))(guarded(command))
app.add_typer(pool_app, name="pool")


def _print_version(wanted: bool) -> None:
    if wanted:
        from bench.version import program_version

        typer.echo(f"calibrant {program_version()}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass
