"""Memory and rate on a pool of 100,000 items: largest resident set of each command, items a second.

Items are those of a bundled pool over and over, under ids of their own. Commands run in one process each. ReplaySCM's
that take milliseconds an item get its easiest items; its `audit` finds records of all but the last hundred. `generate`
makes a fifth. Of official YAML, which takes 17 kB an item, a pool has as many as fit into the 1 GiB that one may have.
`export` needs the extra `hub`.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import cycle, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from calibrant.bench.core.registry import bundled_files
from calibrant.bench.lab.speed.report import Options, Row
from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.records import item_ids
from calibrant.dsl.replayscm.pools.files import read_pool

# --- Whole processes, measured from outside: what a command costs in this state of the project, and in another one ----
OURS = Path(sys.executable)
ROOT = Path(__file__).resolve().parents[3]
KIB = 1 << 10
PROCESSES = Path("/proc")  # of Linux
LOOKS = 0.5  # seconds between two looks at the memory of processes
SAID = 500  # characters of what a command said before it failed


class Cost(NamedTuple):
    """Cost of a process and of those that it started and waited for.

    processor: seconds, user and system; wall: seconds; peak: the largest resident set of any of them, in bytes
    peaks: the sum over all of them of the largest that each was seen to have; None where the system does not tell
    """

    processor: float
    wall: float
    peak: int
    peaks: int | None = None


def command_cost(
    python: Path,
    *arguments: str,
    folder: Path,
    environment: dict[str, str] | None = None,
    budget: float = threading.TIMEOUT_MAX,
) -> Cost:
    """Measure `calibrant ARGUMENTS` as installed for that Python, run in the folder; output goes into files there.

    This Python runs the checkout that it was started in, every other one what is installed for it. Raises
    CalibrantError with the end of what the command said if it does not end with 0, or not within so many seconds.
    """
    output = folder / "said.txt"
    start = time.monotonic()
    with output.open("wb") as errors, (folder / "printed.txt").open("wb") as printed:
        process = subprocess.Popen(
            [str(python), "-m", "calibrant.bench.cli", *arguments],
            cwd=folder,
            stdout=printed,
            stderr=errors,
            env=_environment(python) | (environment or {}),
        )
        with _watch(process.pid) as peaks, _ended_after(budget, process) as is_late:
            _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if is_late.is_set():
        raise CalibrantError(f"{arguments[0]}: not done in {budget:.0f} s")
    if process.returncode:
        raise CalibrantError(
            f"{python} -m calibrant.bench.cli {arguments[0]}: {output.read_text(errors='replace')[-SAID:]}"
        )
    return Cost(
        used.ru_utime + used.ru_stime, time.monotonic() - start, used.ru_maxrss * KIB, sum(peaks.values()) or None
    )


@contextmanager
def _ended_after(seconds: float, process: subprocess.Popen[bytes]) -> Iterator[threading.Event]:
    """Set once the process has been killed for taking longer; it is waited for while the context is open."""
    is_late = threading.Event()

    def kill() -> None:
        is_late.set()
        process.kill()

    timer = threading.Timer(seconds, kill)
    timer.daemon = True
    timer.start()
    try:
        yield is_late
    finally:
        timer.cancel()


@contextmanager
def _watch(process: int) -> Iterator[dict[int, int]]:
    """Watch the peaks in bytes by process, of that one and those that it starts, while the context is open."""
    peaks: dict[int, int] = {}
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(LOOKS):
            peaks.update(_peaks(process))

    watcher = threading.Thread(target=look, daemon=True)
    watcher.start()
    try:
        yield peaks
    finally:
        ended.set()
        watcher.join()


def _peaks(process: int) -> dict[int, int]:
    """Largest resident sets so far of a process and of all that descend from it."""
    parents: dict[int, int] = {}
    sizes: dict[int, int] = {}
    for status in PROCESSES.glob("[0-9]*/status"):
        try:
            fields = dict(line.split(":", 1) for line in status.read_text().splitlines() if ":" in line)
        except OSError:  # it has ended meanwhile
            continue
        if "VmHWM" in fields:
            parents[int(fields["Pid"])] = int(fields["PPid"])
            sizes[int(fields["Pid"])] = int(fields["VmHWM"].split()[0]) * KIB
    processes = {process}
    while more := {child for child, parent in parents.items() if parent in processes} - processes:
        processes |= more
    return {member: sizes[member] for member in processes if member in sizes}


def _environment(python: Path) -> dict[str, str]:
    inherited = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    return inherited | ({"PYTHONPATH": str(ROOT)} if python == OURS else {})


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
