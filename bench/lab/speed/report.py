"""Rivals measured against each other in one process, and their ratios as tables, JSON and history."""

from __future__ import annotations

import argparse
import platform
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from math import ceil
from pathlib import Path
from statistics import median
from typing import NamedTuple

import msgspec
from msgspec.structs import replace
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from calibrant.bench.pages.charts import Axis, Line, Mark, Panel, panels_svg
from calibrant.bench.pages.page import standalone_svg
from calibrant.bench.version import program_version
from calibrant.dsl.atomic_write import write_atomically
from calibrant.dsl.errors import CalibrantError, short_repr
from calibrant.dsl.replayscm.item import Problem, TaskKind


# --- Rivals measured against each other in one process: in turns, in processor seconds, ratios round by round ---------
# Processor time, because everything here computes on one core and the machine may have other work. In each round every
# rival runs once, for about as long as the others; a ratio is formed within a round and the median over rounds is
# reported, so that a slow minute of the machine slows all rivals alike.
class Discipline(NamedTuple):
    """Thoroughness of a measurement.

    rounds: how many turns every rival gets; seconds: how long each turn takes at least (0: one call, no warm-up)
    """

    rounds: int
    seconds: float


THOROUGH = Discipline(7, 0.1)
QUICK = Discipline(1, 1e-9)


@dataclass(frozen=True)
class Rival:
    """One way to do the work.

    call: does it once; num_items: how much of it (slow rivals may do less)
    least_ratio: target for the first rival's speed over this one's
    least_times_published: target for this one's speed over the published scorer's
    """

    name: str
    call: Callable[[], object]
    num_items: float = 1
    least_ratio: float | None = field(default=None, kw_only=True)
    least_times_published: float | None = field(default=None, kw_only=True)


@dataclass(frozen=True)
class Comparison:
    """One case of a benchmark and its rivals. The first rival is ours, the one whose speed is in question.

    item: what is counted, in the singular
    published: items a second of the published scorer, where that is known
    counts: numbers that do not depend on the machine
    """

    topic: str
    case: str
    item: str
    rivals: Sequence[Rival]
    published: float | None = None
    counts: Mapping[str, float] = field(default_factory=dict)


class Row(msgspec.Struct, frozen=True, omit_defaults=True):
    """Measurement of one rival in one case.

    per_second: items a second, median over rounds
    ratio: how many times faster the first rival is; low, high: least and greatest over rounds
    times_published: per_second over the published scorer's rate
    at_least: the target of the ratio; met: whether all targets of the row were reached, None if it has none
    """

    topic: str
    case: str
    rival: str
    item: str = ""
    per_second: float | None = None
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    times_published: float | None = None
    at_least: float | None = None
    met: bool | None = None
    counts: dict[str, float] = {}
    note: str = ""


def measure(comparison: Comparison, discipline: Discipline) -> Iterator[Row]:
    """Yield a row per rival, after all of them were measured in turns."""
    times = _measure_turns(comparison.rivals, discipline)
    for index, (rival, rival_times) in enumerate(zip(comparison.rivals, times, strict=True)):
        ratios = [rival_time / first for rival_time, first in zip(rival_times, times[0], strict=True)]
        row = Row(comparison.topic, comparison.case, rival.name, comparison.item, 1 / median(rival_times))
        if index:
            row = replace(row, ratio=median(ratios), low=min(ratios), high=max(ratios))
        else:
            row = replace(row, counts=dict(comparison.counts))
        yield judge_row(row, comparison.published, rival)


def judge_row(row: Row, published: float | None, rival: Rival) -> Row:
    """Return the row with its ratio to the published rate, and whether it reaches the rival's target."""
    times_published = row.per_second / published if published and row.per_second else None
    targets = ((rival.least_ratio, row.ratio), (rival.least_times_published, times_published))
    at_least, reached = next(((d, r) for d, r in targets if d is not None and r is not None), (None, None))
    is_met = None if at_least is None or reached is None else reached >= at_least
    return replace(row, times_published=times_published, at_least=at_least, met=is_met)


def _measure_turns(rivals: Sequence[Rival], discipline: Discipline) -> list[list[float]]:
    """Return seconds per item, [rival][round]; an untimed call warms up and sizes the turns."""
    repeats = [1] * len(rivals)
    if discipline.seconds:
        for rival in rivals:
            rival.call()
        repeats = [ceil(discipline.seconds / _positive(seconds(rival.call, 1))) for rival in rivals]
    times: list[list[float]] = [[] for _ in rivals]
    for _ in range(discipline.rounds):
        for rival, repeat, rival_times in zip(rivals, repeats, times, strict=True):
            rival_times.append(_positive(seconds(rival.call, repeat)) / (repeat * rival.num_items))
    return times


def seconds(call: Callable[[], object], repeat: int) -> float:
    """Return the processor seconds of that many calls."""
    start = time.process_time()
    for _ in range(repeat):
        call()
    return time.process_time() - start


def _positive(measured_seconds: float) -> float:
    return max(measured_seconds, 1e-9)  # a coarse clock may not have moved


# --- Options of every benchmark, and the choice of problems from pools ------------------------------------------------


class Options(NamedTuple):
    """Inputs and scale of a measurement.

    problems: of all pools, those that ask for an SCM and tell the latent one
    official: a pool file in the official format, if one was given
    scale: what sizes of batches and files are multiplied with; 1 unless the run is only to show that it works
    rival: the Python of an environment in which another state of the project is installed, to compare with
    """

    problems: tuple[Problem, ...]
    official: Path | None
    discipline: Discipline
    scale: float
    rival: Path | None = None


def usable(problem: Problem) -> bool:
    return problem.task.kind is not TaskKind.ALTERNATIVE and problem.sealed.gold is not None


def by_setting(problems: Iterable[Problem]) -> Mapping[str, list[Problem]]:
    return _group(problems, lambda problem: problem.setting)


def by_stratum(problems: Iterable[Problem]) -> Mapping[str, list[Problem]]:
    return _group(problems, lambda problem: problem.stratum)


def _group(problems: Iterable[Problem], key: Callable[[Problem], str]) -> Mapping[str, list[Problem]]:
    """Return key -> problems, with keys in order of first occurrence."""
    groups: dict[str, list[Problem]] = {}
    for problem in problems:
        groups.setdefault(key(problem), []).append(problem)
    return groups


# --- Rows as tables for people and as JSON for scripts, the machine they were measured on, and ratios over releases ---
# `python -m calibrant.bench.lab.speed.report FILE --out PLOT` draws the last line of every release. Ratios are kept,
# not rates: rivals take turns in one process, so a ratio depends less on the machine than seconds do.
# --- Rows as tables for people and as JSON for scripts, and the machine they were measured on -------------------------
PACKAGES = ("numpy", "numba", "pyyaml", "msgspec")
_MARK = {True: "yes", False: "NO", None: ""}


def machine() -> dict[str, str]:
    """Return the processor and versions, without which a rate means nothing."""
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
    """Return a table with a section per case, without columns that are empty in all rows."""
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
    """Return a number with three significant digits, or all digits before the point; empty for None."""
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
                Mark(index, release.ratios[name])
                for index, release in enumerate(releases.values())
                if name in release.ratios
            ),
        )
        for name in names
    ]
    x = Axis("", ticks=tuple((float(index), version) for index, version in enumerate(releases)))
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
