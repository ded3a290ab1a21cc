"""Commands in processes of their own, with what they took; files that hold far more than they take."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from tests.support.commands import CHECKOUT, PROGRESS

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
