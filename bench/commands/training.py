"""calibrant training"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bench.commands.guard import WRITES
from bench.commands.options import Limit, Only, PoolPath


def training(
    pool: PoolPath,
    out: Annotated[
        Path, typer.Option("--out", metavar="FILE", help="JSON lines to write: a header, examples."), WRITES
    ],
    order: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Order of the curriculum, from easy to hard: version, topology, scenario."),
    ] = None,
    only: Only = None,
    limit: Limit = None,
) -> None:
    """Write worked solutions to train on: prompt, steps, an answer, all right answers, level.

    Solutions are worked out by the exact solver: abduction, action, prediction. `calibrant schema training` has every
    field. Questions that no answer is right for are left out, and so are those beyond the solver's budget. CauSim only.
    """
    from bench.benchmarks.registry import benchmark_of
    from bench.runs.runner import Selection
    from dsl.errors import CalibrantError, shown

    of = benchmark_of(pool)
    orders = of.orders
    if order is not None and order not in orders:
        raise typer.BadParameter(f"unknown order '{order}'; known: {', '.join(orders)}", param_hint="--order")
    selection = Selection(frozenset(only or ()), limit)
    items = [item for _, item in selection.of(of.read_pool(pool))]
    missing = sorted(set(selection.only) - {item.id for item in items})
    if missing:
        raise CalibrantError(f"{pool.name}: no instance {shown(missing[0])}")
    written, left_out = of.write_training(out, items, order or orders[0])
    more = f"; {left_out} instances without a solution are left out" if left_out else ""
    typer.echo(f"{written} examples written to {out}{more}", err=True)
