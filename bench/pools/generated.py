"""Pools whose items are drawn suite by suite, or in parts of suites, by any crew."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from calibrant.bench.core.benchmark import Benchmark
from calibrant.bench.core.options import OptionError
from calibrant.bench.core.registry import benchmark, is_native_pool
from calibrant.bench.pools.capabilities import GENERATE, GenerateRequest
from calibrant.bench.pools.item_options import ItemOptions, read_item_options
from calibrant.bench.runs.jobs import HERE, Execution, Failure, Progress
from calibrant.bench.runs.opening import as_completed
from calibrant.bench.runs.spill_file import SpillBuffer
from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.item import Item, Pool
from calibrant.dsl.records import plain_pool, pool_lines
from calibrant.dsl.text import known_names, plural


def write_drawn(
    of: Benchmark[Any],
    path: Path,
    suites: Sequence[str],
    seed: int,
    count: int,
    execution: Execution = HERE,
    *,
    progress: Progress = lambda name, done, total: None,
    options: ItemOptions | None = None,
) -> int:
    """Write a pool of so many items of each suite, each part of a suite a job; return the number of items.

    The same arguments give the same bytes for any executor: parts are drawn independently of each other.
    """
    parts = [(suite, places) for suite in suites for places in of.suites.parts(count)]
    done, total = 0, count * len(suites)
    progress(path.name, done, total)

    def report() -> None:
        nonlocal done
        done += 1
        progress(path.name, done, total)

    with SpillBuffer[Any]() as stored:
        # of other processes a part is reported as a whole
        item_report = report if execution == HERE else None
        work = partial(_draw_part, of.name, seed, None if options is None else options.values, item_report)
        num_drawn = 0
        for number, items in as_completed(work, dict(enumerate(parts)), execution):
            suite, places = parts[number]
            if isinstance(items, Failure):
                raise CalibrantError(f"suite {suite}: {items.error}")
            for place, item in enumerate(items):
                stored.add((number, place), item)
            num_drawn += len(places)
            if done != num_drawn:  # also where a suite has fewer items
                done = num_drawn
                progress(path.name, done, total)
        about: dict[str, Any] = {"seed": seed, "suites": list(suites), "count": count}
        about |= {} if options is None else {"options": dict(options.stated)}
        items = stored.values()
        of.items.write_pool(Pool(path.name.partition(".")[0], of.name, items, about), path)
        return len(items)


def _draw_part(
    name: str, seed: int, options: Any, report: Callable[[], None] | None, part: tuple[str, range]
) -> Sequence[Any]:
    """Draw a part of a suite; report: called after each item."""
    items = []
    for item in _iterate_part(name, seed, options, part):
        items.append(item)
        if report is not None:
            report()
    return items


def _iterate_part(name: str, seed: int, options: Any, part: tuple[str, range]) -> Iterator[Any]:
    of = benchmark(name)
    if options is None:
        return of.suites.iterate_part(part[0], seed, part[1])
    generator = of.require(GENERATE)
    assert isinstance(generator, SuiteGenerator)
    return iter(generator.draw(part[0], seed, part[1], options))


def chosen_suites(name: str, text: str) -> list[str]:
    """Return the suites that --strata names; `OptionError` for an unknown one."""
    of = benchmark(name)
    suites = list(of.suites.names) if text == "all" else [part.strip() for part in text.split(",")]
    for suite in suites:
        if suite not in of.suites.names:
            raise OptionError(f"unknown suite '{suite}'; {known_names(suite, of.suites.names)}", "--strata")
    return suites


@dataclass(frozen=True)
class SuiteGenerator:
    """Implements Generatable for the benchmark of that name: so many items of each of its suites.

    draw: the items of a suite at some places under options: suite, seed, places, Struct of options
    """

    name: str
    draw: Callable[[str, int, range, Any], Iterable[Any]]
    workers: int | None = 1  # most suites take milliseconds

    def generate(self, request: GenerateRequest, options: Any) -> Sequence[str]:
        item_options = read_item_options("generate", self.name, request.item_options)
        return (
            self._write_suites(request, None)
            if item_options is None
            else self.generate_with_options(request, item_options)
        )

    def generate_with_options(self, request: GenerateRequest, options: ItemOptions) -> Sequence[str]:
        """Write a pool of items with options; return lines that say what was written."""
        return self._write_suites(request, options)

    def _write_suites(self, request: GenerateRequest, options: ItemOptions | None) -> Sequence[str]:
        suites = chosen_suites(self.name, request.suites)
        if options is not None:
            for suite in suites:  # refused before work
                self.draw(suite, request.seed, range(0), options.values)
        number = write_drawn(
            benchmark(self.name),
            request.out,
            suites,
            request.seed,
            request.num_items,
            request.execution,
            progress=request.progress,
            options=options,
        )
        return [f"{plural(number, 'instances')} written to {request.out}"]


# --- Some items of a pool as a pool of their own ----------------------------------------------------------------------


def write_part(of: Benchmark[Any], pool: Any, items: Iterable[Item[Any, Any]], target: Path) -> None:
    """Write these items of a pool that `read_pool` gave, with its name and metadata, in the native format."""
    of.items.write_pool(Pool(pool.name, of.name, tuple(items), dict(pool.metadata)), target)


def write_indices(benchmark: Benchmark[Any], pool: Any, source: Path, indices: Sequence[int], target: Path) -> None:
    """Write the items at these indices of the pool that `source` holds; lines of a native pool are copied."""
    if not is_native_pool(source):
        write_part(benchmark, pool, (pool.items[index] for index in indices), target)
        return
    write_part(benchmark, pool, (), target)
    with plain_pool(source) as file, target.open("ab") as part:
        places = [(line.place, line.size) for line in pool_lines(file)][1:]  # the first is the header
        for index in indices:
            start, size = places[index]
            file.seek(start)
            part.write(file.read(size).rstrip(b"\r\n") + b"\n")
