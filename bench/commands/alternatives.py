"""Commands `calibrant alternatives` and `calibrant separate`: several SCMs that fit, and what tells them apart."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from calibrant.bench.commands.guard import READS, RUN_FOLDER, WRITES, require_apart
from calibrant.bench.commands.options import (
    AsJson,
    Cluster,
    PoolPath,
    execution,
    progress_bar,
    refuse_options,
    with_options,
)
from calibrant.bench.core.options import GivenOptions
from calibrant.bench.help import INPUT, METHOD, OUTPUT
from calibrant.dsl.atomic_write import write_pieces

# --- Command: calibrant alternatives ----------------------------------------------------------------------------------
NUM_SEEDS = 50  # seeds of a sweep


def alternatives(
    folders: Annotated[list[Path], typer.Argument(metavar="DIR...", help="Folders that `calibrant run` wrote."), READS],
    out: Annotated[
        Path,
        typer.Option("--out", metavar="FILE", help="JSON lines for `calibrant harden`.", rich_help_panel=OUTPUT),
        WRITES,
    ],
    sweep: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="POOL",
            help="First run bnlearn+dsl on this pool with many seeds, into the first DIR.",
            rich_help_panel=METHOD,
        ),
        READS,
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option(
            min=1, help=f"How many seeds a sweep runs: 0, 1, and so on. [default: {NUM_SEEDS}]", rich_help_panel=METHOD
        ),
    ] = None,
    cluster: Cluster = None,
    as_json: AsJson = False,
) -> None:
    """Collect the train-exact SCMs that runs found and that are not gold, each meaning once.

    The file is for `calibrant harden --alternatives`. Printed is how often each system finds one; runs that differ in
    their seed alone count as one system. --json adds the numbers of every instance.
    """
    if not sweep:
        refuse_options({"--cluster": cluster, "--seeds": seeds}, "there is nothing to run without --sweep")

    from calibrant.bench.core.registry import one_benchmark, sole_provider
    from calibrant.bench.pages.aligned import aligned
    from calibrant.bench.pools.capabilities import ALTERNATIVES
    from calibrant.bench.terminal import NextCommand, print_next, print_written, unused_path
    from calibrant.dsl.text import plural

    if sweep:
        one_benchmark(sweep).require(ALTERNATIVES)
        require_apart(sweep, RUN_FOLDER.targets("DIR", folders[0]))
        _sweep(sweep, folders[0], seeds or NUM_SEEDS, cluster)
    collected = sole_provider(ALTERNATIVES).collect(folders)
    models = collected.alternatives()
    write_pieces(out, (f"{json.dumps(model.to_dict())}\n" for model in models))
    print_written(out, plural(len(models), "alternatives"))
    rows = collected.rows()
    if as_json:
        typer.echo(json.dumps({"rows": collected.figures(), "instances": collected.counts()}, indent=1))
    elif rows:
        typer.echo(aligned(list(rows[0]), [list(row.values()) for row in rows]))
    if not as_json:
        harder = ("harden", (sweep or [Path("POOL")])[0], "--alternatives", out, "--out", unused_path("harder.jsonl"))
        print_next([NextCommand(harder, "shut them out") if sweep else NextCommand(("table", *folders), "rows")])


def _sweep(pools: list[Path], folder: Path, seeds: int, cluster: str | None) -> None:
    """Run in this process where there is no cluster: a seed takes milliseconds an instance, a process a second."""
    from calibrant.bench.core.registry import sole_provider
    from calibrant.bench.pools.capabilities import ALTERNATIVES
    from calibrant.bench.runs.runner import run

    by = execution(None if cluster else 1, cluster)
    for seed in range(seeds):
        with progress_bar(f"seed {seed} of {seeds}: ") as progress:
            protocol = sole_provider(ALTERNATIVES).sweep_protocol(seed)
            run(protocol, pools, folder, execution=by, progress=progress)


# --- Command: calibrant separate --------------------------------------------------------------------------------------


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
