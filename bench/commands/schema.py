"""Command: calibrant schema."""

from __future__ import annotations

import json
from typing import Annotated, Literal

import typer

from calibrant.bench.commands.options import OfBenchmark
from calibrant.bench.core.names import FIRST


def schema(
    name: Annotated[
        Literal["records", "verdicts", "audits", "certificates", "pools", "training"],
        typer.Argument(help="Which kind of file."),
    ],
    benchmark: OfBenchmark = FIRST,
) -> None:
    """Print the JSON Schema of a kind of file, every field with its meaning.

    records: what `run` writes; verdicts: what `score` writes; audits and certificates: what `audit` writes; pools:
    native pool files; training: what `training` writes, of CauSim alone. Those of records are the same for every
    benchmark. All but certificates, and findings of audits, are JSON lines, and the schema is of one line.
    """
    from calibrant.bench.schemas import SCHEMAS

    typer.echo(json.dumps(SCHEMAS[name](benchmark), indent=1))
