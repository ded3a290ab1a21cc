"""Memory and rate on a pool of 100,000 items: largest resident set of each command, items a second.

A pool repeats the items of a bundled pool, each under a new id. Every command runs in one process of its own. Commands
of ReplaySCM that take milliseconds an item run on its easiest items. Its `audit` resumes: all items but 100
have an audit record beforehand. `generate` makes a fifth of the items. A pool in official YAML (17 kB an item) has as
many items as fit into the 1 GiB that such a file may have. `export` needs the extra `hub`.
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

# --- Cost of a command, measured as a whole process, for this checkout or for another installation --------------------
OURS = Path(sys.executable)  # this interpreter, which runs this checkout
ROOT = Path(__file__).resolve().parents[3]
KIB = 1 << 10
PROCESSES = Path("/proc")  # of Linux
POLL_SECONDS = 0.5  # between two readings of the memory of the processes
MAX_ERROR_CHARS = 500  # from the end of the standard error of a command that failed


class Cost(NamedTuple):
    """Cost of a process and of the processes that it started and waited for.

    processor: seconds, user and system; wall: seconds; peak: largest resident set of any one of them, in bytes
    sum_of_peaks: largest resident set of each, by polling, added up over all, in bytes; None without
    /proc, and of a command that ends before the first poll
    """

    processor: float
    wall: float
    peak: int
    sum_of_peaks: int | None = None


def command_cost(
    python: Path,
    *arguments: str,
    folder: Path,
    environment: dict[str, str] | None = None,
    budget: float = threading.TIMEOUT_MAX,
) -> Cost:
    """Measure `calibrant ARGUMENTS` as installed for that Python, run in the folder; output goes into files there.

    This Python runs this checkout, every other one the project that is installed for it. `CalibrantError`, with the end
    of the standard error, if the exit code is not 0 or the command takes more than `budget` seconds.
    """
    error_file = folder / "said.txt"
    start = time.monotonic()
    with error_file.open("wb") as errors, (folder / "printed.txt").open("wb") as printed:
        process = subprocess.Popen(
            [str(python), "-m", "calibrant.bench.cli", *arguments],
            cwd=folder,
            stdout=printed,
            stderr=errors,
            env=_environment(python) | (environment or {}),
        )
        with _watch(process.pid) as peaks, _kill_after(budget, process) as is_late:
            _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if is_late.is_set():
        raise CalibrantError(f"{arguments[0]}: not done in {budget:.0f} s")
    if process.returncode:
        error = error_file.read_text(errors="replace")[-MAX_ERROR_CHARS:]
        raise CalibrantError(f"{python} -m calibrant.bench.cli {arguments[0]}: {error}")
    return Cost(
        usage.ru_utime + usage.ru_stime, time.monotonic() - start, usage.ru_maxrss * KIB, sum(peaks.values()) or None
    )


@contextmanager
def _kill_after(seconds: float, process: subprocess.Popen[bytes]) -> Iterator[threading.Event]:
    """Kill the process once the time is up while the context is open; the event is set if it was killed."""
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
    """Poll the peak memory, in bytes by process id, of a process and its descendants while the context is open."""
    peaks: dict[int, int] = {}
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(POLL_SECONDS):
            peaks.update(_peaks(process))

    watcher = threading.Thread(target=look, daemon=True)
    watcher.start()
    try:
        yield peaks
    finally:
        ended.set()
        watcher.join()


def _peaks(process: int) -> dict[int, int]:
    """Return the largest resident sets so far, in bytes by process id, of a process and its descendants."""
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
    while children := {child for child, parent in parents.items() if parent in processes} - processes:
        processes |= children
    return {process_id: sizes[process_id] for process_id in processes if process_id in sizes}


def _environment(python: Path) -> dict[str, str]:
    inherited = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    return inherited | ({"PYTHONPATH": str(ROOT)} if python == OURS else {})


TOPIC = "memory"
# --- Pools of the measurement, and the commands that run on them ------------------------------------------------------
ITEMS = 100_000
OFFICIAL_ITEMS = 60_000
MAX_PEAK_BYTES = 500e6  # target for the resident set of a command
BUDGET = 3600.0  # seconds that a command may take
CHEAP = {  # fastest protocol of each benchmark, by benchmark
    "replayscm": "majority",
    "blickets": "abstain",
    "causalab": "random",
    "causim": "random_symbols",
    "logic": "abstain",
}
# stratum that `generate` is measured on, by benchmark; ReplaySCM's is in SLOW
SUITES = {"blickets": "easy-3", "causalab": "4nodes", "causim": "chain", "logic": "exact"}

NUM_EASY = 3  # a bundled pool begins with so many items of the easiest stratum
NUM_NEW = 100  # items without an audit record, which `audit` has to compute
NUM_ITEMS = "NUM_ITEMS"  # placeholder in a command

Commands = Mapping[str, tuple[str, ...]]
# of ReplaySCM: commands that take milliseconds an item, and `export`, in the order in which they run
SLOW: Commands = {
    "audit": ("audit", "pool.jsonl", "--out", "audits", "--workers", "1"),
    "audit --json": ("audit", "pool.jsonl", "--out", "audits", "--workers", "1", "--json"),
    "harden": (*("harden", "pool.jsonl", "--out", "hardened.jsonl", "--mode", "extra-worlds"), "--workers", "1"),
    "generate": (
        *("generate", "--out", "made.jsonl", "--seed", "1", "--strata", "hs_n6_easy_calibration"),
        *("--per-stratum", NUM_ITEMS, "--workers", "1"),
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
    num_items = max(1, round(ITEMS * options.scale))
    for benchmark, (pool, *_) in bundled_files().items():
        with TemporaryDirectory(prefix="calibrant-memory-") as scratch:
            folder = Path(scratch)
            _write_pool(pool, num_items, folder)
            for name, command in _commands(CHEAP[benchmark]).items():
                yield _row(benchmark, name, command, num_items, folder)
            if benchmark in SUITES:
                yield from _family_rows(benchmark, num_items, folder)
    with TemporaryDirectory(prefix="calibrant-memory-") as scratch:
        yield from _slow_rows(num_items, Path(scratch))
    with TemporaryDirectory(prefix="calibrant-memory-") as scratch:
        yield from _official_rows(max(1, round(OFFICIAL_ITEMS * options.scale)), Path(scratch))


def _official_rows(num_items: int, folder: Path) -> Iterator[Row]:
    _write_pool(bundled_files()["replayscm"][0], num_items, folder)
    _write_official(num_items, folder)
    for name, command in OFFICIAL.items():
        yield _row("replayscm, official YAML", name, command, num_items, folder)


def _family_rows(benchmark: str, num_items: int, folder: Path) -> Iterator[Row]:
    """Yield rows of a benchmark other than ReplaySCM, for the commands of SLOW that all have."""
    yield _row(benchmark, "audit", ("audit", "pool.jsonl"), num_items, folder)
    yield _row(benchmark, "audit --json", ("audit", "pool.jsonl", "--json"), num_items, folder)
    num_generated = max(1, num_items // 5)
    command = ("generate", "--benchmark", benchmark, "--strata", SUITES[benchmark], "--per-stratum", str(num_generated))
    yield _row(
        benchmark, "generate", (*command, "--seed", "1", "--workers", "1", "--out", "made.jsonl"), num_generated, folder
    )


def _slow_rows(num_items: int, folder: Path) -> Iterator[Row]:
    easiest = next(iter(bundled_files()["replayscm"]))
    _write_pool(easiest, num_items, folder, num_bundled=NUM_EASY)
    for name, command in SLOW.items():
        num_processed = max(1, num_items // 5) if name == "generate" else num_items
        if name == "audit":
            _write_audits(folder, min(num_items, NUM_EASY), num_items - min(num_items // 2, NUM_NEW))
        if name != "export" or find_spec("pyarrow"):
            yield _row(
                "replayscm",
                name,
                [str(num_processed) if word == NUM_ITEMS else word for word in command],
                num_processed,
                folder,
            )


def _commands(protocol: str) -> Commands:
    """Return commands by name; later commands read the files of earlier ones."""
    return {
        "pool check": ("pool", "check", "pool.jsonl"),
        "pool stats": ("pool", "stats", "pool.jsonl"),
        "pool convert": ("pool", "convert", "pool.jsonl", "converted.jsonl"),
        "prompts": ("prompts", "pool.jsonl", "--out", "prompts.jsonl"),
        f"run {protocol}": ("run", protocol, "pool.jsonl", "--out", "runs", "--workers", "1"),
        "table": ("table", "runs"),
        "score": ("score", "pool.jsonl", "responses.jsonl", "--out", "scores.jsonl", "--workers", "1"),
    }


def _row(benchmark: str, name: str, command: Sequence[str], num_items: int, folder: Path) -> Row:
    case = f"{benchmark}, {num_items:,} items"
    try:
        cost = command_cost(OURS, *command, folder=folder, budget=BUDGET)
    except CalibrantError as error:
        return Row(TOPIC, case, name, met=False, note=" ".join(str(error).split()))
    counts = {"peak MB": cost.peak / 1e6, "at most": MAX_PEAK_BYTES / 1e6, "processor s": cost.processor}
    return Row(TOPIC, case, name, "item", num_items / cost.processor, met=cost.peak <= MAX_PEAK_BYTES, counts=counts)


def _write_audits(folder: Path, num_audited: int, num_items: int) -> None:
    """Audit the first `num_audited` items and repeat their records, with new ids, for the first `num_items` items."""
    command_cost(OURS, *SLOW["audit"], "--limit", str(num_audited), folder=folder)
    path = folder / "audits" / "audits.jsonl"
    records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    with path.open("a", encoding="utf-8") as lines, (folder / "pool.jsonl").open(encoding="utf-8") as pool:
        for index, item in enumerate(islice(pool, num_audited + 1, num_items + 1), num_audited):
            record = records[index % num_audited] | {"instance": json.loads(item)["id"], "index": index}
            lines.write(json.dumps(record, separators=(",", ":")) + "\n")


def _write_pool(bundled: Path, num_items: int, folder: Path, *, num_bundled: int | None = None) -> None:
    """Write a pool that repeats the first bundled items, all if None, and for each item a response without answer."""
    head, *items = bundled.read_text(encoding="utf-8").splitlines()[: None if num_bundled is None else num_bundled + 1]
    ids = [json.loads(item)["id"] for item in items]
    with (
        (folder / "pool.jsonl").open("w", encoding="utf-8") as pool,
        (folder / "responses.jsonl").open("w") as responses,
    ):
        pool.write(head + "\n")
        for index, (item, item_id) in enumerate(islice(cycle(zip(items, ids, strict=True)), num_items)):
            name = f"{item_id}-{index}"
            pool.write(item.replace(json.dumps(item_id), json.dumps(name), 1) + "\n")
            responses.write(json.dumps({"instanceId": name, "model": "none", "response": "{}"}) + "\n")


def _write_official(num_items: int, folder: Path) -> None:
    """Write the items of `_write_pool` in the official format, repeated as text."""
    bundled = bundled_files()["replayscm"][0]
    command_cost(OURS, "pool", "convert", str(bundled), "bundled.yaml", folder=folder)
    head, *records = re.split(r"^(?=- problem:)", (folder / "bundled.yaml").read_text(encoding="utf-8"), flags=re.M)
    ids = item_ids(read_pool(bundled).problems)
    with (folder / "official.yaml").open("w", encoding="utf-8") as pool:
        pool.write(head)
        for index, (record, item_id) in enumerate(islice(cycle(zip(records, ids, strict=True)), num_items)):
            pool.write(record.replace(f"instanceId: {item_id}\n", f"instanceId: {item_id}-{index}\n", 1))
