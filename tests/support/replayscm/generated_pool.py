"""A pool generated in memory with its audits, in this process or several."""

from __future__ import annotations

import json
import multiprocessing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import NamedTuple

from calibrant.audits.replayscm.generation.generate import (
    Generated,
    GenerationAudit,
    Job,
    pool_jobs,
    pool_metadata,
    pool_name,
    run_job,
)
from calibrant.audits.replayscm.generation.plans import MAX_ADDED_WORLDS
from calibrant.dsl.replayscm.generation.strata import Stratum
from calibrant.dsl.replayscm.item import Pool

JOBS_PER_MESSAGE = 4  # an instance takes some ten milliseconds


class GeneratedPool(NamedTuple):
    """A pool and the audit of each of its problems, by id. Audits are for its authors: they read gold."""

    pool: Pool
    audits: Mapping[str, GenerationAudit]

    def audit_lines(self) -> Iterator[str]:
        """Yield the audits as JSON lines, in the order of the problems."""
        for name, audit in self.audits.items():
            yield json.dumps({"id": name, **audit.to_dict()})


def generate_pool(
    strata: Iterable[Stratum],
    per_stratum: int,
    seed: int,
    setting: str,
    *,
    workers: int = 1,
    max_added: int = MAX_ADDED_WORLDS,
) -> GeneratedPool:
    """Instances of each stratum in turn, under one of dsl.replayscm.generation.problems.SETTINGS.

    Pools of one seed are matched: the same SCMs and worlds in all settings, and a larger pool extends a smaller one.
    """
    chosen = tuple(strata)
    made = tuple(run(pool_jobs(chosen, per_stratum, seed, setting, max_added), workers=workers))
    problems = tuple(generated.problem for generated in made)
    pool = Pool(pool_name(setting), problems, pool_metadata(chosen, per_stratum, seed, setting, max_added))
    return GeneratedPool(pool, {generated.problem.id: generated.audit for generated in made})


def run(jobs: Sequence[Job], *, workers: int = 1) -> Iterator[Generated]:
    """Yield the instances, in the order of the jobs, each as soon as those before it are there."""
    if workers == 1:
        yield from map(run_job, jobs)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context) as executor:
        yield from executor.map(run_job, jobs, chunksize=JOBS_PER_MESSAGE)
