"""Pools of generated instances: their names and headers, and each instance as a job that any process can do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from calibrant.audits.replayscm.generation.generate import Generated, generate
from calibrant.dsl.replayscm.generation.problems import SEEDS_PER_POOL
from calibrant.dsl.replayscm.generation.strata import Stratum


@dataclass(frozen=True, slots=True)
class Job:
    """One instance to generate; can be sent to another process."""

    stratum: Stratum
    seed: int
    setting: str
    max_added: int


def pool_name(setting: str) -> str:
    return f"generated_{setting.replace('-', '_')}"


def pool_metadata(
    strata: Iterable[Stratum], per_stratum: int, seed: int, setting: str, max_added: int
) -> dict[str, Any]:
    """Return what decides the pool, for its header."""
    return {
        "generator": "calibrant 1",
        "seed": seed,
        "per_stratum": per_stratum,
        "strata": [stratum.name for stratum in strata],
        "setting": setting,
        "max_added_worlds": max_added,
    }


def pool_jobs(strata: Iterable[Stratum], per_stratum: int, seed: int, setting: str, max_added: int) -> list[Job]:
    """Return the instances of a pool: instance j of a stratum has seed SEEDS_PER_POOL * pool seed + j."""
    seeds = range(SEEDS_PER_POOL * seed, SEEDS_PER_POOL * seed + per_stratum)
    return [Job(stratum, instance, setting, max_added) for stratum in strata for instance in seeds]


def run_job(job: Job) -> Generated:
    return generate(job.stratum, job.seed, setting=job.setting, max_added=job.max_added)
