"""Pools of any benchmark that can be hardened item by item: the least more evidence that leaves one answer."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from calibrant.audits.claims import Certificate, verify
from calibrant.bench.core.benchmark import Benchmark, HardenedItem
from calibrant.bench.core.registry import benchmark as benchmark_named
from calibrant.bench.runs.executors.opening import completed
from calibrant.bench.runs.jobs import HERE, Execution, Failure, Jobs, Progress
from calibrant.bench.runs.runner import EVERYTHING, Selection
from calibrant.bench.runs.spill_file import PutAside
from calibrant.dsl.atomic_write import write_atomically
from calibrant.dsl.errors import CalibrantError, short_repr
from calibrant.dsl.item import Item, Pool
from calibrant.dsl.pool_text import pool_digest
from calibrant.dsl.stored_items import item_ids
from calibrant.solvers.outcome import Found, Impossible, Outcome

REACHED = "reached"

_Named: TypeAlias = tuple[str, Certificate]


@dataclass(frozen=True)
class DecidedPool:
    """reports: a line for each item; certificates: by the item as it was, of those that a checker confirms"""

    pool: Pool[Any]
    reports: Sequence[dict[str, Any]]
    certificates: Sequence[_Named]

    @property
    def num_short(self) -> int:
        return sum(report["outcome"] != REACHED for report in self.reports)


def decided_pool(
    benchmark: Benchmark[Any],
    path: Path,
    selection: Selection = EVERYTHING,
    *,
    execution: Execution = HERE,
    progress: Progress = lambda name, done, total: None,
) -> DecidedPool:
    """The chosen items, in their order, those unchanged that cannot be decided.

    `CalibrantError` for an unknown id, and where the benchmark does not harden.
    """
    if type(benchmark).hardened is Benchmark.hardened:
        raise CalibrantError(f"{benchmark.title} does not support hardening")
    pool = benchmark.read_pool(path)
    chosen = selection.places(pool)
    missing = sorted(set(selection.only) - set(item_ids(pool.items)))
    if missing:
        raise CalibrantError(f"{path.name}: no instance {short_repr(missing[0])}")
    with PutAside[Any]() as made, PutAside[dict[str, Any]]() as reports, PutAside[_Named]() as certificates:
        jobs = Jobs(chosen, lambda place: pool.items[place])
        progress(pool.name, 0, len(chosen))
        for done, (place, found) in enumerate(completed(partial(_made, benchmark.name), jobs, execution), 1):
            if isinstance(found, Failure):
                found = pool.items[place], _report(chosen[place], "failed", why=found.error), None
            item, report, certificate = found
            made.put((place,), item)
            reports.put((place,), report)
            if certificate is not None:
                certificates.put((place,), (chosen[place], certificate))
            progress(pool.name, done, len(chosen))
        metadata = {**getattr(pool, "metadata", {}), "hardened_from": pool_digest(path)}
        new = Pool(pool.name, benchmark.name, made.values(), metadata)
        return DecidedPool(new, reports.values(), certificates.values())


def _made(name: str, item: Item[Any, Any]) -> tuple[Item[Any, Any], dict[str, Any], Certificate | None]:
    """name: of the benchmark, which itself may keep what cannot be sent to another process"""
    of = benchmark_named(name)
    outcome: Outcome[HardenedItem] = of.hardened(item)
    if not isinstance(outcome, Found):
        if isinstance(outcome, Impossible):
            return item, _report(item.id, "impossible", why=f"searched completely: {outcome.exhausted}"), None
        return item, _report(item.id, "out_of_budget", why=outcome.reached), None
    found = outcome.value
    holds = verify(found.certificate, of.evidence(item), of.verifiers).holds
    new = found.item if found.told else item
    report = _report(item.id, REACHED, made=new.id, told=found.told, certified=holds)
    return new, report, found.certificate if holds else None


def _report(
    instance: str, outcome: str, *, made: str = "", told: Sequence[str] = (), certified: bool = False, why: str = ""
) -> dict[str, Any]:
    """made: id of the item that stands in its place; told: names that it tells in addition"""
    line = {"instance": instance, "outcome": outcome, "made": made or instance, "told": list(told)}
    return line | {"certified": certified, "why": why}


def write_proofs(made: DecidedPool, folder: Path) -> int:
    """A file for each certificate, as `calibrant verify` reads it together with the pool that was hardened."""
    for number, (instance, certificate) in enumerate(made.certificates):
        content = {"instance": instance, "certificate": msgspec.to_builtins(certificate)}
        write_atomically(folder / f"{number:04}.claim.json", json.dumps(content, indent=1) + "\n")
    return len(made.certificates)
