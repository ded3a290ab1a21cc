"""Processes of other programs, as Linux shows them."""

from __future__ import annotations

import signal
import time
from pathlib import Path


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
