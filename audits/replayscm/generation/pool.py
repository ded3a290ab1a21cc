"""Pools of generated instances, in this process or several: the same bytes whatever the number of workers."""

from __future__ import annotations

import json
import multiprocessing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple

from audits.replayscm.generation.generate import Generated, generate
from audits.replayscm.generation.plans import MAX_ADDED_WORLDS
from audits.replayscm.generation.record import GenerationAudit
from dsl.replayscm.problem import Pool
from dsl.replayscm.sampling.problems import SEEDS_PER_POOL
from dsl.replayscm.sampling.strata import Stratum

JOBS_PER_MESSAGE = 4  # an instance takes some ten milliseconds


@dataclass(frozen=True, slots=True)
class Job:
    """One instance to generate; can be sent to another process."""

    stratum: Stratum
    seed: int
    setting: str
    max_added: int


class GeneratedPool(NamedTuple):
    """A pool and the audit of each of its problems, by id. Audits are for its authors: they read gold."""

    pool: Pool
    audits: Mapping[str, GenerationAudit]

    def audit_lines(self) -> Iterator[str]:
        """The audits as JSON lines, in the order of the problems."""
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
    """Instances of each stratum in turn, under one of dsl.replayscm.sampling.problems.SETTINGS.

    Pools of one seed are matched: the same SCMs and worlds in all settings, and a larger pool extends a smaller one.
    """
    chosen = tuple(strata)
    made = tuple(run(pool_jobs(chosen, per_stratum, seed, setting, max_added), workers=workers))
    problems = tuple(generated.problem for generated in made)
    pool = Pool(pool_name(setting), problems, pool_metadata(chosen, per_stratum, seed, setting, max_added))
    return GeneratedPool(pool, {generated.problem.id: generated.audit for generated in made})


def pool_name(setting: str) -> str:
    return f"generated_{setting.replace('-', '_')}"


def pool_metadata(
    strata: Iterable[Stratum], per_stratum: int, seed: int, setting: str, max_added: int
) -> dict[str, Any]:
    """What decides the pool, for its header."""
    return {
        "generator": "calibrant 1",
        "seed": seed,
        "per_stratum": per_stratum,
        "strata": [stratum.name for stratum in strata],
        "setting": setting,
        "max_added_worlds": max_added,
    }


def pool_jobs(strata: Iterable[Stratum], per_stratum: int, seed: int, setting: str, max_added: int) -> list[Job]:
    """The instances of a pool: instance j of a stratum has seed SEEDS_PER_POOL * pool seed + j."""
    seeds = range(SEEDS_PER_POOL * seed, SEEDS_PER_POOL * seed + per_stratum)
    return [Job(stratum, instance, setting, max_added) for stratum in strata for instance in seeds]


def run(jobs: Sequence[Job], *, workers: int = 1) -> Iterator[Generated]:
    """The instances, in the order of the jobs, each as soon as those before it are there."""
    if workers == 1:
        yield from map(run_job, jobs)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context) as executor:
        yield from executor.map(run_job, jobs, chunksize=JOBS_PER_MESSAGE)


def run_job(job: Job) -> Generated:
    return generate(job.stratum, job.seed, setting=job.setting, max_added=job.max_added)
