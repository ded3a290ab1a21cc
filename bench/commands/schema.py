"""calibrant schema"""

from __future__ import annotations

import json
from typing import Annotated, Literal

import typer


def schema(
    name: Annotated[
        Literal["records", "verdicts", "audits", "certificates", "pools"], typer.Argument(help="Which kind of file.")
    ],
) -> None:
    """Print the JSON Schema of a kind of file, every field with its meaning.

    records: what `run` writes; verdicts: what `score` writes; audits and certificates: what `audit` writes; pools:
    native pool files. All but certificates are JSON lines, and the schema is of one line.
    """
    from bench.schemas.files import SCHEMAS

    typer.echo(json.dumps(SCHEMAS[name](), indent=1))
