"""The command `python -m calibrant.bench.lab.renamings`: rates and answers of rows under other names and orders."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from calibrant.bench.core.benchmark import Benchmark
from calibrant.bench.core.registry import benchmark, benchmark_of
from calibrant.bench.lab.renamings.measure import RENAMED, Change, changer, measure
from calibrant.bench.pools.bundled import bundled_files, bundled_sample
from calibrant.bench.protocols.registry import applicable_protocols, chosen_protocols, left_out, read_pool_once
from calibrant.bench.variants.contract import VARIANTS
from calibrant.dsl.errors import CalibrantError


def main(arguments: list[str] | None = None) -> int:
    """Print a line for each row and pool; 1 if a rate moves or an answer differs."""
    parser = argparse.ArgumentParser(prog="python -m calibrant.bench.lab.renamings", description=__doc__)
    parser.add_argument("pools", nargs="*", type=Path, help="pool files; by default all bundled pools")
    parser.add_argument("--rows", default="all", help="protocols, with commas between them")
    parser.add_argument("--times", type=int, default=6, help="renamings")
    parser.add_argument("--items", type=int, help="only the first so many items of each pool")
    parser.add_argument(
        "--every", type=int, default=1, help="only every so manyth item of each pool, from the first on"
    )
    parser.add_argument("--kinds", help="kinds of `calibrant variants` in place of renamings, with commas; or all")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    moved = False
    for path in options.pools or list(_bundled()):
        of = benchmark_of(path)
        protocols = applicable_protocols(of, [path])
        items = read_pool_once(of, path)[1].items[:: options.every][: options.items]
        missing = left_out(protocols)
        for row in protocols if options.rows == "all" else options.rows.split(","):
            if row in missing:
                print(f"{path.name}: {row}: left out, {missing[row]}", flush=True)
                continue
            (protocol,) = chosen_protocols(protocols, row, {})
            protocol.warm_up()
            for kind, change in _changes(of, options.kinds):
                result = measure(of, items, protocol, times=options.times, seed=options.seed, change=change)
                moved |= bool(result.moved or result.num_different or result.num_crashed)
                print(f"{path.name}: {kind}{result.line()}", flush=True)
    return int(moved)


def _changes(of: Benchmark[Any], kinds: str | None) -> Iterator[tuple[str, Change | None]]:
    """Yield the kinds of changes, with marks for their lines."""
    if kinds is None:
        yield "", None
        return
    available = of.require(VARIANTS).kinds
    for kind in available if kinds == "all" else [kind for kind in kinds.split(",") if kind in available]:
        yield f"{kind}: ", changer(of, kind)


def _bundled() -> Iterator[Path]:
    for name, files in bundled_files().items():
        if name in RENAMED:
            yield from files
            yield from map(bundled_sample, benchmark(name).bundled_extras)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except CalibrantError as error:
        sys.exit(str(error))
