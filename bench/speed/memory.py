"""What a pool of 100,000 items takes: the largest resident set of each command, and items a second.

Items are those of a bundled pool over and over, under ids of their own. Commands run in one process each.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import cycle, islice
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.pools.bundled import bundled_files
from bench.speed.comparison import Row
from bench.speed.options import Options
from bench.speed.processes import OURS, command_cost
from dsl.errors import CalibrantError

TOPIC = "memory"
ITEMS = 100_000
MOST = 500e6  # bytes
CHEAP = {"replayscm": "majority", "blickets": "abstain", "causalab": "random", "causim": "random_symbols"}

Commands = Mapping[str, tuple[str, ...]]


def rows(options: Options) -> Iterator[Row]:
    number = max(1, round(ITEMS * options.scale))
    for benchmark, (pool, *_) in bundled_files().items():
        with TemporaryDirectory(prefix="calibrant-memory-") as scratch:
            folder = Path(scratch)
            _write_pool(pool, number, folder)
            for name, line in _commands(CHEAP[benchmark]).items():
                yield _row(benchmark, name, line, number, folder)


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


def _row(benchmark: str, name: str, line: tuple[str, ...], number: int, folder: Path) -> Row:
    case = f"{benchmark}, {number:,} items"
    try:
        cost = command_cost(OURS, *line, folder=folder)
    except CalibrantError as error:
        return Row(TOPIC, case, name, met=False, note=" ".join(str(error).split()))
    counts = {"peak MB": cost.peak / 1e6, "at most": MOST / 1e6, "processor s": cost.processor}
    return Row(TOPIC, case, name, "item", number / cost.processor, met=cost.peak <= MOST, counts=counts)


def _write_pool(bundled: Path, number: int, folder: Path) -> None:
    """The pool, and for every item a response that answers nothing."""
    head, *items = bundled.read_text(encoding="utf-8").splitlines()
    ids = [json.loads(item)["id"] for item in items]
    with (folder / "pool.jsonl").open("w", encoding="utf-8") as pool, (folder / "responses.jsonl").open("w") as told:
        pool.write(head + "\n")
        for index, (item, known) in enumerate(islice(cycle(zip(items, ids, strict=True)), number)):
            name = f"{known}-{index}"
            pool.write(item.replace(json.dumps(known), json.dumps(name), 1) + "\n")
            told.write(json.dumps({"instanceId": name, "model": "none", "response": "{}"}) + "\n")
