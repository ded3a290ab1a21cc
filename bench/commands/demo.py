"""calibrant demo"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from bench.commands.options import AsJson


def demo(
    out: Annotated[Path | None, typer.Option("--out", metavar="DIR", help="Keep the records there.")] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes. [default: one per usable core]")] = None,
    as_json: AsJson = False,
) -> int:
    """Run the exact baseline on the bundled pools."""
    from bench.bundled import bundled_pools
    from bench.commands.run import run_and_report
    from bench.exact_protocol import Exact

    with tempfile.TemporaryDirectory(prefix="calibrant-demo-") as scratch:
        return run_and_report([Exact()], bundled_pools(), out or Path(scratch), workers=workers, as_json=as_json)
