"""Certificates of a suite's pool, checked by plain counting: alike when it is built and before a board ranks by it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from calibrant.bench.core.benchmark import Benchmark
from calibrant.bench.pools.capabilities import VERIFY
from calibrant.bench.pools.certificate_files import Verdict, check_file
from calibrant.bench.pools.verification_limit import VERIFY_SECONDS
from calibrant.bench.runs.jobs import Progress
from calibrant.dsl.errors import in_one_line

FOLDER = "certificates"  # beside the pool's file


def certificate_names(pool: Path) -> tuple[str, ...]:
    """Return the names of the certificates of a pool's file, in order."""
    return tuple(sorted(path.name for path in (pool.parent / FOLDER).glob("*")))


def certificate_problem(of: Benchmark[Any], pool: Path, progress: Progress = lambda name, done, total: None) -> str:
    """Check all certificates of a pool; return why the first does not hold or stays open, empty if all are verified."""
    check = of.require(VERIFY).check_against(pool)
    names = certificate_names(pool)
    for number, name in enumerate(names):
        progress("certificates", number, len(names))
        result = check_file(pool.parent / FOLDER / name, check, VERIFY_SECONDS)
        if result.verdict is not Verdict.VERIFIED:
            return in_one_line(f"{name}: {result.verdict}: {result.reason}")
    return ""
