"""Lines about files that a command has written."""

from __future__ import annotations

from pathlib import Path

import typer

from calibrant.dsl.errors import in_one_line


def print_written(path: Path, kind: str = "page") -> None:
    """Print on standard error that a file was written; kind: of the file."""
    typer.echo(in_one_line(f"{kind} written to {path}"), err=True)
