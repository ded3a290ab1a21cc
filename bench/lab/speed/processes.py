"""Whole processes, measured from outside: what a command costs in this state of the project, and in another one."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from calibrant.dsl.errors import CalibrantError

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
