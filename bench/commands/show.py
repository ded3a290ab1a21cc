"""calibrant show"""

from __future__ import annotations

import json
from typing import Annotated

import typer

from bench.commands.options import AsJson, PoolPath


def show(
    pool: PoolPath,
    instance: Annotated[str, typer.Argument(metavar="ID", help="Which instance.")],
    gold: Annotated[bool, typer.Option("--gold", help="Also what is sealed: gold and held-out worlds.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show one instance as a solver may see it."""
    from bench.benchmarks.registry import DEFAULT, benchmark_of
    from bench.pools.show import find_instance, instance_record, instance_text, sealed_record, sealed_text
    from dsl.replayscm.pools.files import read_pool

    of = benchmark_of(pool)
    if of.name != DEFAULT:
        from bench.pools.items import item_of

        item = item_of(of.read_pool(pool), instance)
        record = of.record(item)
        sealed = {"sealed": record.pop("sealed")}
        if as_json:
            typer.echo(json.dumps(record | (sealed if gold else {}), indent=1))
        else:
            typer.echo("\n\n".join([of.prompt(item), *([json.dumps(sealed, indent=1)] if gold else [])]))
        return
    problem = find_instance(read_pool(pool, keep_results=False), instance)
    if as_json:
        sealed = {"sealed": sealed_record(problem)} if gold else {}
        typer.echo(json.dumps(instance_record(problem) | sealed, indent=1))
    else:
        typer.echo("\n\n".join([instance_text(problem), *([sealed_text(problem)] if gold else [])]))
