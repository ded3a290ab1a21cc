"""Commands: calibrant difficulty, calibrant pool subset."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from calibrant.bench.commands.guard import READS, WRITES_PAGE
from calibrant.bench.commands.options import AsJson, NewPool, PoolPath
from calibrant.bench.help import INPUT, ITEMS, METHOD, OUTPUT
from calibrant.bench.terminal import json_text

Families = Annotated[
    Path | None,
    typer.Option(
        "--families",
        metavar="FILE",
        help="CSV of system,family: families are left out whole. [default: each its own]",
        rich_help_panel=INPUT,
    ),
    READS,
]


def difficulty(
    runs: Annotated[
        list[Path],
        typer.Argument(metavar="RUNS...", help="Folders of runs, and files of `calibrant score --out`."),
        READS,
    ],
    pools: Annotated[
        list[Path],
        typer.Option(
            "--pools",
            "--pool",
            metavar="POOL",
            help="Pool file of the answers; may be repeated.",
            rich_help_panel=INPUT,
        ),
        READS,
    ],
    model: Annotated[
        Literal["rasch", "2pl"] | None,
        typer.Option(
            "--model",
            help="Also difficulties of single items: 8 systems and 30 items, 2pl 100 systems.",
            rich_help_panel=METHOD,
        ),
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option("--html", metavar="FILE", help="Write a page with plots.", rich_help_panel=OUTPUT),
        WRITES_PAGE,
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Explain which items are hard, by features that are exact: what fits, what is decided, least size.

    A logistic model of success, with how well it predicts systems that were left out, beside the stratum alone. With
    --model a difficulty of each item, with its standard error; refused where there are too few systems to say anything.
    """
    from calibrant.bench.difficulty.report import explain_difficulty
    from calibrant.bench.terminal import NextCommand, invocation, print_next, print_written

    explained = explain_difficulty(runs, pools, model)
    if html is not None:
        explained.write_page(html)
        print_written(html)
    if as_json:
        typer.echo(json_text(explained.to_dict()))
    else:
        for line in explained.lines():
            typer.echo(line)
        if html is not None:
            print_next([NextCommand((*invocation.get(), "--json"), "all figures")])


def subset(
    source: PoolPath,
    target: NewPool,
    runs: Annotated[
        list[Path],
        typer.Option(
            "--runs",
            "--run",
            metavar="RUNS",
            help="Runs or scored files on the pool; may be repeated.",
            rich_help_panel=INPUT,
        ),
        READS,
    ],
    items: Annotated[int, typer.Option("--items", min=1, help="How many items to take.", rich_help_panel=ITEMS)],
    families: Families = None,
    seed: Annotated[
        int,
        typer.Option("--seed", min=0, help="Of the random subsets that it is compared with.", rich_help_panel=ITEMS),
    ] = 0,
    as_json: AsJson = False,
) -> None:
    """Take the items that say most about systems, and measure how far off their estimate of the whole pool is.

    By information of a Rasch model, from 8 systems and 30 items on. The error of the estimated mean is measured on
    families of systems that were left out of choice and fit, beside random subsets of equal size.
    """
    from calibrant.bench.difficulty.subsets import write_subset
    from calibrant.bench.terminal import pool_commands, print_next

    chosen = write_subset(source, target, runs, items, families, seed)
    if as_json:
        typer.echo(json_text(chosen.to_dict()))
    else:
        for line in chosen.lines():
            typer.echo(line)
        print_next(pool_commands(target))
