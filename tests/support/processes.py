"""Processes of other programs, and commands in processes of their own with what they took."""

from __future__ import annotations

import gzip
import signal
import subprocess
import sys
import time
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


# `ru_maxrss` of a child begins with what its parent has at the fork, 1.1 GB in a long run of tests: a small process
# between them starts the command and prints its figure.
MEASURE = """
import resource, subprocess, sys
code = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(code, used.ru_maxrss, used.ru_utime + used.ru_stime)
"""


def command_cost(*arguments: object, limit: float = 120) -> Cost:
    """Run the command with warnings as errors; killed after `limit` seconds of the clock, which the code shows.

    Bounds on time are asserted of `seconds`: those of the clock grow with whatever else the machine does.
    """
    command = ["timeout", "-s", "KILL", str(limit), sys.executable, "-W", "error", "-m", "calibrant.bench.cli"]
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, *command, *map(str, arguments)],
        cwd=CHECKOUT, capture_output=True, text=True, errors="replace", check=True,
    )  # fmt: skip
    code, peak, seconds = done.stdout.split()
    return Cost(int(code), PROGRESS.sub("", done.stderr), int(peak) / 1024, float(seconds))


def repeated_gzip(path: Path, before: bytes, block: bytes, times: int, after: bytes = b"") -> Path:
    """Write a gzip file of `before`, a block many times over and `after`, compressing the block once."""
    member = gzip.compress(block)
    with path.open("wb") as file:
        file.write(gzip.compress(before))
        for _ in range(times):
            file.write(member)
        file.write(gzip.compress(after))
    return path
