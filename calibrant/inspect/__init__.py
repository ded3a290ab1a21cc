"""Inspect (the package inspect-ai): tasks, a scorer and solvers under names that begin with `calibrant/`.

`pip install "calibrant[inspect]"` is enough: Inspect finds this module by an entry point. docs/inspect.md has commands.
There is a task for each benchmark, for any pool file of it.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

if find_spec("inspect_ai") is None:
    raise ImportError("calibrant.inspect needs inspect-ai: pip install 'calibrant[inspect]'", name="inspect_ai")

from inspect_ai import Task, task
from inspect_ai.solver import Solver, generate

from calibrant.bench.core.responses import Extractor
from calibrant.bench.version import program_version
from calibrant.dsl.answer_text import Thoughts
from calibrant.inspect.samples import pool_dataset
from calibrant.inspect.solvers import Transcript, experimenter, experiments, player, protocol, verdict

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
def replayscm(pool: str, extractor: Extractor = "paper", turns: int = 100, thoughts: Thoughts = "strip") -> Task:
    """ReplaySCM: one completion is one answer; interactive items are played by an agent.

    pool: a pool file, native or official; extractor: how a response text becomes an answer
    turns: maximum number of replies of the agent; thoughts: how thinking text is recognised
    """
    return _task("replayscm", pool, player(turns), extractor, thoughts)


@task
def causim(pool: str, extractor: Extractor = "paper", thoughts: Thoughts = "strip") -> Task:
    """CauSim: one completion is one answer.

    pool: a pool file; extractor: rule that reads a response; thoughts: how thinking text is recognised
    """
    return _task("causim", pool, generate(), extractor, thoughts)


@task
def logic(pool: str, extractor: Extractor = "paper", thoughts: Thoughts = "strip") -> Task:
    """Evaluate logic models of networks: one completion is one answer.

    pool: a pool file; extractor: rule that reads a response; thoughts: how thinking text is recognised
    """
    return _task("logic", pool, generate(), extractor, thoughts)


@task
def causalab(pool: str, turns: int = 100, extractor: Extractor = "paper", thoughts: Thoughts = "strip") -> Task:
    """CausaLab: an agent experiments in a laboratory; `--solver generate` asks for an answer at once.

    pool: a pool file or a released suite; turns: maximum number of replies of the agent
    extractor: rule that reads a response; thoughts: how thinking text is recognised
    """
    return _task("causalab", pool, experimenter(turns), extractor, thoughts)


@task
def blickets(pool: str, turns: int = 100, extractor: Extractor = "paper", thoughts: Thoughts = "strip") -> Task:
    """Evaluate extended blickets: an agent experiments at a detector; `--solver generate` asks for an answer at once.

    pool: a pool file; turns: maximum number of replies of the agent
    extractor: rule that reads a response; thoughts: how thinking text is recognised
    """
    return _task("blickets", pool, experimenter(turns), extractor, thoughts)


def _task(benchmark: str, pool: str, solver: Solver, extractor: Extractor, thoughts: Thoughts) -> Task:
    return Task(
        dataset=pool_dataset(Path(pool), benchmark),
        setup=experiments(),  # does nothing on benchmarks without episodes
        solver=solver,
        scorer=verdict(extractor, thoughts),
        version=program_version(),
    )
