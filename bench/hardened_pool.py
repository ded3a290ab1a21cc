"""Hardening of a whole pool, parallel over instances; the same pool and report whatever the number of workers."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias

from audits.ambiguity import gold_class
from audits.hardening import cex, extra_worlds
from bench.audit_run import Progress
from dsl.pool import file_digest, read_pool
from dsl.problem import Pool, Problem
from solvers.outcome import Found, Impossible
from solvers.version_space import ModelClass, VersionSpace

Mode: TypeAlias = Literal["extra-worlds", "cex"]


@dataclass(frozen=True, slots=True)
class HardenOptions:
    """max_parents: the class whose members are counted; by default the smallest that contains gold, at least 4"""

    mode: Mode
    seed: int
    max_parents: int | None = None

    def class_of(self, problem: Problem) -> ModelClass:
        """The class of an instance; `ValueError` without gold."""
        return ModelClass(self.max_parents) if self.max_parents else gold_class(problem)


@dataclass(frozen=True)
class HardenedInstance:
    """An instance after hardening and its line of the report; an instance that could not be hardened is unchanged."""

    problem: Problem
    report: dict[str, Any]


@dataclass(frozen=True)
class HardenedPool:
    """The hardened pool and one report line per instance, in its order."""

    pool: Pool
    reports: list[dict[str, Any]]

    @property
    def num_failed(self) -> int:
        return sum(report["outcome"] == "failed" for report in self.reports)


def harden_pool(
    path: Path, options: HardenOptions, *, workers: int = 1, progress: Progress = lambda name, done, total: None
) -> HardenedPool:
    """Harden every instance; held-out worlds and gold stay as they are."""
    source = read_pool(path, keep_results=False)
    made: list[HardenedInstance] = []
    progress(source.name, 0, len(source))
    for hardened in _hardened(source.problems, options, workers):
        made.append(hardened)
        progress(source.name, len(made), len(source))
    how = {"mode": options.mode, "seed": options.seed, "max_parents": options.max_parents, "of": file_digest(path)}
    pool = Pool(source.name, tuple(one.problem for one in made), {**source.metadata, "hardened": how})
    return HardenedPool(pool, [one.report for one in made])


def _hardened(problems: Sequence[Problem], options: HardenOptions, workers: int) -> Iterator[HardenedInstance]:
    one = partial(harden_instance, options=options)
    if workers == 1:
        yield from map(one, problems)
        return
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as executor:
        yield from executor.map(one, problems)


def harden_instance(problem: Problem, options: HardenOptions) -> HardenedInstance:
    """Harden one instance. `ValueError`s (no gold, gold outside of the class) are its outcome."""
    place = {"instance": problem.id, "setting": problem.setting, "stratum": problem.stratum, "mode": options.mode}
    try:
        model_class = options.class_of(problem)
        harden = _by_cex if options.mode == "cex" else _by_extra_worlds
        hardened, found = harden(problem, options.seed, model_class)
    except ValueError as error:
        return HardenedInstance(problem, place | {"outcome": "failed", "why": str(error)})
    return HardenedInstance(hardened, place | {"class": model_class.describe(problem.task)} | found)


def _by_cex(problem: Problem, seed: int, model_class: ModelClass) -> tuple[Problem, dict[str, Any]]:
    made = cex(problem, seed, model_class=model_class)
    match made.outcome:
        case Found():
            outcome, why = "reached", ""
        case Impossible(exhausted):
            outcome, why = "impossible", exhausted
        case spent:
            outcome, why = "out_of_budget", spent.reached
    found = {
        "outcome": outcome,
        "why": why,
        **_before_and_after(problem, made.problem, made.before.members, made.after.members),
        "least_members": str(made.least_members),
        "coverage": [float(made.before.coverage), float(made.after.coverage)],
        "heldout_agreement": [str(made.before.agreement), str(made.after.agreement)],
        "unseparated": list(made.unseparated),
    }
    return made.problem, found


def _by_extra_worlds(problem: Problem, seed: int, model_class: ModelClass) -> tuple[Problem, dict[str, Any]]:
    hardened = extra_worlds(problem, seed)
    before, after = (VersionSpace(one.task, model_class).count for one in (problem, hardened))
    return hardened, {"outcome": "done", "why": "", **_before_and_after(problem, hardened, before, after)}


def _before_and_after(before: Problem, after: Problem, members: int, left: int) -> dict[str, Any]:
    added = after.task.training.worlds[len(before.task.training.worlds) :]
    return {
        "worlds": [len(before.task.training.worlds), len(after.task.training.worlds)],
        "members": [str(members), str(left)],
        "added": [{"id": world.id, "intervention": str(world.intervention)} for world in added],
    }
