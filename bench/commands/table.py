"""calibrant table"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer

from bench.commands.options import AsJson


def table(
    sources: Annotated[
        list[Path],
        typer.Argument(metavar="DIR...", help="Folders of runs; also files written by `calibrant score --out`."),
    ],
    by: Annotated[
        Literal["pool", "setting", "stratum"], typer.Option(help="What gets a row of its own for each system.")
    ] = "pool",
    means: Annotated[
        Literal["published", "paper"],
        typer.Option(
            help="HeldoutWorld and TrainWorld: leave invalid submissions out, as the published tables do,"
            " or count them as 0, as the paper's text says."
        ),
    ] = "published",
    columns: Annotated[Literal["replay", "structure", "funnel"], typer.Option(help="Which rates to print.")] = "replay",
    as_json: AsJson = False,
) -> None:
    """Print rows in the shape of the published tables.

    A conditional rate over 1 to 5 instances is shown as *, a rate over none as a dash. --json has all columns.
    """
    print_table(sources, by=by, means=means, columns=columns, as_json=as_json)


def print_table(
    sources: Sequence[Path],
    *,
    by: str = "pool",
    means: str = "published",
    columns: str = "replay",
    as_json: bool = False,
) -> None:
    """The table of these sources on standard output; what it does not cover is said on standard error."""
    from bench.columns import Means
    from bench.sources import scored_runs
    from bench.table import CalibrationTable, Grouping
    from bench.table_text import table_text

    collected = CalibrationTable(by=Grouping(by), means=Means(means))
    for run, score in scored_runs(sources):
        collected.add(run, score)
    for line in collected.incomplete():
        typer.echo(f"incomplete: {line}", err=True)
    rows = collected.rows()
    typer.echo(json.dumps(rows, indent=1) if as_json else table_text(rows, view=columns))
