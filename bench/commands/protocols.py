"""calibrant protocols"""

from __future__ import annotations

import json
from typing import Annotated

import typer

from bench.commands.options import AsJson


def protocols(
    protocol: Annotated[
        str | None, typer.Argument(metavar="[PROTOCOL]", help="Only this one: a name, or FILE.py:CLASS.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the protocols that `calibrant run` knows, by benchmark, with their options: defaults and meanings.

    Those of installed packages (entry points of the group calibrant.protocols) say which package they are of.
    """
    from bench.benchmarks.registry import benchmarks
    from bench.protocols.registry import described, left_out, protocol_class, with_installed

    by_benchmark = {one.title: with_installed(one.protocols, one.name) for one in benchmarks()}
    known = {name: one for listed in reversed(by_benchmark.values()) for name, one in listed.items()}
    if protocol is None:
        listed = [
            described(one) | {"benchmark": title} for title, rows in by_benchmark.items() for one in rows.values()
        ]
    elif protocol in known:
        listed = [
            described(rows[protocol]) | {"benchmark": title} for title, rows in by_benchmark.items() if protocol in rows
        ]
    else:
        listed = [described(protocol_class(known, protocol))]
    if as_json:
        typer.echo(json.dumps(listed, indent=1))
        return
    title = ""
    for one in listed:
        if one.get("benchmark", title) != title:
            title = one["benchmark"]
            typer.echo(f"[{title}]")
        typer.echo(f"{one['name']}: {one['says']}" + (f" [{one['code']}]" if "code" in one else ""))
        for name, value in one["options"].items():
            meaning = one["meanings"].get(name)
            typer.echo(f"    {name}={json.dumps(value)}" + (f"  {meaning}" if meaning else ""))
        if not one["options"]:
            typer.echo("    no options")
        if one["missing"]:
            typer.echo(f"    {one['missing']}")
    for name, why in left_out(known).items() if protocol is None else ():
        if name not in known:
            typer.echo(f"{name}: {why}", err=True)
