"""Rows as tables for people and as JSON for scripts, and the machine they were measured on."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path

import msgspec
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from calibrant.bench.lab.speed.comparison import Row
from calibrant.bench.version import program_version

PACKAGES = ("numpy", "numba", "pyyaml", "msgspec")
_MARK = {True: "yes", False: "NO", None: ""}


def machine() -> dict[str, str]:
    """Processor and versions; without them a rate means nothing."""
    versions = {name: version(name) for name in PACKAGES}
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return {"calibrant": program_version(), "processor": _processor(), "python": python, **versions}


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    fields = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
    name = fields.get("model name", platform.machine())
    return f"{name}, family {fields.get('cpu family', '?')} model {fields.get('model', '?')}"


def json_report(rows: Sequence[Row]) -> bytes:
    """Return one object: the machine, and the rows as they were measured."""
    return msgspec.json.format(msgspec.json.encode({"machine": machine(), "rows": rows}), indent=1)


def print_report(rows: Iterable[Row], console: Console) -> None:
    """Print a table per benchmark; in each case the first rival is ours, with its lead over the others."""
    topics: dict[str, list[Row]] = {}
    for row in rows:
        topics.setdefault(row.topic, []).append(row)
    for topic, members in topics.items():
        console.print(_table(topic, members))
    console.print(", ".join(f"{key} {value}" for key, value in machine().items()))


COLUMNS = ("case", "rival", "per second", "first is x faster", "x published", "target", "met", "counts and notes")


def _table(topic: str, rows: Sequence[Row]) -> Table:
    """Cases in sections; columns in which nothing stands are left out."""
    cells = [_cells(row) for row in rows]
    used = [i for i in range(len(COLUMNS)) if any(line[i] for line in cells)]
    table = Table(title=topic, title_justify="left")
    for i in used:
        table.add_column(COLUMNS[i], justify="left" if i in (0, 1, len(COLUMNS) - 1) else "right", no_wrap=i < 2)
    previous = None
    for row, line in zip(rows, cells, strict=True):
        if row.case == previous:
            line[0] = ""
        elif previous is not None:
            table.add_section()
        previous = row.case
        table.add_row(*(escape(line[i]) for i in used))
    return table


def _cells(row: Row) -> list[str]:
    """Return one text per column; a ratio is followed by its range over the rounds."""
    ratio = "" if row.ratio is None else f"{_number(row.ratio)} ({_number(row.low)} to {_number(row.high)})"
    return [
        row.case,
        row.rival,
        _number(row.per_second),
        ratio,
        _number(row.times_published),
        _number(row.at_least),
        _MARK[row.met],
        row.note or ", ".join(f"{name} {_number(value)}" for name, value in row.counts.items()),
    ]


def _number(value: float | None) -> str:
    """Three significant digits, more only where they are whole."""
    if value is None:
        return ""
    if value >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.3g}"
