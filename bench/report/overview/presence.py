"""Whether there is an answer at all, as the first column of the benchmark's table counts it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibrant.bench.core.benchmark import Benchmark
from calibrant.bench.core.metrics import InvalidHandling
from calibrant.bench.report.overview.contract import GUIDE


def is_answered(of: Benchmark[Any], score: Mapping[str, Any], setting: str) -> bool:
    """Return whether there is an answer at all."""
    guide = of.capability(GUIDE)
    if guide is not None:
        return guide.is_answered(score)
    return of.metrics.sample(of.metrics.verdict(score, setting, InvalidHandling.PUBLISHED)).valid
