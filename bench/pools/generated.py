"""Pools whose items are drawn suite by suite, or in parts of suites, by any crew."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from calibrant.bench.core.benchmark import Benchmark
from calibrant.bench.core.options import OptionError
from calibrant.bench.core.registry import benchmark
from calibrant.bench.pools.capabilities import GenerateRequest
from calibrant.bench.runs.executors.opening import as_completed
from calibrant.bench.runs.jobs import HERE, Execution, Failure, Progress
from calibrant.bench.runs.spill_file import SpillBuffer
from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.item import Pool


def write_drawn(
    of: Benchmark[Any],
    path: Path,
    suites: Sequence[str],
    seed: int,
    count: int,
    execution: Execution = HERE,
    *,
    progress: Progress = lambda name, done, total: None,
) -> int:
    """Write a pool of so many items of each suite, each part of a suite a job; return the number of items.

    The same arguments give the same bytes for any executor: parts are drawn independently of each other.
    """
    parts = [(suite, places) for suite in suites for places in of.suites.parts(count)]
    done, total = 0, count * len(suites)
    progress(path.name, done, total)
    with SpillBuffer[Any]() as stored:
        for number, items in as_completed(partial(_draw_part, of.name, seed), dict(enumerate(parts)), execution):
            suite, places = parts[number]
            if isinstance(items, Failure):
                raise CalibrantError(f"suite {suite}: {items.error}")
            for place, item in enumerate(items):
                stored.add((number, place), item)
            done += len(places)
            progress(path.name, done, total)
        items = stored.values()
        about = {"seed": seed, "suites": list(suites), "count": count}
        of.items.write_pool(Pool(path.name.partition(".")[0], of.name, items, about), path)
        return len(items)


def _draw_part(name: str, seed: int, part: tuple[str, range]) -> Sequence[Any]:
    return benchmark(name).suites.draw_part(part[0], seed, part[1])


@dataclass(frozen=True)
class SuiteGenerator:
    """Implements Generatable for the benchmark of that name: so many items of each of its suites."""

    name: str
    workers: int | None = 1  # most suites take milliseconds

    def generate(self, request: GenerateRequest, options: Any) -> Sequence[str]:
        of = benchmark(self.name)
        suites = (
            list(of.suites.names) if request.suites == "all" else [part.strip() for part in request.suites.split(",")]
        )
        for suite in suites:
            if suite not in of.suites.names:
                raise OptionError(f"unknown suite '{suite}'; known: {', '.join(of.suites.names)}", "--strata")
        number = write_drawn(
            of, request.out, suites, request.seed, request.count, request.execution, progress=request.progress
        )
        return [f"{number} instances written to {request.out}"]
