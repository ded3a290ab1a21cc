"""The list of commands in groups, with short helps that fit a line of 80 characters; options of a command in groups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from typer.core import TyperCommand, TyperGroup

GROUPS: Mapping[str, Mapping[str, str]] = {
    "Start": {
        "demo": "Run everything once on bundled items",
        "list": "List the items of a pool",
        "show": "Show one item, or why it is ambiguous",
        "fit": "Fit an SCM or a formula to a table of 0 and 1",
        "family": "Count the logic models that fit perturbation data",
        "network": "Read, compare, simulate a Boolean network",
        "play": "Solve items yourself, in words or the browser",
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
        "submission": "Write answers as a submission to a suite",
        "board": "Score submissions to a suite again",
        "variants": "Copy items under other names and orders",
    },
    "Files": {
        "pool": "Check, describe and convert pools",
        "export": "Write data sets for the Hub",
        "schema": "Print the JSON Schema of a file",
    },
}
# headings of options, in this order; each option states its own as `rich_help_panel`
ITEMS, INPUT, METHOD, VIEW, OUTPUT, EXECUTION = "Items", "Input", "Method", "View", "Output", "Execution"
PANELS = (ITEMS, INPUT, METHOD, VIEW, OUTPUT, EXECUTION)
REST = "Other options"
MAX_OPTION_WIDTH = 30  # columns: a longer option has a line of its own, as in typer's lists
MIN_GROUPED_OPTIONS = 5  # fewer stand in one list
MAX_SHORT_HELP = 55  # characters, so that no line of the list is cut at 80


def short_help(command: str) -> str:
    """Return the short help of a command."""
    return next(group[command] for group in GROUPS.values() if command in group)


class GroupedOptions(TyperCommand):
    """A command that lists its options under headings, which typer does with rich alone."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        arguments: list[tuple[str, str]] = []
        panels: dict[str, list[tuple[str, str]]] = {panel: [] for panel in PANELS}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is None:
                continue
            if parameter.param_type_name == "argument":
                arguments.append(record)
            else:
                panels.setdefault(getattr(parameter, "rich_help_panel", None) or REST, []).append(record)
        sections = {"Arguments": arguments} | panels
        if sum(map(len, panels.values())) <= MIN_GROUPED_OPTIONS:  # --help is one more
            sections = {"Arguments": arguments, "Options": [row for rows in panels.values() for row in rows]}
        width = min(MAX_OPTION_WIDTH, max((len(row[0]) for rows in panels.values() for row in rows), default=0))
        for heading, rows in sections.items():
            if rows:
                with formatter.section(heading):
                    formatter.write_dl([(name.ljust(width), text) for name, text in rows])


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
