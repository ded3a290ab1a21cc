"""Commands in processes of their own, with what they took; files that hold far more than they take."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from tests.support.commands import CHECKOUT, PROGRESS

MEGABYTE = 1 << 20


class Cost(NamedTuple):
    """code: exit code; error: standard error; peak: megabytes of resident memory; seconds: of the clock"""

    code: int
    error: str
    peak: float
    seconds: float


def command_cost(*arguments: object, limit: float = 120) -> Cost:
    """Run the command with warnings as errors; killed after `limit` seconds, which the code shows."""
    line = ["timeout", "-s", "KILL", str(limit), sys.executable, "-W", "error", "-m", "bench.cli", *map(str, arguments)]
    start = time.monotonic()
    process = subprocess.Popen(line, cwd=CHECKOUT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr is not None
    error = process.stderr.read().decode(errors="replace")
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stderr.close()
    return Cost(process.returncode, PROGRESS.sub("", error), usage.ru_maxrss / 1024, time.monotonic() - start)


def repeated_gzip(path: Path, before: bytes, block: bytes, times: int, after: bytes = b"") -> Path:
    """Write a gzip file of `before`, a block many times over and `after`, compressing the block once."""
    member = gzip.compress(block)
    with path.open("wb") as file:
        file.write(gzip.compress(before))
        for _ in range(times):
            file.write(member)
        file.write(gzip.compress(after))
    return path
