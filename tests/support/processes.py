"""Processes of other programs, and commands in processes of their own with what they took."""

from __future__ import annotations

import gzip
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.support.commands import CHECKOUT, PROGRESS


# --- Processes of other programs, as Linux shows them -----------------------------------------------------------------
def children(pid: int) -> list[int]:
    """Return the processes that a process has started and not yet collected."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        found += map(int, task.read_text(encoding="ascii").split())
    return found


def command(pid: int) -> str:
    """Return the program that a process runs, and its arguments.

    While it is being started, those of the one that does.
    """
    return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")


def blocks(pid: int, which: signal.Signals) -> bool:
    """Whether a signal waits until a process, its first thread, lets it in."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace")
    mask = next(line for line in status.splitlines() if line.startswith("SigBlk:")).split()[1]
    return bool(int(mask, 16) >> (which - 1) & 1)


def ended(pid: int) -> bool:
    """Whether a process is no more, or is only waiting to be collected."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return True
    return stat.rpartition(")")[2].split()[0] in "ZX"


def all_end(pids: list[int], seconds: float) -> bool:
    """Whether all of them end within so many seconds."""
    deadline = time.monotonic() + seconds
    while not all(map(ended, pids)):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


# --- Commands in processes of their own, with what they took; files that hold far more than they take -----------------
MEGABYTE = 1 << 20


class Cost(NamedTuple):
    """Cost of a command.

    code: exit code; error: standard error; peak: megabytes of resident memory; seconds: of the processor
    """

    code: int
    error: str
    peak: float
    seconds: float


# One interpreter imports the commands; each is a child of it, so that none starts anew. `ru_maxrss` of a child begins
# with what its parent has at the fork: 100 MB there, 1.1 GB in a long run of tests.
MEASURE = """
import json, os, resource, signal, sys, tempfile
from calibrant.bench.cli import main
from calibrant.bench.commands import pool, score, table
from calibrant.bench.core.registry import benchmark
from calibrant.bench.scoring import files, formats, scorer
benchmark("replayscm").items
for line in json.load(sys.stdin):
    with tempfile.TemporaryFile() as errors:
        child = os.fork()
        if not child:
            resource.setrlimit(resource.RLIMIT_CPU, (int(sys.argv[1]),) * 2)
            signal.alarm(10 * int(sys.argv[1]))  # of the clock: a command that waits takes no time of the processor
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            os.dup2(errors.fileno(), 2)
            code = main(line)
            sys.stderr.flush()
            os._exit(code)
        _, status, used = os.wait4(child, 0)
        errors.seek(0)
        error = errors.read().decode(errors="replace")
    print(json.dumps([os.waitstatus_to_exitcode(status), error, used.ru_maxrss, used.ru_utime + used.ru_stime]))
"""


def command_costs(lines: Iterable[Sequence[object]], limit: int = 120) -> list[Cost]:
    """Run commands with warnings as errors, each in a process.

    It is killed after `limit` seconds of the processor, or ten times as many of the clock.
    Bounds on time are asserted of `seconds`: those of the clock grow with whatever else the machine does.
    """
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", MEASURE, str(limit)],
        input=json.dumps([list(map(str, line)) for line in lines]),
        cwd=CHECKOUT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    costs = map(json.loads, done.stdout.splitlines())
    return [Cost(code, PROGRESS.sub("", error), peak / 1024, seconds) for code, error, peak, seconds in costs]


def repeated_gzip(path: Path, before: bytes, block: bytes, times: int, after: bytes = b"") -> Path:
    """Write a gzip file of `before`, a block many times over and `after`, compressing the block once."""
    member = gzip.compress(block)
    with path.open("wb") as file:
        file.write(gzip.compress(before))
        for _ in range(times):
            file.write(member)
        file.write(gzip.compress(after))
    return path
