"""Processes of other programs, as Linux shows them."""

from __future__ import annotations

import time
from pathlib import Path


def children(pid: int) -> list[int]:
    """The processes that a process has started and not yet collected."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        found += map(int, task.read_text(encoding="ascii").split())
    return found


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
