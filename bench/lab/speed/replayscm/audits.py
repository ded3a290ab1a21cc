"""Full audits: seconds an instance in one process, and the ratio to another state of the project in the same run.

Start-up (imports, kernels from their cache, lists of functions) is what the first audit of a process costs beyond the
others; it is reported apart. The other state audits some of the instances, spread over the pool, by its own command;
what both commands need for a single instance is taken off, so that start-up is in neither.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import mean, median
from typing import NamedTuple

from calibrant.audits.replayscm.items import AuditOptions
from calibrant.bench.lab.speed.memory import OURS, command_cost
from calibrant.bench.lab.speed.report import Options, Row
from calibrant.bench.replayscm.audit import ScmAudit
from calibrant.dsl.replayscm.item import Pool, Problem
from calibrant.dsl.replayscm.pools.files import write_pool

TOPIC = "audits"
ROUNDS = 2  # each instance is audited so often, and the shorter time counts
NUM_SHARED = 10  # instances that the other state audits as well
LEAST_RATIO = 10.0


class Target(NamedTuple):
    """A figure of the seconds an instance, and what it is to be at most."""

    name: str
    figure: Callable[[Sequence[float]], float]
    at_most: float


TARGETS = (Target("median", median, 0.09), Target("mean", mean, 0.25), Target("longest", max, 2.0))


def rows(options: Options) -> Iterator[Row]:
    problems = options.problems if options.scale >= 1 else options.problems[:1]
    start = _seconds(problems[0])
    seconds = [min(_seconds(problem) for _ in range(ROUNDS)) for problem in problems]
    case = f"{len(problems)} instances"
    for target in TARGETS:
        value = target.figure(seconds)
        counts = {"seconds": value, "at most": target.at_most}
        yield Row(TOPIC, case, target.name, "instance", 1 / value, counts=counts, met=value <= target.at_most)
    yield Row(TOPIC, case, "start-up, beside the first", counts={"seconds": max(0.0, start - seconds[0])})
    if options.rival is not None:
        yield from _against(options.rival, _spread(problems, NUM_SHARED))


def _seconds(problem: Problem) -> float:
    start = time.process_time()
    ScmAudit(AuditOptions()).audit(problem)
    return time.process_time() - start


def _spread(problems: Sequence[Problem], number: int) -> Sequence[Problem]:
    """Return a number of problems, at equal distances in the list and with the last."""
    number = min(number, len(problems))
    return [problems[(place + 1) * len(problems) // number - 1] for place in range(number)]


def _against(rival: Path, problems: Sequence[Problem]) -> Iterator[Row]:
    """Yield the row of an audit by this checkout against that by another, measured in turns.

    The first round fills the caches of both and does not count.

    rival: the other's Python
    """
    case = f"{len(problems)} of them, by `calibrant audit`"
    if len(problems) < 2:
        yield Row(TOPIC, case, "the other state", note="left out: start-up is taken off, so it takes two instances")
        return
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        pythons = (OURS, rival)
        for python in pythons:
            _cost(python, problems, Path(folder))
        rounds = []
        for _ in range(ROUNDS):
            alone = [_cost(python, problems[:1], Path(folder)) for python in pythons]
            costs = [_cost(python, problems, Path(folder)) for python in pythons]
            rounds.append(
                [(total - alone_cost) / (len(problems) - 1) for total, alone_cost in zip(costs, alone, strict=True)]
            )
    ours_per_round, rival_per_round = zip(*rounds, strict=True)
    ratios = [rival_cost / our_cost for our_cost, rival_cost in rounds]
    yield Row(TOPIC, case, "this state", "instance", 1 / median(ours_per_round))
    yield Row(
        TOPIC,
        case,
        "the other state",
        "instance",
        1 / median(rival_per_round),
        ratio=median(ratios),
        low=min(ratios),
        high=max(ratios),
        at_least=LEAST_RATIO,
        met=median(ratios) >= LEAST_RATIO,
    )


def _cost(python: Path, problems: Sequence[Problem], folder: Path) -> float:
    """Return the processor seconds of an audit of the problems, with start-up."""
    path = folder / "audited.jsonl"
    write_pool(Pool("audited", tuple(problems)), path)
    return command_cost(python, "audit", str(path), "--json", "--workers", "1", folder=folder).processor
