"""Commands: calibrant generate and sample."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from calibrant.bench.commands.guard import WRITES, WRITES_POOL, Writes
from calibrant.bench.commands.options import Cluster, ItemOption, Workers, execution, progress_bar, with_options
from calibrant.bench.core.names import FIRST
from calibrant.bench.core.options import GivenOptions
from calibrant.bench.help import ITEMS, OUTPUT
from calibrant.dsl.text import plural

_OUT = Writes(beside=(*WRITES_POOL.beside, "heldout_{}"), is_resumable=True)


@with_options("generate")
def generate(
    given: GivenOptions,
    out: Annotated[
        Path, typer.Option("--out", metavar="FILE", help="Native JSONL file to write.", rich_help_panel=OUTPUT), _OUT
    ],
    seed: Annotated[int, typer.Option(help="The same seed gives the same bytes.", rich_help_panel=ITEMS)],
    strata: Annotated[
        str,
        typer.Option(
            metavar="NAME,...", help="Strata, or suites of another benchmark; all: every one.", rich_help_panel=ITEMS
        ),
    ] = "all",
    per_stratum: Annotated[
        int | None, typer.Option(min=1, help="Instances per stratum. [default: 10]", rich_help_panel=ITEMS)
    ] = None,
    benchmark: Annotated[
        str, typer.Option(metavar="NAME", help="Benchmark to generate for.", rich_help_panel=ITEMS)
    ] = FIRST,
    item_option: ItemOption = None,
    workers: Workers = None,
    cluster: Cluster = None,
) -> None:
    """Generate a pool from nothing, every accepted item with its audit.

    Latent SCMs, training worlds that leave no shortcut, held-out worlds, all filters, worlds against local
    alternatives. One seed gives the same latent SCMs and worlds in every setting. What is done is kept in
    FILE.unfinished until FILE is written; the same command goes on from there.
    """
    from calibrant.bench.core.registry import benchmark as named
    from calibrant.bench.pools.capabilities import GENERATE, GenerateRequest
    from calibrant.bench.pools.distinct import find_repeats

    bench = named(benchmark)
    generator = bench.require(GENERATE)
    options = given.convert(bench.name)
    by = execution(workers or (None if cluster else generator.workers), cluster)
    with progress_bar() as progress:
        lines = generator.generate(
            GenerateRequest(out, strata, seed, per_stratum, by, progress, item_option or ()), options
        )
    for line in lines:
        typer.echo(line, err=True)
    repeats = find_repeats(bench, (), out, bench.items.read_pool(out))
    if repeats:
        asks = f"{plural(len(repeats), 'items')} {'asks' if len(repeats) == 1 else 'ask'} what an earlier one asks"
        typer.echo(f"{asks}: small strata have few different ones", err=True)
    _print_next(out, has_repeats=bool(repeats))


def sample(
    out: Annotated[
        Path, typer.Option("--out", metavar="FILE", help="Native JSONL file to write.", rich_help_panel=OUTPUT), WRITES
    ],
    seed: Annotated[int, typer.Option(help="The same seed gives the same bytes.", rich_help_panel=ITEMS)],
    strata: Annotated[
        str,
        typer.Option(
            metavar="NAME,...", help="Size strata, comma-separated; all: the eight named ones.", rich_help_panel=ITEMS
        ),
    ] = "all",
    per_stratum: Annotated[int, typer.Option(min=1, help="Instances per stratum.", rich_help_panel=ITEMS)] = 10,
    setting: Annotated[
        Literal["ordered", "block", "hidden-order", "hidden-roots"],
        typer.Option(help="What is disclosed.", rich_help_panel=ITEMS),
    ] = "hidden-order",
) -> None:
    """Sample a pool quickly, without the later stages of `calibrant generate`.

    Latent SCMs, training worlds that rule out shortcut formulas, held-out worlds; no worlds against local alternatives,
    no balance of held-out worlds, no audits. One seed gives the same latent SCMs and worlds in every setting.
    """
    from calibrant.bench.core.registry import sole_provider
    from calibrant.bench.pools.capabilities import SAMPLE
    from calibrant.bench.terminal import print_written
    from calibrant.dsl.text import plural

    number = sole_provider(SAMPLE)(out, strata, per_stratum, seed, setting)
    print_written(out, plural(number, "instances"))
    _print_next(out)


def _print_next(pool: Path, *, has_repeats: bool = False) -> None:
    from calibrant.bench.terminal import NextCommand, print_next, unused_path

    distinct = NextCommand(("pool", "distinct", pool, unused_path("distinct.jsonl")), "leave out repeats")
    print_next(
        [
            *([distinct] if has_repeats else []),
            NextCommand(("list", pool), "what is in it"),
            NextCommand(("prompts", pool, "--out", unused_path("prompts.jsonl")), "what a model is asked"),
            NextCommand(("run", "exact", pool, "--out", unused_path("runs")), "the exact solver"),
        ]
    )
