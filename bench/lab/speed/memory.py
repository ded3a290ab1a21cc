"""Memory and rate on a pool of 100,000 items: largest resident set of each command, items a second.

Items are those of a bundled pool over and over, under ids of their own. Commands run in one process each. ReplaySCM's
that take milliseconds an item get its easiest items; its `audit` finds records of all but the last hundred. `generate`
makes a fifth. Of official YAML, which takes 17 kB an item, a pool has as many as fit into the 1 GiB that one may have.
`export` needs the extra `hub`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from itertools import cycle, islice
from pathlib import Path
from tempfile import TemporaryDirectory

from calibrant.bench.lab.speed.comparison import Row
from calibrant.bench.lab.speed.options import Options
from calibrant.bench.lab.speed.processes import OURS, command_cost
from calibrant.bench.pools.bundled import bundled_files
from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.records import item_ids
from calibrant.dsl.replayscm.pools.files import read_pool

TOPIC = "memory"
ITEMS = 100_000
OFFICIAL_ITEMS = 60_000
MOST = 500e6  # bytes
BUDGET = 3600.0  # seconds that a command may take
CHEAP = {
    "replayscm": "majority",
    "blickets": "abstain",
    "causalab": "random",
    "causim": "random_symbols",
    "logic": "abstain",
}
SUITES = {"blickets": "easy-3", "causalab": "4nodes", "causim": "chain", "logic": "exact"}

EASY = 3  # items of the easiest stratum that a bundled pool begins with
NEW = 100

Commands = Mapping[str, tuple[str, ...]]
SLOW: Commands = {
    "audit": ("audit", "pool.jsonl", "--out", "audits", "--workers", "1"),
    "audit --json": ("audit", "pool.jsonl", "--out", "audits", "--workers", "1", "--json"),
    "harden": (*("harden", "pool.jsonl", "--out", "hardened.jsonl", "--mode", "extra-worlds"), "--workers", "1"),
    "generate": (
        *("generate", "--out", "made.jsonl", "--seed", "1", "--strata", "hs_n6_easy_calibration"),
        *("--per-stratum", "NUMBER", "--workers", "1"),
    ),
    "run first-found": ("run", "first-found", "pool.jsonl", "--out", "found", "--workers", "1"),
    "alternatives": ("alternatives", "found", "--out", "alternatives.jsonl"),
    "export": ("export", "pool.jsonl", "--out", "exported"),
}

OFFICIAL: Commands = {
    "pool check": ("pool", "check", "official.yaml"),
    "pool stats": ("pool", "stats", "official.yaml"),
    "pool convert": ("pool", "convert", "official.yaml", "converted.jsonl"),
    "pool convert back": ("pool", "convert", "converted.jsonl", "converted.yaml"),
    "prompts": ("prompts", "official.yaml", "--out", "prompts.jsonl"),
    "score": ("score", "official.yaml", "responses.jsonl", "--out", "scores.jsonl", "--workers", "1"),
}


def rows(options: Options) -> Iterator[Row]:
    number = max(1, round(ITEMS * options.scale))
    for benchmark, (pool, *_) in bundled_files().items():
        with TemporaryDirectory(prefix="calibrant-memory-") as scratch:
            folder = Path(scratch)
            _write_pool(pool, number, folder)
            for name, line in _commands(CHEAP[benchmark]).items():
                yield _row(benchmark, name, line, number, folder)
            if benchmark in SUITES:
                yield from _sibling_rows(benchmark, number, folder)
    with TemporaryDirectory(prefix="calibrant-memory-") as scratch:
        yield from _slow_rows(number, Path(scratch))
    with TemporaryDirectory(prefix="calibrant-memory-") as scratch:
        yield from _official_rows(max(1, round(OFFICIAL_ITEMS * options.scale)), Path(scratch))


def _official_rows(number: int, folder: Path) -> Iterator[Row]:
    _write_pool(bundled_files()["replayscm"][0], number, folder)
    _write_official(number, folder)
    for name, line in OFFICIAL.items():
        yield _row("replayscm, official YAML", name, line, number, folder)


def _sibling_rows(benchmark: str, number: int, folder: Path) -> Iterator[Row]:
    """Yield rows of the other benchmarks, for commands that work differently on ReplaySCM."""
    yield _row(benchmark, "audit", ("audit", "pool.jsonl"), number, folder)
    yield _row(benchmark, "audit --json", ("audit", "pool.jsonl", "--json"), number, folder)
    num_generated = max(1, number // 5)
    command = ("generate", "--benchmark", benchmark, "--strata", SUITES[benchmark], "--per-stratum", str(num_generated))
    yield _row(
        benchmark, "generate", (*command, "--seed", "1", "--workers", "1", "--out", "made.jsonl"), num_generated, folder
    )


def _slow_rows(number: int, folder: Path) -> Iterator[Row]:
    easiest = next(iter(bundled_files()["replayscm"]))
    _write_pool(easiest, number, folder, first=EASY)
    for name, line in SLOW.items():
        num_items = max(1, number // 5) if name == "generate" else number
        if name == "audit":
            _write_audits(folder, min(number, EASY), number - min(number // 2, NEW))
        if name != "export" or find_spec("pyarrow"):
            yield _row(
                "replayscm", name, [str(num_items) if word == "NUMBER" else word for word in line], num_items, folder
            )


def _commands(protocol: str) -> Commands:
    """Later ones read what earlier ones wrote."""
    return {
        "pool check": ("pool", "check", "pool.jsonl"),
        "pool stats": ("pool", "stats", "pool.jsonl"),
        "pool convert": ("pool", "convert", "pool.jsonl", "converted.jsonl"),
        "prompts": ("prompts", "pool.jsonl", "--out", "prompts.jsonl"),
        f"run {protocol}": ("run", protocol, "pool.jsonl", "--out", "runs", "--workers", "1"),
        "table": ("table", "runs"),
        "score": ("score", "pool.jsonl", "responses.jsonl", "--out", "scores.jsonl", "--workers", "1"),
    }


def _row(benchmark: str, name: str, line: Sequence[str], number: int, folder: Path) -> Row:
    case = f"{benchmark}, {number:,} items"
    try:
        cost = command_cost(OURS, *line, folder=folder, budget=BUDGET)
    except CalibrantError as error:
        return Row(TOPIC, case, name, met=False, note=" ".join(str(error).split()))
    counts = {"peak MB": cost.peak / 1e6, "at most": MOST / 1e6, "processor s": cost.processor}
    return Row(TOPIC, case, name, "item", number / cost.processor, met=cost.peak <= MOST, counts=counts)


def _write_audits(folder: Path, num_known: int, number: int) -> None:
    """Return the records that an audit of the first so many items would have written, from those of the first few."""
    command_cost(OURS, *SLOW["audit"], "--limit", str(num_known), folder=folder)
    path = folder / "audits" / "audits.jsonl"
    records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    with path.open("a", encoding="utf-8") as lines, (folder / "pool.jsonl").open(encoding="utf-8") as pool:
        for index, item in enumerate(islice(pool, num_known + 1, number + 1), num_known):
            record = records[index % num_known] | {"instance": json.loads(item)["id"], "index": index}
            lines.write(json.dumps(record, separators=(",", ":")) + "\n")


def _write_pool(bundled: Path, number: int, folder: Path, *, first: int | None = None) -> None:
    """Write a pool from the first so many bundled items, and for every item a response without an answer."""
    head, *items = bundled.read_text(encoding="utf-8").splitlines()[: None if first is None else first + 1]
    ids = [json.loads(item)["id"] for item in items]
    with (
        (folder / "pool.jsonl").open("w", encoding="utf-8") as pool,
        (folder / "responses.jsonl").open("w") as responses,
    ):
        pool.write(head + "\n")
        for index, (item, item_id) in enumerate(islice(cycle(zip(items, ids, strict=True)), number)):
            name = f"{item_id}-{index}"
            pool.write(item.replace(json.dumps(item_id), json.dumps(name), 1) + "\n")
            responses.write(json.dumps({"instanceId": name, "model": "none", "response": "{}"}) + "\n")


def _write_official(number: int, folder: Path) -> None:
    """Return the same items in the official format, repeated as text."""
    bundled = bundled_files()["replayscm"][0]
    command_cost(OURS, "pool", "convert", str(bundled), "bundled.yaml", folder=folder)
    head, *records = re.split(r"^(?=- problem:)", (folder / "bundled.yaml").read_text(encoding="utf-8"), flags=re.M)
    ids = item_ids(read_pool(bundled).problems)
    with (folder / "official.yaml").open("w", encoding="utf-8") as pool:
        pool.write(head)
        for index, (record, item_id) in enumerate(islice(cycle(zip(records, ids, strict=True)), number)):
            pool.write(record.replace(f"instanceId: {item_id}\n", f"instanceId: {item_id}-{index}\n", 1))
