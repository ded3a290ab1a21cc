"""Audits of a pool: parallel over instances, resumable.

What is found depends on the pool and the options alone: not on the number of workers, the order in which they finish,
or how often the audit was interrupted.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, as_completed
from concurrent.futures import TimeoutError as OutOfTime
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pebble import ProcessExpired, ProcessPool

from bench.audit_instance import AuditOptions, audit_instance
from bench.audit_records import AuditFile, AuditKey, AuditRecord, Findings
from bench.records import Timing, config_digest
from bench.version import program_version
from dsl.pool import file_digest, read_pool
from dsl.problem import Pool, Problem

Progress = Callable[[str, int, int], None]
"""Called with the pool's name, how many of its instances have a record, and how many there will be."""

MAX_ERROR_LENGTH = 300


class Audited(NamedTuple):
    """What came of one instance."""

    outcome: Literal["audited", "out_of_budget", "crashed"]
    findings: Findings | None
    error: str
    timing: Timing


@dataclass(frozen=True)
class AuditedPool:
    """A pool with the audits of its instances, in their order. skipped: records that were there before."""

    pool: Pool
    digest: str
    records: list[AuditRecord]
    skipped: int


def audit_pool(
    path: Path,
    folder: Path,
    options: AuditOptions,
    *,
    workers: int = 1,
    wall_budget: float | None = None,
    progress: Progress = lambda name, done, total: None,
) -> AuditedPool:
    """Audit every instance that has no record in the folder yet, and append its record.

    wall_budget: seconds per instance after which its worker is killed. Instances without findings are tried again.
    """
    pool, digest = read_pool(path, keep_results=False), file_digest(path)
    config = {**options.to_dict(), "wall_budget": wall_budget}
    keys = {i: AuditKey(digest, problem.id, config_digest(config)) for i, problem in enumerate(pool.problems)}
    with AuditFile(folder) as file:
        file.forget_unfinished()
        pending = {i: pool.problems[i] for i, key in keys.items() if key not in file.keys}
        done = skipped = len(keys) - len(pending)
        progress(pool.name, done, len(keys))
        for index, audited in _audited(pending, options, workers, wall_budget):
            file.append(_record(pool, digest, index, config, audited))
            done += 1
            progress(pool.name, done, len(keys))
        file.sort()
        return AuditedPool(pool, digest, file.of_pool(keys.values()), skipped)


def _record(pool: Pool, digest: str, index: int, config: dict[str, Any], audited: Audited) -> AuditRecord:
    problem = pool.problems[index]
    place = pool.name, digest, len(pool), index, problem.id, problem.setting, problem.stratum
    return AuditRecord(
        *place, config, audited.outcome, audited.findings, audited.error, program_version(), audited.timing
    )


def _audited(
    problems: Mapping[int, Problem], options: AuditOptions, workers: int, wall_budget: float | None
) -> Iterator[tuple[int, Audited]]:
    """Each instance once, in any order. One worker without a wall budget is this process."""
    if workers == 1 and wall_budget is None:
        yield from ((index, timed_audit(problem, options)) for index, problem in problems.items())
        return
    pool = ProcessPool(workers, context=multiprocessing.get_context("spawn"))
    try:
        scheduled: dict[Future[Audited], int] = {
            pool.schedule(timed_audit, args=(problem, options), timeout=wall_budget): index
            for index, problem in problems.items()
        }
        for future in as_completed(scheduled):
            yield scheduled[future], _result(future, wall_budget)
    finally:
        pool.stop()  # type: ignore[no-untyped-call]
        pool.join()


def _result(future: Future[Audited], wall_budget: float | None) -> Audited:
    try:
        return future.result()
    except OutOfTime:
        return _without_findings("out_of_budget", f"not done in {wall_budget} seconds", wall_budget or 0.0)
    except (ProcessExpired, BrokenProcessPool) as error:
        return _without_findings("crashed", f"the worker process ended: {error}", 0.0)


def _without_findings(outcome: Literal["out_of_budget", "crashed"], error: str, seconds: float) -> Audited:
    return Audited(outcome, None, error, Timing(seconds, _now()))


def timed_audit(problem: Problem, options: AuditOptions) -> Audited:
    """Audit one instance. An exception is a result too: it must not cost the other instances."""
    started, clock = _now(), time.perf_counter()
    try:
        findings = audit_instance(problem, options)
    except Exception as error:
        reason = f"{type(error).__name__}: {' '.join(str(error).split())[:MAX_ERROR_LENGTH]}"
        return Audited("crashed", None, reason, Timing(time.perf_counter() - clock, started))
    return Audited("audited", findings, "", Timing(time.perf_counter() - clock, started))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
