"""Command: calibrant separate."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from calibrant.bench.commands.guard import READS
from calibrant.bench.commands.options import AsJson, PoolPath, with_options
from calibrant.bench.core.options import GivenOptions
from calibrant.bench.help import INPUT


@with_options("separate")
def separate(
    pool: PoolPath,
    instance: Annotated[str, typer.Argument(metavar="ID", help="Which instance.")],
    given: GivenOptions,
    against: Annotated[
        Path | None,
        typer.Option(
            "--against",
            metavar="FILE",
            help="JSON answer to compare with the reference, or else with gold.",
            rich_help_panel=INPUT,
        ),
        READS,
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show every single-variable intervention that separates two SCMs of one instance, the best one and a witness.

    Rates are over all assignments of the roots. Without --against, pairs of the smallest SCMs that fit are compared.
    The last line says which intervention closes most; --targets 2 and 3 also try several variables at once.
    """
    from calibrant.bench.core.registry import benchmark_of
    from calibrant.bench.pools.capabilities import SEPARATE

    of = benchmark_of(pool)
    options = given.convert(of.name, pool.name)  # names the option that the benchmark lacks, before the command
    separate_models = of.require(SEPARATE)
    if against and "members" in given.values:
        raise typer.BadParameter("--against and --members exclude each other")
    separation = separate_models(pool, instance, against, options)
    if as_json:
        typer.echo(json.dumps(separation.to_dict(), indent=1))
    else:
        typer.echo(separation.text())
