"""The command `python -m calibrant.bench.lab.speed`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path

from rich.console import Console

from calibrant.bench.core.registry import bundled_pools
from calibrant.bench.lab.speed import report
from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.replayscm.pools.files import read_pool

# name on the command line -> module:function of options; in the order in which they run
BENCHMARKS = {
    "replay": "replayscm.replay:rows",
    "parse": "replayscm.replay:parsing_rows",
    "score": "replayscm.scoring:rows",
    "bulk": "replayscm.scoring:bulk_rows",
    "tables": "replayscm.tables:rows",
    "synthesis": "replayscm.synthesis:rows",
    "solve": "replayscm.large:solving_rows",
    "load": "replayscm.loading:rows",
    "structures": "replayscm.structures:rows",
    "noise": "replayscm.noise:rows",
    "audits": "replayscm.audits:rows",
    "episodes": "replayscm.noise:episode_rows",
    "large": "replayscm.large:rows",
    "blickets": "blickets:rows",
    "causalab": "causalab:rows",
    "causim": "causim:rows",
    "readings": "responses:reading_rows",
    "rewards": "responses:reward_rows",
    "inspect": "responses:rows",
    "memory": "memory:rows",
    "startup": "startup:rows",
}
QUICK_SCALE = 0.005
WIDTH = 160  # of tables that go into a file


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 0, 1 if a target was missed and --check was given, 2 for bad input."""
    parser = _arguments()
    arguments_given = parser.parse_args(arguments)
    unknown = [name for name in arguments_given.name if name not in BENCHMARKS]
    if unknown:
        parser.error(f"unknown benchmark '{unknown[0]}'; known: {', '.join(BENCHMARKS)}")
    try:
        if arguments_given.append and arguments_given.append.exists():
            report.read_history(arguments_given.append)  # refused before minutes of measuring
        options = _options(
            arguments_given.pool or list(bundled_pools()), arguments_given.rival, quick=arguments_given.quick
        )
        rows = list(_measure(arguments_given.name or list(BENCHMARKS), options))
    except (CalibrantError, ValueError) as error:
        print(f"bench.lab.speed: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    _write(rows, as_json=arguments_given.json)
    if arguments_given.append:
        report.append_release(arguments_given.append, rows)
    return int(arguments_given.check and any(row.met is False for row in rows))


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m calibrant.bench.lab.speed",
        description="Ratios of speed between our implementations and their rivals, measured in turns in one run.",
    )
    parser.add_argument("name", nargs="*", metavar="NAME", help=f"{', '.join(BENCHMARKS)}; all if none is named")
    parser.add_argument("--pool", nargs="+", type=Path, metavar="FILE", help="pool files instead of the bundled ones")
    parser.add_argument(
        "--rival", type=Path, metavar="PYTHON", help="the Python of an environment with another state of the project"
    )
    parser.add_argument("--quick", action="store_true", help="a glance: one round, small batches; figures mean little")
    parser.add_argument("--check", action="store_true", help="exit with 1 if a target is missed")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of tables")
    parser.add_argument("--append", type=Path, metavar="FILE", help="append the ratios to a history, one line a run")
    return parser


def _options(pools: Sequence[Path], rival: Path | None, *, quick: bool) -> report.Options:
    if rival is not None and not rival.is_file():
        raise CalibrantError(f"--rival {rival}: no such file; the Python of another environment is expected")
    problems = tuple(p for path in pools for p in read_pool(path, keep_results=False).problems if report.usable(p))
    if not problems:
        raise CalibrantError("the pools have no problem that asks for an SCM and tells the latent one")
    official = next((path for path in pools if path.suffix in (".yaml", ".yml")), None)
    return report.Options(
        problems, official, report.QUICK if quick else report.THOROUGH, QUICK_SCALE if quick else 1.0, rival
    )


def _measure(names: Sequence[str], options: report.Options) -> Iterator[report.Row]:
    for name in names:
        print(f"measuring {name} ...", file=sys.stderr, flush=True)
        module, _, function = BENCHMARKS[name].partition(":")
        rows: Callable[[report.Options], Iterator[report.Row]] = getattr(
            import_module(f"calibrant.bench.lab.speed.{module}"), function
        )
        yield from rows(options)


def _write(rows: Sequence[report.Row], *, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(report.json_report(rows).decode() + "\n")
    else:
        report.print_report(rows, Console(width=None if sys.stdout.isatty() else WIDTH))


if __name__ == "__main__":
    sys.exit(main())
