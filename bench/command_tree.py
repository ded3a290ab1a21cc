"""The commands of `calibrant` by name, and the tree in which one of them is run.

Building a command means reading its signature, .1 s for all; other commands of a tree have a name and a short help.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand
from typer.main import get_command

from calibrant.bench.commands.guard import guard_paths
from calibrant.bench.help import GroupedCommands, GroupedOptions, ItemOptionsCommand, epilog, short_help

COMMANDS: Mapping[str, str] = {
    "run": "run:run",
    "protocols": "protocols:protocols",
    "score": "score:score",
    "table": "table:table",
    "report": "report:report",
    "show": "show:show",
    "prompts": "prompts:prompts",
    "sample": "generate:sample",
    "demo": "demo:demo",
    "audit": "audit:audit",
    "alternatives": "harden:alternatives",
    "harden": "harden:harden",
    "separate": "harden:separate",
    "verify": "audit:verify",
    "generate": "generate:generate",
    "export": "prompts:export",
    "play": "play:play",
    "schema": "protocols:schema",
    "training": "prompts:training",
    "fit": "start.fitting:fit",
    "family": "start.network:family",
    "network": "start.network:network",
    "list": "start.listing:list_items",
    "difficulty": "difficulty:difficulty",
    "release": "suites:release",
    "submission": "suites:submission",
    "board": "suites:board",
    "variants": "suites:variants",
    "pool": "pool:pool_app",
    "bench": "protocols:bench_app",
}
"""Name of a command -> "module:name" in bench/commands, of a function or of a `Typer` of commands."""


def command_tree(chosen: str | None) -> Any:
    """Return the tree in which one command can be run, or all commands for None."""
    if chosen is None:
        return get_command(typer_app(COMMANDS))
    tree = get_command(typer_app([chosen] if chosen in COMMANDS else []))
    built = tree.commands  # type: ignore[attr-defined]  # an application with a callback is a group
    stubs = (TyperCommand(name, short_help=short_help(name)) for name in COMMANDS if name not in built)
    tree.commands = built | {stub.name: stub for stub in stubs}  # type: ignore[attr-defined]
    return tree


def typer_app(names: Iterable[str]) -> typer.Typer:
    """Return the application with these commands."""
    app = typer.Typer(
        name="calibrant",
        cls=GroupedCommands,
        help="Solve, score and calibrate executable causal-mechanism benchmarks.",
        context_settings={"help_option_names": ["-h", "--help"]},
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    app.callback()(_options)
    for name in names:
        module, _, attribute = COMMANDS[name].partition(":")
        command = getattr(import_module(f"calibrant.bench.commands.{module}"), attribute)
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=name, short_help=short_help(name))
        else:
            command_class = ItemOptionsCommand if name == "generate" else GroupedOptions
            app.command(name, cls=command_class, epilog=epilog(name), short_help=short_help(name))(guard_paths(command))
    return app


def _print_version(requested: bool) -> None:
    if requested:
        from calibrant.bench.version import program_version

        typer.echo(f"calibrant {program_version()}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass
