"""Processor time and size of a report of many systems on many items: `python -m calibrant.bench.lab.large_report`.

Systems are mixtures of a few methods: system k has, of each item, the record of one of them, chosen by a seed. Records,
steps and attributions are therefore real, and there are as many of them as an evaluation of models has.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

import msgspec

from calibrant.bench.lab.speed.memory import Cost, command_cost
from calibrant.bench.runs.records import FILE_NAME, Record, read_records

METHODS = {
    "replayscm": ("exact", "first-found", "copy-parent", "majority"),
    "blickets": ("switch-aware", "static", "quiet", "copy"),
    "causalab": ("greedy", "abstain", "total-effects", "random"),
    "causim": ("exact", "run_once", "no_do", "copy"),
}
NUM_STRATA = {"replayscm": 8, "blickets": 26, "causalab": 19, "causim": 10}
FAMILIES = ("alder", "birch", "cedar", "dogwood", "elm")


def make_pools(folder: Path, items: int) -> dict[str, Path]:
    """Generate a pool of each benchmark with at least so many items; those that exist are taken as they are."""
    pools = {name: folder / f"{name}.jsonl" for name in METHODS}
    for name, path in pools.items():
        if path.exists():
            continue
        per_stratum = -(-items // NUM_STRATA[name])
        command = ["sample"] if name == "replayscm" else ["generate", "--benchmark", name]
        _run_command(*command, "--seed", "1", "--per-stratum", str(per_stratum), "--out", str(path))
    return pools


def make_run(folder: Path, pools: dict[str, Path], systems: int, items: int) -> list[Path]:
    """Run the methods on the first items of each pool, and write a folder of the mixtures for each benchmark."""
    folders = []
    for name, path in pools.items():
        methods = folder / f"{name}-methods"
        _run_command("run", ",".join(METHODS[name]), str(path), "--limit", str(items), "--out", str(methods))
        mixed = folder / f"{name}-runs"
        mixed.mkdir(exist_ok=True)
        lines = (msgspec.json.encode(record) + b"\n" for record in mix(read_records(methods / FILE_NAME), systems))
        with (mixed / FILE_NAME).open("wb") as file:
            file.writelines(lines)
        folders.append(mixed)
    return folders


def mix(records: Iterator[Record], systems: int) -> Iterator[Record]:
    """Yield, for each system and item, the record of one method under the system's name."""
    by_item: dict[str, list[Record]] = {}
    for record in records:
        by_item.setdefault(record.instance, []).append(record)
    for number in range(systems):
        name = f"{FAMILIES[number % len(FAMILIES)]}-{number // len(FAMILIES):02d}"
        random = Random(f"mixture/{number}")
        weights = [random.random() for _ in range(max(map(len, by_item.values())))]
        for listed in by_item.values():
            (record,) = random.choices(listed, weights[: len(listed)])
            yield msgspec.structs.replace(record, protocol=name, config={})


def measure_report(runs: Sequence[Path], pools: Sequence[Path], out: Path) -> Cost:
    """Write the report; return what that took."""
    options = [part for pool in pools for part in ("--pool", str(pool.absolute()))]
    folders = [str(run.absolute()) for run in runs]
    arguments = ("report", *folders, *options, "--attribution", "--out", str(out.absolute()))
    return command_cost(Path(sys.executable), *arguments, folder=out.parent)


def _run_command(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "calibrant", *arguments], check=True, stdout=subprocess.DEVNULL)


def main(arguments: Sequence[str] | None = None) -> int:
    """Make what is missing in the folder, write the report there, and print its figures."""
    parser = argparse.ArgumentParser(prog="python -m calibrant.bench.lab.large_report", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("large-report"), metavar="DIR", help="where the files go")
    parser.add_argument("--systems", type=int, default=125)
    parser.add_argument("--items", type=int, default=250, help="of each benchmark")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    pools = make_pools(options.out, options.items)
    runs = make_run(options.out, pools, options.systems, options.items)
    page = options.out / "report.html"
    cost = measure_report(runs, list(pools.values()), page)
    print(f"{options.systems} systems x {len(pools)} benchmarks x {options.items} items")
    print(
        f"{cost.processor:.1f} s of a processor, {cost.peak / 1e9:.2f} GB at most, {page.stat().st_size / 1e6:.2f} MB"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
