"""calibrant generate and sample"""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from calibrant.bench.commands.guard import WRITES, WRITES_POOL, require_apart
from calibrant.bench.commands.options import Cluster, Workers, execution, with_options
from calibrant.bench.commands.progress import progress_bar
from calibrant.bench.core.options import GivenOptions
from calibrant.bench.runs.jobs import Execution
from calibrant.dsl.atomic_write import write_pieces

if TYPE_CHECKING:
    from calibrant.bench.replayscm.options import GenerateOptions as GenerateArguments


@with_options("generate")
def generate(
    given: GivenOptions,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="Native JSONL file to write."), WRITES_POOL],
    seed: Annotated[int, typer.Option(help="The same seed gives the same bytes.")],
    strata: Annotated[
        str,
        typer.Option(metavar="NAME,...", help="Strata, or suites of another benchmark; all: every one."),
    ] = "all",
    per_stratum: Annotated[int, typer.Option(min=1, help="Instances per stratum.")] = 10,
    benchmark: Annotated[str, typer.Option(metavar="NAME", help="Benchmark to generate for.")] = "replayscm",
    workers: Workers = None,
    cluster: Cluster = None,
) -> None:
    """Generate a pool from nothing, every accepted instance with its audit.

    Latent SCMs, training worlds that leave no shortcut, held-out worlds, all filters, worlds against local
    alternatives. One seed gives the same latent SCMs and worlds in every setting. What is done is kept in
    FILE.unfinished until FILE is written; the same command goes on from there.
    """
    from calibrant.bench.core.registry import DEFAULT
    from calibrant.bench.core.registry import benchmark as named

    options = given.convert(named(benchmark).name)
    if benchmark != DEFAULT:
        here = workers or (None if cluster else 1)  # most suites take milliseconds
        _drawn(out, benchmark, strata, seed, per_stratum, execution(here, cluster))
        return
    _generated(out, options, strata, seed, per_stratum, execution(workers, cluster))


def _generated(out: Path, options: GenerateArguments, strata: str, seed: int, per_stratum: int, by: Execution) -> None:
    """A pool of ReplaySCM, and its audits."""
    from calibrant.audits.replayscm.generation.plans import MAX_ADDED_WORLDS, PLANS
    from calibrant.bench.replayscm.pools.generated import GenerateOptions, generated_pool
    from calibrant.dsl.replayscm.pools.files import write_pool
    from calibrant.dsl.replayscm.sampling.strata import stratum

    audits = options.audits or out.with_name(f"{out.name.removesuffix(out.suffix)}.audits.jsonl")
    require_apart((), [*WRITES_POOL.targets("--out", out), *WRITES.targets("--audits", audits)])
    names = list(PLANS) if strata == "all" else [name.strip() for name in strata.split(",")]
    try:
        chosen = tuple(stratum(name) for name in names)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--strata") from None
    most = MAX_ADDED_WORLDS if options.max_added is None else options.max_added
    asked = GenerateOptions(chosen, per_stratum, seed, options.setting, most)
    with ExitStack() as stack:
        with progress_bar() as progress:
            making = generated_pool(out, asked, execution=by, progress=progress)
            made = stack.enter_context(making)
        write_pieces(audits, (f"{json.dumps(line)}\n" for line in made.audits))
        typer.echo(f"audits written to {audits}", err=True)
        write_pool(made.pool, out)
        typer.echo(f"{len(made.pool)} instances written to {out}", err=True)


def _drawn(out: Path, name: str, suites: str, seed: int, count: int, by: Execution) -> None:
    """A pool of another benchmark: so many items of each of the suites."""
    from calibrant.bench.core.registry import benchmark
    from calibrant.bench.pools.generated import write_drawn

    of = benchmark(name)
    chosen = list(of.suites) if suites == "all" else [part.strip() for part in suites.split(",")]
    for suite in chosen:
        if suite not in of.suites:
            known = ", ".join(of.suites)
            raise typer.BadParameter(f"unknown suite '{suite}'; known: {known}", param_hint="--strata")
    with progress_bar() as progress:
        written = write_drawn(of, out, chosen, seed, count, by, progress=progress)
    typer.echo(f"{written} instances written to {out}", err=True)


def sample(
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="Native JSONL file to write."), WRITES],
    seed: Annotated[int, typer.Option(help="The same seed gives the same bytes.")],
    strata: Annotated[
        str, typer.Option(metavar="NAME,...", help="Size strata, comma-separated; all: the eight named ones.")
    ] = "all",
    per_stratum: Annotated[int, typer.Option(min=1, help="Instances per stratum.")] = 10,
    setting: Annotated[
        Literal["ordered", "block", "hidden-order", "hidden-roots"], typer.Option(help="What is disclosed.")
    ] = "hidden-order",
) -> None:
    """Sample a pool quickly, without the later stages of `calibrant generate`.

    Latent SCMs, training worlds that rule out shortcut formulas, held-out worlds; no worlds against local alternatives,
    no balance of held-out worlds, no audits. One seed gives the same latent SCMs and worlds in every setting.
    """
    from calibrant.dsl.replayscm.pools.files import write_pool
    from calibrant.dsl.replayscm.sampling.problems import sample_pool
    from calibrant.dsl.replayscm.sampling.strata import NAMED_STRATA, stratum

    try:
        chosen = NAMED_STRATA if strata == "all" else tuple(stratum(name.strip()) for name in strata.split(","))
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--strata") from None
    pool = sample_pool(chosen, per_stratum, seed, setting)
    write_pool(pool, out)
    typer.echo(f"{len(pool)} instances written to {out}", err=True)
