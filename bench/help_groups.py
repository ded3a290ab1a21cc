"""The list of commands in groups, with short helps that fit a line of 80 characters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from typer.core import TyperGroup

GROUPS: Mapping[str, Mapping[str, str]] = {
    "Start": {
        "demo": "Run everything once on bundled items",
        "list": "List the items of a pool",
        "show": "Show one item, or why it is ambiguous",
        "fit": "Fit an SCM or a formula to a table of 0 and 1",
        "family": "Count the logic models that fit perturbation data",
        "play": "Solve items yourself, here in the terminal",
    },
    "Score answers": {
        "prompts": "Write what a model is asked",
        "score": "Score responses: right, and was it earned?",
        "table": "Print rows of runs and scores",
        "report": "Write tables and plots of results",
    },
    "Run solvers": {
        "run": "Run solvers on pools",
        "protocols": "List the solvers and their options",
        "alternatives": "Collect SCMs that fit and differ",
    },
    "Judge items": {
        "audit": "Count what the evidence leaves open",
        "difficulty": "Explain which items are hard",
        "separate": "Rank the interventions that tell SCMs apart",
        "verify": "Check certificates by plain counting",
    },
    "Make items": {
        "generate": "Make items with known difficulty",
        "sample": "Make items quickly, without audits",
        "harden": "Add evidence until one answer is left",
        "training": "Write worked solutions to learn from",
    },
    "Publish": {
        "release": "Build a suite that certifies itself",
        "board": "Score submissions to a suite again",
    },
    "Files": {
        "pool": "Check, describe and convert pools",
        "export": "Write data sets for the Hub",
        "schema": "Print the JSON Schema of a file",
    },
}
MAX_SHORT_HELP = 55  # characters, so that no line of the list is cut at 80


def short_help(command: str) -> str:
    """Return the short help of a command."""
    return next(group[command] for group in GROUPS.values() if command in group)


class GroupedCommands(TyperGroup):
    """A group that lists its commands under headings; commands without one come last."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        headed = {name for group in GROUPS.values() for name in group}
        rest = [name for name in self.list_commands(ctx) if name not in headed]
        width = max(map(len, self.commands))
        for heading, names in [*GROUPS.items(), ("Other", dict.fromkeys(rest, ""))]:
            rows = [
                (name.ljust(width), names[name] or self.commands[name].get_short_help_str(MAX_SHORT_HELP))
                for name in names
                if name in self.commands and not self.commands[name].hidden
            ]
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows)
