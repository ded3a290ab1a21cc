"""Rows as tables for people and as JSON for scripts, the machine they were measured on, and ratios over releases.

`python -m calibrant.bench.lab.speed.report FILE --out PLOT` draws the last line of every release. Ratios are kept, not
rates: rivals take turns in one process, so a ratio depends less on the machine than seconds do.
"""

from __future__ import annotations

import argparse
import platform
import sys
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path

import msgspec
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from calibrant.bench.lab.speed.comparison import Row
from calibrant.bench.pages.charts import Axis, Line, Mark, Panel, panels_svg
from calibrant.bench.pages.page import standalone_svg
from calibrant.bench.version import program_version
from calibrant.dsl.atomic_write import write_atomically
from calibrant.dsl.errors import CalibrantError, short_repr

# --- Rows as tables for people and as JSON for scripts, and the machine they were measured on -------------------------
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


# --- History of ratios over releases: one JSON line a run, and a plot of it -------------------------------------------
MAX_LINE_BYTES = 1_000_000  # a run of all benchmarks has about 20 kB


class Release(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One line.

    machine: versions and processor, as `--json` states them
    ratios: topic, case and rival, joined by " / " -> how many times faster the first rival is
    """

    machine: dict[str, str]
    ratios: dict[str, float]

    @property
    def version(self) -> str:
        return self.machine["calibrant"]


def append_release(path: Path, rows: Sequence[Row]) -> None:
    """Append the ratios of a run to a history."""
    ratios = {f"{row.topic} / {row.case} / {row.rival}": row.ratio for row in rows if row.ratio is not None}
    line = msgspec.json.encode(Release(machine(), ratios), order="sorted")
    with path.open("ab") as file:
        file.write(line + b"\n")


def read_history(path: Path) -> dict[str, Release]:
    """Return the last line of every version, in the order of the file; `CalibrantError` if it is no history."""
    releases: dict[str, Release] = {}
    number = 0
    decoder = msgspec.json.Decoder(Release)
    try:
        with path.open("rb") as file:
            for line in iter(lambda: file.readline(MAX_LINE_BYTES), b""):
                number += 1
                release = decoder.decode(line)
                releases[release.version] = release
    except OSError as error:
        raise CalibrantError(f"{path.name}: cannot be read: {error.strerror or error}") from None
    except (msgspec.MsgspecError, KeyError, UnicodeDecodeError) as error:
        raise CalibrantError(f"{path.name}, line {number}: not a line of a history of speed: {error}") from None
    if not releases:
        raise CalibrantError(f"{path.name}: the history is empty")
    return releases


def plot_history(releases: dict[str, Release], case: str = "") -> str:
    """Return an SVG with a curve over the releases for every ratio, or for those whose name has the text `case`."""
    names = sorted({name for release in releases.values() for name in release.ratios if case in name})
    if not names:
        raise CalibrantError(f"no ratio of the history has {short_repr(case)} in its name")
    lines = [
        Line(
            name,
            tuple(
                Mark(place, release.ratios[name])
                for place, release in enumerate(releases.values())
                if name in release.ratios
            ),
        )
        for name in names
    ]
    x = Axis("", ticks=tuple((float(place), version) for place, version in enumerate(releases)))
    y = Axis("times faster than the rival", logarithmic=True)
    return standalone_svg(panels_svg([Panel("", tuple(lines))], x, y, "Ratios of speed by release"))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 0, or 2 for bad input."""
    parser = argparse.ArgumentParser(
        prog="python -m calibrant.bench.lab.speed.report", description="Plot ratios of speed over releases."
    )
    parser.add_argument("file", type=Path, metavar="FILE", help="a history that `speed --append FILE` wrote")
    parser.add_argument("--out", type=Path, metavar="PLOT", required=True, help="SVG file to write")
    parser.add_argument("--case", default="", metavar="TEXT", help="only ratios with this text in their name")
    options = parser.parse_args(arguments)
    try:
        write_atomically(options.out, plot_history(read_history(options.file), options.case))
    except CalibrantError as error:
        print(f"bench.lab.speed.report: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
