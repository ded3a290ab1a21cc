"""Whole processes, measured from outside: what a command costs in this state of the project, and in another one."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from dsl.errors import CalibrantError

OURS = Path(sys.executable)
ROOT = Path(__file__).resolve().parents[2]
KIB = 1 << 10
SAID = 500  # characters of what a command said before it failed


class Cost(NamedTuple):
    """Of a process and of those that it started and waited for.

    processor: seconds, user and system; wall: seconds; peak: the largest resident set of any of them, in bytes
    """

    processor: float
    wall: float
    peak: int


def command_cost(python: Path, *arguments: str, folder: Path, environment: dict[str, str] | None = None) -> Cost:
    """Of `calibrant ARGUMENTS` as installed for that Python, run in the folder; its output goes into files there.

    This Python runs the checkout that it was started in, every other one what is installed for it. Raises
    CalibrantError with the end of what the command said if it does not end with 0.
    """
    said = folder / "said.txt"
    start = time.monotonic()
    with said.open("wb") as errors, (folder / "printed.txt").open("wb") as printed:
        process = subprocess.Popen(
            [str(python), "-m", "bench.cli", *arguments],
            cwd=folder,
            stdout=printed,
            stderr=errors,
            env=_environment(python) | (environment or {}),
        )
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise CalibrantError(f"{python} -m bench.cli {arguments[0]}: {said.read_text(errors='replace')[-SAID:]}")
    return Cost(used.ru_utime + used.ru_stime, time.monotonic() - start, used.ru_maxrss * KIB)


def _environment(python: Path) -> dict[str, str]:
    inherited = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    return inherited | ({"PYTHONPATH": str(ROOT)} if python == OURS else {})
