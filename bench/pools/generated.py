"""Generated and hardened pools, and selections of a pool's items."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple, TypeAlias

from calibrant.audits.claims import Certificate, verify, write_claim
from calibrant.bench.core.benchmark import Benchmark
from calibrant.bench.core.capabilities import FINDINGS, Drawable, SuiteUnits
from calibrant.bench.core.items import unknown_item
from calibrant.bench.core.options import OptionError
from calibrant.bench.core.registry import benchmark, is_native_pool
from calibrant.bench.core.registry import benchmark as benchmark_named
from calibrant.bench.pools.capabilities import GENERATE, GenerateRequest, Hardened, HardenedItem, HardenRequest
from calibrant.bench.pools.item_options import ItemOptions, read_item_options
from calibrant.bench.runs.executors import HERE, Execution, Failure, InProcessExecutor, Jobs, Progress, prepare_nothing
from calibrant.bench.runs.runner import EVERYTHING, Selection
from calibrant.bench.runs.spill_file import SpillBuffer
from calibrant.bench.runs.workers import as_completed, open_executor
from calibrant.bench.terminal import typed_json
from calibrant.dsl.atomic_write import write_pieces
from calibrant.dsl.errors import CalibrantError, in_one_line, short_repr
from calibrant.dsl.item import Item, Pool
from calibrant.dsl.records import item_ids, plain_pool, pool_digest, pool_lines
from calibrant.dsl.text import known_names, plural
from calibrant.solvers.outcome import Found, Impossible, Outcome


# --- Pools whose items are drawn from suites, in parts by any executor ------------------------------------------------
def write_drawn(
    bench: Benchmark[Any],
    path: Path,
    suites: Sequence[str],
    seed: int,
    count: int,
    execution: Execution = HERE,
    *,
    progress: Progress = lambda name, done, total: None,
    options: ItemOptions | None = None,
) -> int:
    """Write a pool of `count` items of each suite; return the number of items.

    Each part of a suite is drawn by a job of its own. Equal arguments give equal bytes with any executor, because parts
    are drawn independently.
    """
    done, total = 0, count * len(suites)
    progress(path.name, done, total)

    def report() -> None:
        nonlocal done
        done += 1
        progress(path.name, done, total)

    values = None if options is None else options.values
    draws = [_SuiteDraw(bench.suites, values, index, suite, count) for index, suite in enumerate(suites)]
    draw_local = partial(_draw_part, bench.name, seed, values, report)
    # progress callbacks cannot reach other processes, so their parts are reported as a whole
    draw_remote = draw_local if execution == HERE else partial(_draw_part, bench.name, seed, values, None)
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
                    stored.add((part.suite_index, part.indices.start, index), item)
                num_drawn += draws[part.suite_index].add(part, len(items))
                if done != num_drawn:  # the part was drawn elsewhere, or has fewer items than requested
                    done = num_drawn
                    progress(path.name, done, total)
        about: dict[str, Any] = {"seed": seed, "suites": list(suites), "count": count}
        about |= {} if options is None else {"options": dict(options.stated)}
        items = stored.values()
        bench.items.write_pool(Pool(path.name.partition(".")[0], bench.name, items, about), path)
        return len(items)


class _Part(NamedTuple):
    """Work of one job: the items of a suite at some indices, or of one unit (`SuiteUnits`).

    suite_index: index of the suite among the requested ones; indices: of items, or the index of one unit
    max_items: largest number of items that the part may have
    """

    suite_index: int
    suite: str
    indices: range
    max_items: int


class _SuiteDraw:
    """Drawing of a suite's items: all parts at once, or units in rounds until there are enough items."""

    def __init__(self, suites: Drawable[Any], options: Any, index: int, suite: str, num_items: int) -> None:
        self._parts = suites.parts(num_items)
        self._units = suites.units(suite, options)
        self.is_sequence = self._units is None and suites.are_sequences
        self._index = index
        self._suite = suite
        self._num_missing = num_items
        self._num_begun = 0  # number of parts or units that `next_parts` returned
        self._num_empty = 0  # number of units without items since the last unit that has one
        self._sizes: dict[int, int] = {}  # index of a unit of the last round -> number of its items

    def next_parts(self) -> Sequence[_Part]:
        """Return the parts to draw next; none if there are enough items.

        A round has only units that are certainly needed, so the last units are drawn one by one. The first rounds are
        small, because units may be empty.
        """
        if self._units is None:
            ranges = () if self._num_begun else self._parts
            self._num_begun = len(self._parts)
            return [_Part(self._index, self._suite, indices, len(indices)) for indices in ranges]
        self._count_empty_units(self._units)
        if not self._num_missing:
            return ()
        size = self._units.max_items
        num_units = min(self._num_missing // size, max(self._units.max_empty, self._num_begun))
        unit_indices = range(self._num_begun, self._num_begun + max(1, num_units))
        self._num_begun = unit_indices.stop
        max_items = min(size, self._num_missing)
        return [_Part(self._index, self._suite, range(k, k + 1), max_items) for k in unit_indices]

    def add(self, part: _Part, num_items: int) -> int:
        """Count the items of a drawn part; return the increase of progress."""
        if self._units is None:
            return len(part.indices)
        self._sizes[part.indices.start] = num_items
        self._num_missing -= num_items
        return num_items

    def _count_empty_units(self, units: SuiteUnits[Any]) -> None:
        for unit_index in sorted(self._sizes):
            self._num_empty = 0 if self._sizes[unit_index] else self._num_empty + 1
            try:
                units.check_run(self._num_empty)
            except CalibrantError as error:
                raise CalibrantError(f"suite {self._suite}: {error}") from None
        self._sizes.clear()


def _draw_part(name: str, seed: int, options: Any, report: Callable[[], None] | None, part: _Part) -> Sequence[Any]:
    """Draw a part of a suite. report: called after each item."""
    items = []
    for item in islice(_iterate_part(name, seed, options, part), part.max_items):
        items.append(item)
        if report is not None:
            report()
    return items


def _iterate_part(name: str, seed: int, options: Any, part: _Part) -> Iterator[Any]:
    bench = benchmark(name)
    units = bench.suites.units(part.suite, options)
    if units is not None:
        return units.draw(seed, part.indices.start)
    if options is None:
        return bench.suites.iterate_part(part.suite, seed, part.indices)
    generator = bench.require(GENERATE)
    assert isinstance(generator, SuiteGenerator)
    return iter(generator.draw(part.suite, seed, part.indices, options))


def chosen_suites(name: str, text: str) -> list[str]:
    """Return the suites that --strata names; `OptionError` for an unknown one."""
    return chosen_strata(text, benchmark(name).suites.names, "suite")


def chosen_strata(text: str, allowed: Iterable[str], noun: str, kind: str = "") -> list[str]:
    """Return the names listed by --strata, or all allowed ones for `all`; `OptionError` for an unknown one.

    noun, kind: for the message, as in "unknown stratum 'x' of networks"
    """
    allowed = list(allowed)
    names = allowed if text == "all" else [part.strip() for part in text.split(",")]
    for name in names:
        if name not in allowed:
            raise OptionError(f"unknown {noun} {short_repr(name)}{kind}; {known_names(name, allowed)}", "--strata")
    return names


@dataclass(frozen=True)
class SuiteGenerator:
    """Implementation of Generatable that draws items of each suite.

    draw: (suite, seed, indices, Struct of options) -> items of the suite at these indices
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
            for suite in suites:  # raises for invalid options before any work
                self.draw(suite, request.seed, range(0), options.values)
        num_items = write_drawn(
            benchmark(self.name),
            request.out,
            suites,
            request.seed,
            request.num_items,
            request.execution,
            progress=request.progress,
            options=options,
        )
        return [f"{plural(num_items, 'instances')} written to {request.out}"]


# --- Some items of a pool as a new pool -------------------------------------------------------------------------------


def write_part(bench: Benchmark[Any], pool: Any, items: Iterable[Item[Any, Any]], target: Path) -> None:
    """Write some items of a pool of `read_pool` in the native format, with the pool's name and metadata."""
    bench.items.write_pool(Pool(pool.name, bench.name, tuple(items), dict(pool.metadata)), target)


def write_indices(benchmark: Benchmark[Any], pool: Any, source: Path, indices: Sequence[int], target: Path) -> None:
    """Write the items at these indices of the pool in `source`; lines of a native pool are copied unchanged."""
    if not is_native_pool(source):
        write_part(benchmark, pool, (pool.items[index] for index in indices), target)
        return
    write_part(benchmark, pool, (), target)
    with plain_pool(source) as file, target.open("ab") as part:
        offsets = [(line.start, line.size) for line in pool_lines(file)][1:]  # the first is the header
        for index in indices:
            start, size = offsets[index]
            file.seek(start)
            part.write(file.read(size).rstrip(b"\r\n") + b"\n")


# --- Hardening of pools item by item: the least additional evidence that leaves one answer ----------------------------
REACHED = "reached"

ItemHardener: TypeAlias = Callable[[Any], Outcome[HardenedItem]]
_ItemCertificate: TypeAlias = tuple[str, Certificate]


@dataclass(frozen=True)
class HardenedItems:
    """Hardened items of a pool.

    reports: line of each item; certificates: (id of the original item, certificate), those that a checker confirms
    """

    pool: Pool[Any]
    reports: Sequence[dict[str, Any]]
    certificates: Sequence[_ItemCertificate]

    @property
    def num_unreached(self) -> int:
        return sum(report["outcome"] != REACHED for report in self.reports)


def harden_items(
    benchmark: Benchmark[Any],
    harden: ItemHardener,
    path: Path,
    selection: Selection = EVERYTHING,
    *,
    execution: Execution = HERE,
    progress: Progress = lambda name, done, total: None,
) -> HardenedItems:
    """Harden the selected items, in order; items for which no evidence leaves one answer stay unchanged.

    `UnknownItemError` for an unknown id. harden: a module-level function, so that it can be pickled
    """
    pool = benchmark.items.read_pool(path)
    chosen = selection.ids_by_index(pool)
    missing = sorted(set(selection.only) - set(item_ids(pool.items)))
    if missing:
        raise unknown_item(path.name, missing[0], item_ids(pool.items))
    with (
        SpillBuffer[Any]() as hardened,
        SpillBuffer[dict[str, Any]]() as reports,
        SpillBuffer[_ItemCertificate]() as certificates,
    ):
        jobs = Jobs(chosen, lambda index: pool.items[index])
        progress(pool.name, 0, len(chosen))
        for done, (index, result) in enumerate(
            as_completed(partial(_harden_item, benchmark.name, harden), jobs, execution), 1
        ):
            if isinstance(result, Failure):
                result = pool.items[index], _report(chosen[index], "failed", why=result.error), None
            item, report, certificate = result
            hardened.add((index,), item)
            reports.add((index,), report)
            if certificate is not None:
                certificates.add((index,), (chosen[index], certificate))
            progress(pool.name, done, len(chosen))
        metadata = {**getattr(pool, "metadata", {}), "hardened_from": pool_digest(path)}
        new = Pool(pool.name, benchmark.name, hardened.values(), metadata)
        return HardenedItems(new, reports.values(), certificates.values())


def _harden_item(
    name: str, harden: ItemHardener, item: Item[Any, Any]
) -> tuple[Item[Any, Any], dict[str, Any], Certificate | None]:
    """Harden an item in a worker; return the item, the line of the report, and the confirmed certificate if any.

    name: name of the benchmark
    """
    bench = benchmark_named(name)
    outcome = harden(item)
    if not isinstance(outcome, Found):
        if isinstance(outcome, Impossible):
            return item, _report(item.id, "impossible", why=f"searched completely: {outcome.exhausted}"), None
        return item, _report(item.id, "out_of_budget", why=outcome.reached), None
    hardened, claims = outcome.value, bench.require(FINDINGS)
    holds = verify(hardened.certificate, claims.evidence(item), claims.verifiers).holds
    new = hardened.item if hardened.revealed else item
    report = _report(item.id, REACHED, hardened_id=new.id, revealed=hardened.revealed, certified=holds)
    return new, report, hardened.certificate if holds else None


def _report(
    instance: str,
    outcome: str,
    *,
    hardened_id: str = "",
    revealed: Sequence[str] = (),
    certified: bool = False,
    why: str = "",
) -> dict[str, Any]:
    """Return a line of the report.

    hardened_id: id of the new item; revealed: names of the added facts
    """
    line = {"instance": instance, "outcome": outcome, "made": hardened_id or instance, "told": list(revealed)}
    return line | {"certified": certified, "why": why}


def write_proofs(pool: HardenedItems, folder: Path) -> int:
    """Write a file for each certificate, for `calibrant verify` with the original pool; return their number."""
    for index, (instance, certificate) in enumerate(pool.certificates):
        write_claim(folder, index, instance, certificate)
    return len(pool.certificates)


@dataclass(frozen=True)
class ItemHardening:
    """Implementation of Hardenable that hardens item by item. name: name of the benchmark."""

    name: str
    harden_item: ItemHardener
    workers: int | None = 1  # an item takes milliseconds, a process a second to start

    def check(self, given: Mapping[str, Any]) -> None:
        pass

    def harden(self, request: HardenRequest, options: Any) -> Hardened:
        bench = benchmark_named(self.name)
        pool = harden_items(
            bench,
            self.harden_item,
            request.pool,
            request.selection,
            execution=request.execution,
            progress=request.progress,
        )
        notes = []
        if request.report:
            write_pieces(request.report, (f"{typed_json(line)}\n" for line in pool.reports))
        if request.certificates:
            num_certificates = write_proofs(pool, request.certificates)
            notes.append(f"{plural(num_certificates, 'certificates')} written to {request.certificates}")
        bench.items.write_pool(pool.pool, request.out)
        notes.append(f"{plural(len(pool.pool), 'instances')} written to {request.out}")
        for line in pool.reports:
            if line["why"]:
                notes.append(in_one_line(f"{line['instance']}: {line['outcome'].replace('_', ' ')}: {line['why']}"))
        return Hardened(_summary(pool.reports), notes, pool.num_unreached, request.pool)


def _summary(reports: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return lines on the number of items by outcome, and on the amount of added evidence."""
    outcomes = Counter(line["outcome"].replace("_", " ") for line in reports)
    lines = [", ".join(f"{number} {name}" for name, number in sorted(outcomes.items()))]
    sizes = [len(line["told"]) for line in reports if line["outcome"] == REACHED]
    if sizes:
        num_extended, middle = sum(map(bool, sizes)), median(sizes)
        lines.append(
            f"{num_extended} of {len(sizes)} needed more evidence; values told: median {middle:g}, up to {max(sizes)}"
        )
    return lines
