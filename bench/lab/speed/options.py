"""Options of every benchmark, and the choice of problems from pools."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from calibrant.bench.lab.speed.comparison import Discipline
from calibrant.dsl.replayscm.problem import Problem, TaskKind


class Options(NamedTuple):
    """Inputs and scale of a measurement.

    problems: of all pools, those that ask for an SCM and tell the latent one
    official: a pool file in the official format, if one was given
    scale: what sizes of batches and files are multiplied with; 1 unless the run is only to show that it works
    rival: the Python of an environment in which another state of the project is installed, to compare with
    """

    problems: tuple[Problem, ...]
    official: Path | None
    discipline: Discipline
    scale: float
    rival: Path | None = None


def usable(problem: Problem) -> bool:
    return problem.task.kind is not TaskKind.ALTERNATIVE and problem.sealed.gold is not None


def by_setting(problems: Iterable[Problem]) -> Mapping[str, list[Problem]]:
    return _group(problems, lambda problem: problem.setting)


def by_stratum(problems: Iterable[Problem]) -> Mapping[str, list[Problem]]:
    return _group(problems, lambda problem: problem.stratum)


def _group(problems: Iterable[Problem], key: Callable[[Problem], str]) -> Mapping[str, list[Problem]]:
    """In the order in which the keys occur."""
    groups: dict[str, list[Problem]] = {}
    for problem in problems:
        groups.setdefault(key(problem), []).append(problem)
    return groups
