"""Command `calibrant bench evaluator`: a short measurement on this machine."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from calibrant.bench.commands.guard import guard_paths
from calibrant.bench.commands.options import AsJson
from calibrant.bench.help import METHOD, GroupedOptions, epilog

bench_app = typer.Typer(help="Measure speed on this machine.")


@bench_app.callback()
def bench() -> None:
    """Measure speed on this machine."""


@bench_app.command(cls=GroupedOptions, epilog=epilog("bench evaluator"))
@guard_paths
def evaluator(
    seconds: Annotated[
        float, typer.Option(min=0, max=600, help="Wall seconds to measure, without compiling.", rich_help_panel=METHOD)
    ] = 10.0,
    as_json: AsJson = False,
) -> None:
    """Measure the evaluator of candidate SCMs beside Python integers and NumPy, as a ratio in one process.

    10,000 candidates of a bundled item of ten variables; their mistakes are counted in processor time, in turns. That
    all ways count the same is checked first.
    """
    from calibrant.bench.core.capabilities import EVALUATOR_RATES
    from calibrant.bench.core.registry import sole_provider

    measured = sole_provider(EVALUATOR_RATES)(seconds)
    typer.echo(json.dumps(measured.to_dict(), indent=1) if as_json else measured.text())
