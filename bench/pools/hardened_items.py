"""Hardening of pools item by item: the least more evidence that leaves one answer, for any benchmark that has it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, TypeAlias

import msgspec

from calibrant.audits.claims import Certificate, verify
from calibrant.bench.core.benchmark import Benchmark
from calibrant.bench.core.capabilities import FINDINGS
from calibrant.bench.core.items import unknown_item
from calibrant.bench.core.registry import benchmark as benchmark_named
from calibrant.bench.pools.capabilities import Hardened, HardenedItem, HardenRequest
from calibrant.bench.runs.jobs import HERE, Execution, Failure, Jobs, Progress
from calibrant.bench.runs.opening import as_completed
from calibrant.bench.runs.runner import EVERYTHING, Selection
from calibrant.bench.runs.spill_file import SpillBuffer
from calibrant.dsl.atomic_write import write_atomically, write_pieces
from calibrant.dsl.errors import in_one_line
from calibrant.dsl.item import Item, Pool
from calibrant.dsl.records import item_ids, pool_digest
from calibrant.dsl.text import plural
from calibrant.solvers.outcome import Found, Impossible, Outcome

REACHED = "reached"

ItemHardener: TypeAlias = Callable[[Any], Outcome[HardenedItem]]
_ItemCertificate: TypeAlias = tuple[str, Certificate]


@dataclass(frozen=True)
class HardenedItems:
    """Hardened items of a pool.

    reports: a line for each item; certificates: by the original item, of those that a checker confirms
    """

    pool: Pool[Any]
    reports: Sequence[dict[str, Any]]
    certificates: Sequence[_ItemCertificate]

    @property
    def num_short(self) -> int:
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
    """Harden the chosen items, in their order; keep unchanged those that cannot be decided.

    harden: a function of a module, which is sent to workers. `UnknownItemError` for an unknown id.
    """
    pool = benchmark.items.read_pool(path)
    chosen = selection.places(pool)
    missing = sorted(set(selection.only) - set(item_ids(pool.items)))
    if missing:
        raise unknown_item(path.name, missing[0], item_ids(pool.items))
    with (
        SpillBuffer[Any]() as hardened,
        SpillBuffer[dict[str, Any]]() as reports,
        SpillBuffer[_ItemCertificate]() as certificates,
    ):
        jobs = Jobs(chosen, lambda place: pool.items[place])
        progress(pool.name, 0, len(chosen))
        for done, (place, result) in enumerate(
            as_completed(partial(_harden_item, benchmark.name, harden), jobs, execution), 1
        ):
            if isinstance(result, Failure):
                result = pool.items[place], _report(chosen[place], "failed", why=result.error), None
            item, report, certificate = result
            hardened.add((place,), item)
            reports.add((place,), report)
            if certificate is not None:
                certificates.add((place,), (chosen[place], certificate))
            progress(pool.name, done, len(chosen))
        metadata = {**getattr(pool, "metadata", {}), "hardened_from": pool_digest(path)}
        new = Pool(pool.name, benchmark.name, hardened.values(), metadata)
        return HardenedItems(new, reports.values(), certificates.values())


def _harden_item(
    name: str, harden: ItemHardener, item: Item[Any, Any]
) -> tuple[Item[Any, Any], dict[str, Any], Certificate | None]:
    """Harden an item in a worker.

    name: of the benchmark, whose object may hold attributes that cannot be pickled
    """
    of = benchmark_named(name)
    outcome = harden(item)
    if not isinstance(outcome, Found):
        if isinstance(outcome, Impossible):
            return item, _report(item.id, "impossible", why=f"searched completely: {outcome.exhausted}"), None
        return item, _report(item.id, "out_of_budget", why=outcome.reached), None
    hardened, claims = outcome.value, of.require(FINDINGS)
    holds = verify(hardened.certificate, claims.evidence(item), claims.verifiers).holds
    new = hardened.item if hardened.told else item
    report = _report(item.id, REACHED, hardened_id=new.id, revealed=hardened.told, certified=holds)
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

    hardened_id: of the new item; revealed: names that it shows in addition
    """
    line = {"instance": instance, "outcome": outcome, "made": hardened_id or instance, "told": list(revealed)}
    return line | {"certified": certified, "why": why}


def write_proofs(pool: HardenedItems, folder: Path) -> int:
    """Write a file for each certificate, for `calibrant verify` with the original pool; return their number."""
    for number, (instance, certificate) in enumerate(pool.certificates):
        content = {"instance": instance, "certificate": msgspec.to_builtins(certificate)}
        write_atomically(folder / f"{number:04}.claim.json", json.dumps(content, indent=1) + "\n")
    return len(pool.certificates)


@dataclass(frozen=True)
class ItemHardening:
    """Implements Hardenable for the benchmark of that name, item by item."""

    name: str
    harden_item: ItemHardener
    workers: int | None = 1  # an item takes milliseconds, a process a second to start

    def check(self, given: Mapping[str, Any]) -> None:
        pass

    def harden(self, request: HardenRequest, options: Any) -> Hardened:
        of = benchmark_named(self.name)
        pool = harden_items(
            of,
            self.harden_item,
            request.pool,
            request.selection,
            execution=request.execution,
            progress=request.progress,
        )
        notes = []
        if request.report:
            write_pieces(request.report, (f"{json.dumps(line)}\n" for line in pool.reports))
        if request.certificates:
            number = write_proofs(pool, request.certificates)
            notes.append(f"{plural(number, 'certificates')} written to {request.certificates}")
        of.items.write_pool(pool.pool, request.out)
        notes.append(f"{plural(len(pool.pool), 'instances')} written to {request.out}")
        for line in pool.reports:
            if line["why"]:
                notes.append(in_one_line(f"{line['instance']}: {line['outcome'].replace('_', ' ')}: {line['why']}"))
        return Hardened(_summary(pool.reports), notes, pool.num_short)


def _summary(reports: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return how many items had each outcome, and how much evidence was added."""
    outcomes = Counter(line["outcome"].replace("_", " ") for line in reports)
    lines = [", ".join(f"{number} {name}" for name, number in sorted(outcomes.items()))]
    sizes = [len(line["told"]) for line in reports if line["outcome"] == REACHED]
    if sizes:
        more, middle = sum(map(bool, sizes)), median(sizes)
        lines.append(f"{more} of {len(sizes)} needed more evidence; values told: median {middle:g}, up to {max(sizes)}")
    return lines
