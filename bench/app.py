"""The application with every command: what needs all signatures. One command is run by `bench.command_tree`."""

from __future__ import annotations

from calibrant.bench.command_tree import COMMANDS, typer_app

app = typer_app(COMMANDS)
