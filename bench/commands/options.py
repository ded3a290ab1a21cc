"""Arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

PoolPath: TypeAlias = Annotated[Path, typer.Argument(metavar="POOL", help="Pool file: official YAML or native JSONL.")]
PoolPaths: TypeAlias = Annotated[
    list[Path], typer.Argument(metavar="POOL...", help="Pool files: official YAML or native JSONL.")
]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]
Workers: TypeAlias = Annotated[int | None, typer.Option(min=1, help="Processes. [default: one per usable core]")]
