"""calibrant protocols"""

from __future__ import annotations

import json

import typer

from bench.commands.options import AsJson


def protocols(as_json: AsJson = False) -> None:
    """List the protocols that `calibrant run` knows, with their options and defaults."""
    from bench.benchmarks.registry import benchmarks
    from bench.protocols.registry import described

    listed = [described(protocol) for one in benchmarks() for protocol in one.protocols.values()]
    if as_json:
        typer.echo(json.dumps(listed, indent=1))
        return
    for one in listed:
        options = ", ".join(f"{name}={json.dumps(value)}" for name, value in one["options"].items())
        typer.echo(f"{one['name']}: {one['says']}")
        typer.echo(f"    options: {options or 'none'}")
        if one["missing"]:
            typer.echo(f"    {one['missing']}")
