"""Arguments and options that several commands share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

PoolPath: TypeAlias = Annotated[Path, typer.Argument(metavar="POOL", help="Pool file: official YAML or native JSONL.")]
PoolPaths: TypeAlias = Annotated[
    list[Path], typer.Argument(metavar="POOL...", help="Pool files: official YAML or native JSONL.")
]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]
Workers: TypeAlias = Annotated[int | None, typer.Option(min=1, help="Processes. [default: one per usable core]")]


def require_distinct(outputs: Mapping[str, Path | None], inputs: Sequence[Path] = ()) -> None:
    """A usage error if an output file is an input, or another output; said before the work, not after it."""
    taken = {path.resolve(): f"the input {path}" for path in inputs}
    for option, path in outputs.items():
        if path is None:
            continue
        where = path.resolve()
        if where in taken:
            raise typer.BadParameter(f"{path} is {taken[where]} too", param_hint=option)
        taken[where] = f"what {option} writes"
