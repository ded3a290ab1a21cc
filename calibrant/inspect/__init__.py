"""Inspect (the package inspect-ai): tasks, a scorer and solvers under names that begin with `calibrant/`.

`pip install "calibrant[inspect]"` is enough: Inspect finds this module by an entry point. docs/inspect.md has commands.
There is a task for each benchmark, for any pool file of it.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Literal

if find_spec("inspect_ai") is None:
    raise ImportError("calibrant.inspect needs inspect-ai: pip install 'calibrant[inspect]'", name="inspect_ai")

from inspect_ai import Task, task
from inspect_ai.solver import Solver, generate

from calibrant.bench.version import program_version
from calibrant.inspect.samples import pool_dataset
from calibrant.inspect.solvers import Transcript, experimenter, experiments, player, protocol
from calibrant.inspect.verdicts import verdict

__all__ = [
    "Transcript",
    "blickets",
    "causalab",
    "causim",
    "experimenter",
    "experiments",
    "logic",
    "player",
    "protocol",
    "replayscm",
    "verdict",
]


@task
def replayscm(pool: str, extractor: Literal["paper", "published"] = "paper", turns: int = 100) -> Task:
    """ReplaySCM: one completion is one answer; an agent plays episodes.

    pool: a pool file, native or official; extractor: how a response text becomes an answer
    turns: replies of the agent that are taken at most
    """
    task_of_pool = _task("replayscm", pool, player(turns))
    task_of_pool.scorer = [verdict(extractor)]
    return task_of_pool


@task
def causim(pool: str) -> Task:
    """CauSim: one completion is one answer.

    pool: a pool file
    """
    return _task("causim", pool, generate())


@task
def logic(pool: str) -> Task:
    """Evaluate logic models of networks: one completion is one answer.

    pool: a pool file
    """
    return _task("logic", pool, generate())


@task
def causalab(pool: str, turns: int = 100) -> Task:
    """CausaLab: an agent experiments in a laboratory; `--solver generate` asks for an answer at once.

    pool: a pool file or a released suite; turns: replies of the agent that are taken at most
    """
    return _task("causalab", pool, experimenter(turns))


@task
def blickets(pool: str, turns: int = 100) -> Task:
    """Evaluate extended blickets: an agent experiments at a detector; `--solver generate` asks for an answer at once.

    pool: a pool file; turns: replies of the agent that are taken at most
    """
    return _task("blickets", pool, experimenter(turns))


def _task(benchmark: str, pool: str, solved: Solver) -> Task:
    return Task(
        dataset=pool_dataset(Path(pool), benchmark),
        setup=experiments(),
        solver=solved,
        scorer=verdict(),
        version=program_version(),
    )
