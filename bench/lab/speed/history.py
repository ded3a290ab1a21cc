"""History of ratios over releases: one JSON line a run, and a plot of it.

`python -m calibrant.bench.lab.speed.history FILE --out PLOT` draws the last line of every release. Ratios are kept, not
rates: rivals take turns in one process, so a ratio depends less on the machine than seconds do.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from calibrant.bench.lab.speed.comparison import Row
from calibrant.bench.lab.speed.report import machine
from calibrant.bench.pages.charts import Axis, Line, Mark, Panel, panels_svg
from calibrant.bench.pages.page import standalone_svg
from calibrant.dsl.atomic_write import write_atomically
from calibrant.dsl.errors import CalibrantError, short_repr

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
        prog="python -m calibrant.bench.lab.speed.history", description="Plot ratios of speed over releases."
    )
    parser.add_argument("file", type=Path, metavar="FILE", help="a history that `speed --append FILE` wrote")
    parser.add_argument("--out", type=Path, metavar="PLOT", required=True, help="SVG file to write")
    parser.add_argument("--case", default="", metavar="TEXT", help="only ratios with this text in their name")
    options = parser.parse_args(arguments)
    try:
        write_atomically(options.out, plot_history(read_history(options.file), options.case))
    except CalibrantError as error:
        print(f"bench.lab.speed.history: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
