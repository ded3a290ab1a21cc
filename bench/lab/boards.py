"""The command `python -m calibrant.bench.lab.boards`: time of a board of many systems on the bundled suite.

Each system mixes the answers of the suite's rows item by item, so that answers differ between systems; one in twenty
is left out. The board has all pages, shards and common results.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from random import Random

from calibrant.bench.commands.demo import SUITE_FILE
from calibrant.bench.runs.executors import Execution
from calibrant.bench.suites.board import build_board
from calibrant.bench.suites.manifest import Manifest
from calibrant.bench.suites.release import build_release

SEED = 1
SHARE_LEFT_OUT = 0.05
CARD = """
system = "{name}"
version = "1"
suite = "{suite}"
suite_version = "{version}"
submitter = "laboratory"
relationship = "other"
date = {date}

[files]
"""


def main(arguments: list[str] | None = None) -> int:
    """Print the seconds of a board, and how large it is."""
    parser = argparse.ArgumentParser(prog="python -m calibrant.bench.lab.boards", description=__doc__)
    parser.add_argument("--systems", type=int, default=125)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        suite, submissions, site = (Path(folder, name) for name in ("suite", "submissions", "site"))
        manifest = build_release(SUITE_FILE, suite)
        write_systems(suite, manifest, submissions, options.systems)
        start, cpu_start = time.perf_counter(), _cpu_seconds()
        summary = build_board(suite, submissions, site, execution=Execution(options.workers, 300.0))
        seconds, cpu_seconds = time.perf_counter() - start, _cpu_seconds() - cpu_start
        num_files = sum(path.is_file() for path in site.rglob("*"))
        num_bytes = sum(path.stat().st_size for path in site.rglob("*") if path.is_file())
    print(
        f"{summary.num_ranked} systems x {len(manifest.pools)} pools, {options.workers} workers: {seconds:.1f} s, "
        f"{cpu_seconds:.1f} s of processor time, "
        f"{num_files} files, {num_bytes / 1e6:.0f} MB, {len(summary.refused)} refused"
    )
    return 0


def _cpu_seconds() -> float:
    """Return the processor time of this process and of the workers that have ended."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def write_systems(suite: Path, manifest: Manifest, folder: Path, number: int) -> None:
    """Write submissions that mix the answers of rows."""
    random = Random(SEED)
    answers = {
        pool.name: [_lines(suite / "gold" / "rows" / row / f"{pool.name}.jsonl") for row in pool.rows]
        for pool in manifest.pools
    }
    for place in range(number):
        name = f"system-{place:04}"
        _write_system(folder / name, manifest, {pool: _mix(rows, random) for pool, rows in answers.items()})


def _lines(file: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def _mix(rows: Sequence[Sequence[Mapping[str, object]]], random: Random) -> str:
    chosen = [random.choice(answers) for answers in zip(*rows, strict=True)]
    return "".join(json.dumps({**line, "model": "mixed"}) + "\n" for line in chosen if random.random() > SHARE_LEFT_OUT)


def _write_system(folder: Path, manifest: Manifest, texts: Mapping[str, str]) -> None:
    folder.mkdir(parents=True)
    card = CARD.format(name=folder.name, suite=manifest.name, version=manifest.release, date=manifest.date)
    for pool, text in texts.items():
        (folder / f"{pool}.jsonl").write_text(text, encoding="utf-8")
        card += f'"{pool}.jsonl" = "{sha256(text.encode()).hexdigest()}"\n'
    (folder / "card.toml").write_text(card, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
