"""Command `calibrant variants`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from calibrant.bench.commands.guard import READS, WRITES
from calibrant.bench.commands.options import PoolPath
from calibrant.bench.help import INPUT, ITEMS, METHOD, OUTPUT
from calibrant.dsl.text import plural


def variants(
    pool: PoolPath,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="FILE", help="Native JSONL file to write, with all maps.", rich_help_panel=OUTPUT
        ),
        WRITES,
    ] = None,
    kinds: Annotated[
        str,
        typer.Option(
            metavar="NAME,...",
            help="Kinds of changes, in turns; all, or of rename, rows, worlds, columns, values, equivalent, words.",
            rich_help_panel=METHOD,
        ),
    ] = "all",
    copies: Annotated[int, typer.Option(min=1, max=100, help="Copies of each item.", rich_help_panel=METHOD)] = 5,
    seed: Annotated[int, typer.Option(help="The same seed gives the same bytes.", rich_help_panel=ITEMS)] = 0,
    check: Annotated[
        Path | None,
        typer.Option(
            "--check", metavar="FILE", help="Check a file of variants instead; 1 if one fails.", rich_help_panel=INPUT
        ),
        READS,
    ] = None,
) -> int:
    """Write isomorphic and equivalent copies of the items of a pool, each with its map to the original.

    Every copy is checked: the map turns the original into it, as many hypotheses fit, and mapped answers have the same
    verdicts. The file is a pool: `prompts`, `run` and `score` take it; `table --consistency FILE` and `report --pool
    FILE` compare answers. What a kind changes depends on the benchmark: docs/variants.md.
    """
    from calibrant.bench.core.registry import benchmark_of
    from calibrant.bench.terminal import print_written
    from calibrant.bench.variants.contract import VARIANTS
    from calibrant.bench.variants.pool import check_variants, read_maps, write_variants
    from calibrant.dsl.errors import in_one_line

    if (out is None) is (check is None):
        raise typer.BadParameter("give one of --out and --check", param_hint="--out")
    if check is not None:
        problems = list(check_variants(pool, check))
        for name, problem in problems:
            typer.echo(in_one_line(f"refused  {name}: {problem}"))
        typer.echo(f"{plural(len(read_maps(check).copies), 'copies')} checked, {len(problems)} refused", err=True)
        return 1 if problems else 0
    assert out is not None
    available = benchmark_of(pool).require(VARIANTS).kinds
    chosen = list(available) if kinds == "all" else [name.strip() for name in kinds.split(",")]
    number, num_without = write_variants(pool, out, chosen, copies, seed)
    print_written(out, plural(number, "copies"))
    if num_without:
        typer.echo(f"without one of these kinds: {plural(num_without, 'items')}", err=True)
    _print_next(pool, out)
    return 0


def _print_next(pool: Path, copies: Path) -> None:
    from calibrant.bench.terminal import NextCommand, print_next, unused_path

    runs = unused_path("runs")
    print_next(
        [
            NextCommand(("prompts", copies, "--out", unused_path("prompts.jsonl")), "what a model is asked"),
            NextCommand(("run", "exact", pool, copies, "--out", runs), "the exact solver on both"),
            NextCommand(("table", runs, "--consistency", copies), "how answers hold up"),
        ]
    )
