"""Whether an answer is right, and whether it is one, as the first column of the benchmark's table counts it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibrant.bench.core.benchmark import Benchmark
from calibrant.bench.core.metrics import InvalidHandling
from calibrant.bench.core.samples import Sample
from calibrant.bench.report.overview.contract import GUIDE


def is_right(of: Benchmark[Any], score: Mapping[str, Any], setting: str) -> bool:
    """Return whether an answer is right."""
    guide = of.capability(GUIDE)
    return _sample(of, score, setting).correct if guide is None else guide.is_right(score, setting)


def is_answered(of: Benchmark[Any], score: Mapping[str, Any], setting: str) -> bool:
    """Return whether there is an answer at all."""
    guide = of.capability(GUIDE)
    return _sample(of, score, setting).valid if guide is None else guide.is_answered(score)


def _sample(of: Benchmark[Any], score: Mapping[str, Any], setting: str) -> Sample:
    return of.metrics.sample(of.metrics.verdict(score, setting, InvalidHandling.PUBLISHED))
