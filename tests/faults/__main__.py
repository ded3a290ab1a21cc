"""The command `python -m tests.faults`: a table of what each fault costs; 1 if anything is lost."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

import msgspec

from calibrant.bench.core.registry import bundled_pools
from calibrant.bench.pages.terminal_tables import aligned
from calibrant.dsl.errors import CalibrantError
from tests.faults.scenarios import FAULTS, NODES, Outcome, outcome

HEADINGS = ["Killed", "n", "Lost", "Crashed", "Commands", "Same as local", "Digest", "s", "Said"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the faults one after the other and print what they cost; 0, 1 if anything is lost, 2 for bad input."""
    parser = _arguments()
    given = parser.parse_args(arguments)
    unknown = [name for name in given.fault if name not in FAULTS]
    if unknown:
        parser.error(f"unknown fault '{unknown[0]}'; known: {', '.join(FAULTS)}")
    try:
        outcomes = list(_outcomes(given.fault or list(FAULTS), given.pool or bundled_pools(), given.pause))
    except CalibrantError as error:
        print(f"tests.faults: {error}", file=sys.stderr)
        return 2
    print(msgspec.json.encode([asdict(one) for one in outcomes]).decode() if given.json else _table(outcomes))
    return int(any(one.lost for one in outcomes))


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.faults",
        description=f"Kill a part of a cluster of {NODES} nodes on this machine when a third of a run is done.",
    )
    parser.add_argument("fault", nargs="*", metavar="FAULT", help=f"{', '.join(FAULTS)} [default: all of them]")
    parser.add_argument("--pool", action="append", type=Path, help="pool to run on [default: the bundled ones]")
    parser.add_argument("--pause", type=float, default=0.1, help="seconds by which each answer is held up")
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser


def _outcomes(names: Sequence[str], pools: Sequence[Path], pause: float) -> Iterator[Outcome]:
    for name in names:
        with tempfile.TemporaryDirectory(prefix="calibrant-faults-") as folder:
            yield outcome(FAULTS[name], pools, Path(folder), pause)


def _table(outcomes: Sequence[Outcome]) -> str:
    rows = [
        [
            one.what,
            str(one.instances),
            str(one.lost),
            str(one.crashed),
            str(one.commands),
            "yes" if one.same else "no",
            one.digest,
            f"{one.seconds:.1f}",
            one.said,
        ]
        for one in outcomes
    ]
    return aligned(HEADINGS, rows)


if __name__ == "__main__":
    sys.exit(main())
