"""Generation of a whole pool, parallel over instances, resumable; the same bytes whatever the number of workers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from calibrant.audits.replayscm.generation.plans import MAX_ADDED_WORLDS
from calibrant.audits.replayscm.generation.pool import Job, pool_jobs, pool_metadata, pool_name, run_job
from calibrant.bench.replayscm.pools.unfinished import Made, unfinished_pool
from calibrant.bench.runs.jobs import HERE, Execution, Progress
from calibrant.dsl.replayscm.generation.strata import Stratum
from calibrant.dsl.replayscm.item import Pool


@dataclass(frozen=True)
class GenerateOptions:
    """Options of a generated pool.

    setting: one of the sampler's SETTINGS; max_added: worlds that targeted disambiguation may add
    """

    strata: Sequence[Stratum]
    per_stratum: int
    seed: int
    setting: str
    max_added: int = MAX_ADDED_WORLDS

    @property
    def asked(self) -> tuple[Sequence[Stratum], int, int, str, int]:
        return self.strata, self.per_stratum, self.seed, self.setting, self.max_added


@dataclass(frozen=True)
class GeneratedPool:
    """A generated pool and the audit of every instance, ready for JSON, in its order."""

    pool: Pool
    audits: Sequence[dict[str, Any]]


@contextmanager
def generated_pool(
    out: Path,
    options: GenerateOptions,
    *,
    execution: Execution = HERE,
    progress: Progress = lambda name, done, total: None,
) -> Iterator[GeneratedPool]:
    """Every instance generated, for the block to write to `out`; kept beside it until the block has succeeded."""
    name, metadata = pool_name(options.setting), pool_metadata(*options.asked)
    jobs = {f"{job.stratum.name}, seed {job.seed}": job for job in pool_jobs(*options.asked)}
    with unfinished_pool(out, {"generate": metadata}) as work:
        results = work.make(name, jobs, generate_instance, execution=execution, progress=progress)
        yield GeneratedPool(Pool(name, results.problems, metadata), results.reports)


def generate_instance(job: Job) -> Made:
    """Return one instance and its audit."""
    generated = run_job(job)
    return Made(generated.problem, {"id": generated.problem.id, **generated.audit.to_dict()})
