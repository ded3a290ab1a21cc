"""Audits of a pool: parallel over instances, resumable.

What is found depends on the pool and the options alone: not on the number of workers, the order in which they finish,
or how often the audit was interrupted.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

from calibrant.audits.replayscm.findings import Findings
from calibrant.audits.replayscm.instance import AuditOptions, audit_instance
from calibrant.bench.replayscm.audit.generator_ceiling import GeneratorCeiling, generator_ceiling
from calibrant.bench.replayscm.audit.records import AuditFile, AuditKey, AuditRecord
from calibrant.bench.replayscm.pages import chosen_places
from calibrant.bench.runs.executors.opening import as_completed
from calibrant.bench.runs.jobs import HERE, Execution, Failure, Jobs, Progress, error_line, one_line
from calibrant.bench.runs.records import Timing, config_digest
from calibrant.bench.runs.runner import EVERYTHING, Selection
from calibrant.bench.version import program_version
from calibrant.dsl.pool_text import file_digest
from calibrant.dsl.replayscm.pools.files import read_pool
from calibrant.dsl.replayscm.problem import Pool, Problem
from calibrant.solvers.budget import BudgetSpent


class Audited(NamedTuple):
    """What came of one instance."""

    outcome: Literal["audited", "out_of_budget", "crashed"]
    findings: Findings | None
    generator: GeneratorCeiling | None
    error: str
    timing: Timing


@dataclass(frozen=True)
class AuditedPool:
    """The selected part of a pool with its audits, in order. skipped: records that were there before."""

    pool: Pool
    digest: str
    records: Sequence[AuditRecord]
    skipped: int


def audit_pool(
    path: Path,
    folder: Path,
    options: AuditOptions,
    selection: Selection = EVERYTHING,
    *,
    execution: Execution = HERE,
    progress: Progress = lambda name, done, total: None,
) -> AuditedPool:
    """Audit every selected instance that has no record in the folder yet, and append its record.

    execution: who audits, and for how long at most. Instances without findings are tried again.
    """
    pool, digest = read_pool(path, keep_results=False), file_digest(path)
    chosen = chosen_places(pool, selection)
    config = {**options.to_dict(), "wall_budget": execution.wall_budget}
    asked = config_digest(config)
    keys = {i: AuditKey(digest, name, asked) for i, name in chosen.items()}
    with AuditFile(folder) as file:
        file.forget_unfinished()
        pending = Jobs((i for i, key in keys.items() if key not in file.keys), pool.problems.__getitem__)
        done = skipped = len(keys) - len(pending)
        progress(pool.name, done, len(keys))
        one = partial(timed_audit, options=options)
        for index, result in as_completed(one, pending, execution):
            audited = _without_findings(result, execution.wall_budget) if isinstance(result, Failure) else result
            file.append(_record(pool, digest, index, config, audited))
            done += 1
            progress(pool.name, done, len(keys))
        file.sort()
        part = replace(pool, problems=_at(pool.problems, list(chosen)))
        return AuditedPool(part, digest, file.of_pool(keys.values()), skipped)


def _at(problems: Sequence[Problem], places: Sequence[int]) -> Sequence[Problem]:
    """The problems at ascending places; the first so many of a large pool stay in their file."""
    if places and places[-1] == len(places) - 1:
        return problems[: len(places)]
    return tuple(problems[i] for i in places)


def _record(pool: Pool, digest: str, index: int, config: dict[str, Any], audited: Audited) -> AuditRecord:
    problem = pool.problems[index]
    return AuditRecord(
        pool=pool.name,
        pool_digest=digest,
        pool_size=len(pool),
        index=index,
        instance=problem.id,
        setting=problem.setting,
        stratum=problem.stratum,
        config=config,
        outcome=audited.outcome,
        findings=audited.findings,
        generator=audited.generator,
        error=audited.error,
        program=program_version(),
        timing=audited.timing,
    )


def _without_findings(failure: Failure, wall_budget: float | None) -> Audited:
    seconds = wall_budget or 0.0 if failure.outcome == "out_of_budget" else 0.0
    return Audited(failure.outcome, None, None, failure.error, Timing(seconds, _now()))


def timed_audit(problem: Problem, options: AuditOptions) -> Audited:
    """Audit one instance. An exception is a result too: it must not cost the other instances."""
    started, clock = _now(), time.perf_counter()
    try:
        findings, generator = audit_instance(problem, options), generator_ceiling(problem)
    except BudgetSpent as spent:
        return Audited("out_of_budget", None, None, one_line(spent), Timing(time.perf_counter() - clock, started))
    except Exception as error:
        return Audited("crashed", None, None, error_line(error), Timing(time.perf_counter() - clock, started))
    return Audited("audited", findings, generator, "", Timing(time.perf_counter() - clock, started))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
