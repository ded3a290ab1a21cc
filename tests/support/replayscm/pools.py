"""Pools for tests: the shared development pools, generated ones, and ones whose audits are known."""

from __future__ import annotations

import json
import multiprocessing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from calibrant.audits.replayscm.generation.generate import (
    Generated,
    GenerationAudit,
    Job,
    pool_jobs,
    pool_metadata,
    pool_name,
    run_job,
)
from calibrant.audits.replayscm.generation.published import MAX_ADDED_WORLDS
from calibrant.bench.cli import main
from calibrant.bench.core.registry import bundled_pool
from calibrant.dsl.replayscm.generation.strata import Stratum
from calibrant.dsl.replayscm.item import Pool, Problem
from calibrant.dsl.replayscm.pools.files import read_pool, write_pool
from tests.support.shared import shared_file
from tests.support.stub_protocols import small_pool

# --- The shared development pools, read once per process --------------------------------------------------------------
POOLS = ("ordered", "block", "hidden_order", "hidden_roots")
T1_POOLS = tuple(f"t1_{name}" for name in POOLS)


def dev_problems(name: str) -> tuple[Problem, ...]:
    return shared_problems(f"pool_dev_{name}.runtime.yaml")


@cache
def shared_problems(file: str) -> tuple[Problem, ...]:
    """Of any shared pool, without model results; to parse one takes a second."""
    problems = tuple(read_pool(shared_file(file), keep_results=False).problems)
    assert problems, f"{file} has no problems: nothing would be compared"
    return problems


# --- A pool generated in memory with its audits, in this process or several -------------------------------------------
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


# --- Pools for tests of audits: written ones whose members are known, and parts of the bundled ones -------------------
ALL_ROWS = ("000", "100", "010", "111")
TWO_MEMBERS = ("000", "100", "010")
FOUR_MEMBERS = ("000", "100")


def written_pool(path: Path, evidence: Sequence[Sequence[str]], **changes: Any) -> Path:
    """Return a pool of X3 = X1 and X2 with these training rows, one instance each; changes go into every record."""
    write_pool(small_pool(["good"] * len(evidence)), path)
    header, *lines = path.read_text(encoding="utf-8").splitlines()
    records = [json.loads(line) for line in lines]
    for record, rows in zip(records, evidence, strict=True):
        record["training"][0].update(rows=list(rows), units=[f"u{i}" for i in range(len(rows))])
        record.update(changes)
    path.write_text("\n".join([header, *map(json.dumps, records)]) + "\n", encoding="utf-8")
    return path


def audited(capsys: pytest.CaptureFixture[str], *arguments: object) -> list[dict[str, Any]]:
    """Return the records that the command prints."""
    assert main(["audit", *map(str, arguments), "--json", "--workers", "1"]) == 0
    records: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["instances"]
    return records


def two_bundled(path: Path) -> Path:
    """Two instances of a bundled Hidden-order pool."""
    lines = bundled_pool("hidden-order").read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join(lines[:3]), encoding="utf-8")
    return path


def with_a_wide_gold(path: Path) -> Path:
    """Return the same two and one whose gold has five parents somewhere; nothing of four fits that."""
    lines = bundled_pool("hidden-order").read_text(encoding="utf-8").splitlines(keepends=True)
    (strict,) = [line for line in lines if '"CAL_vhs_n9_dense_strict_20000001"' in line]
    path.write_text("".join([*lines[:3], strict]), encoding="utf-8")
    return path
