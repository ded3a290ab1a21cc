"""Rivals measured against each other in one process: in turns, in processor seconds, ratios round by round.

Processor time, because everything here computes on one core and the machine may have other work. In each round every
rival runs once, for about as long as the others; a ratio is formed within a round and the median over rounds is
reported, so that a slow minute of the machine slows all rivals alike.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path
from statistics import median
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from calibrant.dsl.replayscm.item import Problem, TaskKind


class Discipline(NamedTuple):
    """Thoroughness of a measurement.

    rounds: how many turns every rival gets; seconds: how long each turn takes at least (0: one call, no warm-up)
    """

    rounds: int
    seconds: float


THOROUGH = Discipline(7, 0.1)
QUICK = Discipline(1, 1e-9)


@dataclass(frozen=True)
class Rival:
    """One way to do the work.

    call: does it once; num_items: how much of it (slow rivals may do less)
    least_ratio: target for the first rival's speed over this one's
    least_times_published: target for this one's speed over the published scorer's
    """

    name: str
    call: Callable[[], object]
    num_items: float = 1
    least_ratio: float | None = field(default=None, kw_only=True)
    least_times_published: float | None = field(default=None, kw_only=True)


@dataclass(frozen=True)
class Comparison:
    """One case of a benchmark and its rivals. The first rival is ours, the one whose speed is in question.

    item: what is counted, in the singular
    published: items a second of the published scorer, where that is known
    counts: numbers that do not depend on the machine
    """

    topic: str
    case: str
    item: str
    rivals: Sequence[Rival]
    published: float | None = None
    counts: Mapping[str, float] = field(default_factory=dict)


class Row(msgspec.Struct, frozen=True, omit_defaults=True):
    """Measurement of one rival in one case.

    per_second: items a second, median over rounds
    ratio: how many times faster the first rival is; low, high: least and greatest over rounds
    times_published: per_second over the published scorer's rate
    at_least: the target of the ratio; met: whether all targets of the row were reached, None if it has none
    """

    topic: str
    case: str
    rival: str
    item: str = ""
    per_second: float | None = None
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    times_published: float | None = None
    at_least: float | None = None
    met: bool | None = None
    counts: dict[str, float] = {}
    note: str = ""


def measure(comparison: Comparison, discipline: Discipline) -> Iterator[Row]:
    """Yield a row per rival, after all of them were measured in turns."""
    times = _measure_turns(comparison.rivals, discipline)
    for index, (rival, rival_times) in enumerate(zip(comparison.rivals, times, strict=True)):
        ratios = [rival_time / first for rival_time, first in zip(rival_times, times[0], strict=True)]
        row = Row(comparison.topic, comparison.case, rival.name, comparison.item, 1 / median(rival_times))
        if index:
            row = replace(row, ratio=median(ratios), low=min(ratios), high=max(ratios))
        else:
            row = replace(row, counts=dict(comparison.counts))
        yield judge_row(row, comparison.published, rival)


def judge_row(row: Row, published: float | None, rival: Rival) -> Row:
    """Return the row with its ratio to the published rate, and whether it reaches the rival's target."""
    times_published = row.per_second / published if published and row.per_second else None
    targets = ((rival.least_ratio, row.ratio), (rival.least_times_published, times_published))
    at_least, reached = next(((d, r) for d, r in targets if d is not None and r is not None), (None, None))
    is_met = None if at_least is None or reached is None else reached >= at_least
    return replace(row, times_published=times_published, at_least=at_least, met=is_met)


def _measure_turns(rivals: Sequence[Rival], discipline: Discipline) -> list[list[float]]:
    """Return seconds per item, [rival][round]; an untimed call warms up and sizes the turns."""
    repeats = [1] * len(rivals)
    if discipline.seconds:
        for rival in rivals:
            rival.call()
        repeats = [ceil(discipline.seconds / _positive(seconds(rival.call, 1))) for rival in rivals]
    times: list[list[float]] = [[] for _ in rivals]
    for _ in range(discipline.rounds):
        for rival, repeat, rival_times in zip(rivals, repeats, times, strict=True):
            rival_times.append(_positive(seconds(rival.call, repeat)) / (repeat * rival.num_items))
    return times


def seconds(call: Callable[[], object], repeat: int) -> float:
    """Return the processor seconds of that many calls."""
    start = time.process_time()
    for _ in range(repeat):
        call()
    return time.process_time() - start


def _positive(measured_seconds: float) -> float:
    return max(measured_seconds, 1e-9)  # a coarse clock may not have moved


# --- Options of every benchmark, and the choice of problems from pools ------------------------------------------------


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
