"""Pools whose items are drawn suite by suite, or in parts of suites, by any crew."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

from calibrant.bench.core.benchmark import Benchmark
from calibrant.bench.core.capabilities import Drawable, SuiteUnits
from calibrant.bench.core.options import OptionError
from calibrant.bench.core.registry import benchmark, is_native_pool
from calibrant.bench.pools.capabilities import GENERATE, GenerateRequest
from calibrant.bench.pools.item_options import ItemOptions, read_item_options
from calibrant.bench.runs.executors import InProcessExecutor
from calibrant.bench.runs.jobs import HERE, Execution, Failure, Progress
from calibrant.bench.runs.opening import open_executor, prepare_nothing
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
    done, total = 0, count * len(suites)
    progress(path.name, done, total)

    def report() -> None:
        nonlocal done
        done += 1
        progress(path.name, done, total)

    values = None if options is None else options.values
    draws = [_SuiteDraw(of.suites, values, index, suite, count) for index, suite in enumerate(suites)]
    draw_local = partial(_draw_part, of.name, seed, values, report)
    # of other processes a part is reported as a whole
    draw_remote = draw_local if execution == HERE else partial(_draw_part, of.name, seed, values, None)
    with SpillBuffer[Any]() as stored, open_executor(prepare_nothing, execution) as executor:
        num_drawn = 0
        while parts := [part for draw in draws for part in draw.next_parts()]:
            local = {key: part for key, part in enumerate(parts) if draws[part.suite_index].is_sequence}
            remote = {key: part for key, part in enumerate(parts) if key not in local}
            for key, items in chain(
                InProcessExecutor().as_completed(draw_local, local), executor.as_completed(draw_remote, remote)
            ):
                part = parts[key]
                if isinstance(items, Failure):
                    raise CalibrantError(f"suite {part.suite}: {items.error}")
                for index, item in enumerate(items):
                    stored.add((part.suite_index, part.places.start, index), item)
                num_drawn += draws[part.suite_index].add(part, len(items))
                if done != num_drawn:  # also where a suite has fewer items
                    done = num_drawn
                    progress(path.name, done, total)
        about: dict[str, Any] = {"seed": seed, "suites": list(suites), "count": count}
        about |= {} if options is None else {"options": dict(options.stated)}
        items = stored.values()
        of.items.write_pool(Pool(path.name.partition(".")[0], of.name, items, about), path)
        return len(items)


class _Part(NamedTuple):
    """Work of one job: the items of a suite at these places, or those of the unit of that number.

    suite_index: of the suite among those requested; max_items: of the part
    """

    suite_index: int
    suite: str
    places: range
    max_items: int


class _SuiteDraw:
    """A suite of which some items are drawn: all parts at once, or units until there are enough items."""

    def __init__(self, suites: Drawable[Any], options: Any, index: int, suite: str, num_items: int) -> None:
        self._parts = suites.parts(num_items)
        self._units = suites.units(suite, options)
        self.is_sequence = self._units is None and suites.are_sequences
        self._index = index
        self._suite = suite
        self._num_missing = num_items
        self._num_begun = 0  # parts or units
        self._num_empty = 0  # units in a row, up to the last
        self._sizes: dict[int, int] = {}  # items of the units drawn last, by number

    def next_parts(self) -> Sequence[_Part]:
        """Return the parts to draw next; none if there are enough items.

        Units are drawn as far as all are needed, the last ones one by one; at first few, as they may have no item.
        """
        if self._units is None:
            ranges = () if self._num_begun else self._parts
            self._num_begun = len(self._parts)
            return [_Part(self._index, self._suite, places, len(places)) for places in ranges]
        self._count_empty_units(self._units)
        if not self._num_missing:
            return ()
        size = self._units.max_items
        num_units = min(self._num_missing // size, max(self._units.max_empty, self._num_begun))
        numbers = range(self._num_begun, self._num_begun + max(1, num_units))
        self._num_begun = numbers.stop
        limit = min(size, self._num_missing)
        return [_Part(self._index, self._suite, range(number, number + 1), limit) for number in numbers]

    def add(self, part: _Part, num_items: int) -> int:
        """Count the items of a drawn part; return by how much progress grows."""
        if self._units is None:
            return len(part.places)
        self._sizes[part.places.start] = num_items
        self._num_missing -= num_items
        return num_items

    def _count_empty_units(self, units: SuiteUnits[Any]) -> None:
        for number in sorted(self._sizes):
            self._num_empty = 0 if self._sizes[number] else self._num_empty + 1
            try:
                units.check_run(self._num_empty)
            except CalibrantError as error:
                raise CalibrantError(f"suite {self._suite}: {error}") from None
        self._sizes.clear()


def _draw_part(name: str, seed: int, options: Any, report: Callable[[], None] | None, part: _Part) -> Sequence[Any]:
    """Draw a part of a suite; report: called after each item."""
    items = []
    for item in islice(_iterate_part(name, seed, options, part), part.max_items):
        items.append(item)
        if report is not None:
            report()
    return items


def _iterate_part(name: str, seed: int, options: Any, part: _Part) -> Iterator[Any]:
    of = benchmark(name)
    units = of.suites.units(part.suite, options)
    if units is not None:
        return units.draw(seed, part.places.start)
    if options is None:
        return of.suites.iterate_part(part.suite, seed, part.places)
    generator = of.require(GENERATE)
    assert isinstance(generator, SuiteGenerator)
    return iter(generator.draw(part.suite, seed, part.places, options))


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
