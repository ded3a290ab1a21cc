"""The command `python -m calibrant.bench.lab.limits`: what docs/limits.md shows."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path

import msgspec

from calibrant.bench.lab.limits.sweep import Point, Sweep, plot, points, table
from calibrant.dsl.errors import CalibrantError

TOPICS = (  # module:function, below calibrant.bench.lab
    "limits.replayscm:sweeps",
    "limits.replayscm:method_sweeps",
    "limits.replayscm:command_sweeps",
    "limits.acyclic_choices:sweeps",
    "speed.blickets:sweeps",
    "speed.causalab:sweeps",
    "speed.causim:sweeps",
)
MINUTES = 2.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 0, or 2 for bad input."""
    options = _arguments().parse_args(arguments)
    sweeps = [sweep for name in TOPICS for sweep in _sweeps(name)]
    sweep_keys = [sweep.key for sweep in sweeps]
    if unknown := [key for key in options.key if key not in sweep_keys]:
        print(f"bench.lab.limits: unknown sweep '{unknown[0]}'; known: {', '.join(sweep_keys)}", file=sys.stderr)
        return 2
    options.out.mkdir(parents=True, exist_ok=True)
    try:
        for sweep in sweeps:
            if not options.key or sweep.key in options.key:
                _write(sweep, list(_measure(sweep, options.minutes)), options.out)
    except CalibrantError as error:
        print(f"bench.lab.limits: {error}", file=sys.stderr)
        return 2
    return 0


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m calibrant.bench.lab.limits",
        description="Processor seconds of a problem against its size, until it takes too long: a plot, a table in "
        "Markdown and the figures as JSON for every sweep.",
    )
    parser.add_argument("key", nargs="*", metavar="SWEEP", help="which sweeps; all if none is named")
    parser.add_argument("--out", type=Path, default=Path("limits"), metavar="DIR", help="where the files go [limits]")
    parser.add_argument(
        "--minutes", type=float, default=MINUTES, help=f"time after which a curve starts no larger size [{MINUTES:.0f}]"
    )
    return parser


def _sweeps(name: str) -> tuple[Sweep, ...]:
    module, _, function = name.partition(":")
    sweeps: Callable[[], tuple[Sweep, ...]] = getattr(import_module(f"calibrant.bench.lab.{module}"), function)
    return sweeps()


def _measure(sweep: Sweep, minutes: float) -> Iterator[Point]:
    for point in points(sweep, range(sweep.problems), minutes):
        print(f"{sweep.key}: {point.curve} at {point.x}, {point.median:.3g} s {point.stop}", file=sys.stderr)
        yield point


def _write(sweep: Sweep, measured: Sequence[Point], out: Path) -> None:
    (out / f"{sweep.key}.json").write_bytes(msgspec.json.format(msgspec.json.encode(measured), indent=1) + b"\n")
    (out / f"{sweep.key}.svg").write_text(plot(sweep, measured), encoding="utf-8")
    print(f"### {sweep.title}\n\n{table(sweep, measured)}")


if __name__ == "__main__":
    sys.exit(main())
