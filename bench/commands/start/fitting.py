"""Command: calibrant fit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from calibrant.bench.commands.guard import READS, WRITES, Writes
from calibrant.bench.commands.options import AsJson


def fit(
    table: Annotated[Path, typer.Argument(metavar="TABLE", help="CSV file of Boolean columns with a head."), READS],
    target: Annotated[
        str | None, typer.Option("--target", metavar="COLUMN", help="Explain this column by the others.")
    ] = None,
    do: Annotated[
        str | None,
        typer.Option("--do", metavar="COLUMN", help="Column that names the columns set in each row; empty for none."),
    ] = None,
    roots: Annotated[
        str | None,
        typer.Option("--roots", metavar="A,B,...", help="Columns without a mechanism. [default: as few as possible]"),
    ] = None,
    max_parents: Annotated[
        int, typer.Option("--max-parents", min=1, max=6, help="Columns that one may depend on, at most.")
    ] = 4,
    html: Annotated[
        Path | None,
        typer.Option("--html", metavar="FILE", help="Write the page that shows what is open and why."),
        WRITES,
    ] = None,
    svg: Annotated[Path | None, typer.Option("--svg", metavar="FILE", help="Write one picture of it."), WRITES] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="POOL", help="Write the table as a pool of one item."), WRITES
    ] = None,
    certificates: Annotated[
        Path | None,
        typer.Option("--certificates", metavar="DIR", help="Write a certificate of the count; `verify` takes --out."),
        Writes(("*.json",)),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Fit a table of 0 and 1: the least SCM, or the least formula of --target, with proof; how many fit; what is open.

    Values are 0, 1, true, false. Exit code 1 if nothing fits; then the output states what was gone through.
    """
    from calibrant.bench.core.capabilities import FITTING
    from calibrant.bench.core.registry import benchmarks

    names = None if roots is None else [name.strip() for name in roots.split(",") if name.strip()]
    fitting = next(provider for of in benchmarks() if (provider := of.capability(FITTING)) is not None)
    fitted = fitting.fit(table, target=target, do=do, roots=names, max_parents=max_parents)
    for note in fitted.write(table.name, html=html, svg=svg, out=out, certificates=certificates):
        typer.echo(note, err=True)
    if as_json:
        typer.echo(json.dumps(fitted.to_dict(), indent=1))
    else:
        for line in fitted.lines():
            typer.echo(line)
    return 0 if fitted.fits else 1
