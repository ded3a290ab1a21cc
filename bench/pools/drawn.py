"""Pools whose items are drawn suite by suite, by any crew."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from bench.benchmarks.base import Benchmark
from bench.benchmarks.registry import benchmark
from bench.runs.crews.opening import completed
from bench.runs.jobs import HERE, Execution, Failure
from dsl.errors import CalibrantError


def write_drawn(
    of: Benchmark[Any], path: Path, suites: Sequence[str], seed: int, count: int, execution: Execution = HERE
) -> int:
    """Write a pool of so many items of each suite, each suite a job; how many items in all.

    The same arguments give the same bytes, whoever draws: what is drawn of a suite depends on no other one.
    """
    draw = partial(_drawn, of.name, seed, count)
    made: dict[int, Sequence[Any]] = {}
    for place, items in completed(draw, dict(enumerate(suites)), execution):
        if isinstance(items, Failure):
            raise CalibrantError(f"suite {suites[place]}: {items.error}")
        made[place] = items
    return of.write_items(path, [item for place in sorted(made) for item in made[place]], suites, seed, count)


def _drawn(name: str, seed: int, count: int, suite: str) -> Sequence[Any]:
    return benchmark(name).drawn([suite], seed, count)
