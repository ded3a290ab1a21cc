"""calibrant export"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bench.commands.guard import WRITES
from bench.commands.options import PoolPaths


def export(
    pools: PoolPaths,
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Folder to make; it must not be there yet."), WRITES
    ],
    name: Annotated[str, typer.Option(metavar="TEXT", help="Title of the data set. [default: the pools' names]")] = "",
    license_: Annotated[
        str, typer.Option("--license", metavar="ID", help="License of the data, as the Hub names it.")
    ] = "",
) -> None:
    """Write pools as data sets for the Hub: Parquet, a card and Croissant metadata, with gold apart.

    DIR/questions has prompts and nothing sealed, and may be published; DIR/gold has records, right answers and labels
    of difficulty too, as trainers need them. Items are read back before DIR appears. Needs the extra `hub`.
    """
    from bench.hub.export import export as write_export

    number = write_export(pools, out, name=name, license_=license_)
    typer.echo(f"{number} items written to {out}", err=True)
