"""What a cluster costs where nothing is lost: `python -m bench.faults.overhead`.

The same audits by two local processes and by two nodes on this machine, in turns, both warm. A ratio is formed within a
round, and its median over the rounds is compared with the target: of wall time, because two processes work at once, and
because who ends last counts too. Other work on the machine is in it; the ratio of processor times has less of that, and
by who spent it tells what the difference is made of.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from statistics import median, quantiles
from typing import NamedTuple

from audits.replayscm.instance import AuditOptions
from bench.audit.run import Audited, timed_audit
from bench.faults.loopback import Loopback
from bench.faults.scenarios import NODES
from bench.pools.bundled import bundled_pools
from bench.runs.crews.opening import open_crew
from bench.runs.jobs import Crew, Execution, Failure
from dsl.errors import CalibrantError
from dsl.replayscm.pools.files import read_pool
from dsl.replayscm.problem import Problem

AUDITS = 20
ROUNDS = 21
TARGET = 1.10  # of the time of local processes


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; 0, or 2 for bad input."""
    parser = argparse.ArgumentParser(prog="python -m bench.faults.overhead", description="Audits, locally and spread.")
    parser.add_argument("--pool", action="append", type=Path, help="pool to audit [default: the bundled ones]")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"how often both do all of them [default: {ROUNDS}]")
    given = parser.parse_args(arguments)
    try:
        pools = [read_pool(path) for path in given.pool or bundled_pools()]
        print(_measured(_spread_out(list(chain.from_iterable(pool.problems for pool in pools))), given.rounds))
    except CalibrantError as error:
        print(f"bench.faults.overhead: {error}", file=sys.stderr)
        return 2
    return 0


def _spread_out(problems: Sequence[Problem]) -> list[Problem]:
    """AUDITS of them, from all parts of the pools."""
    step = max(1, len(problems) // AUDITS)
    return list(problems[::step][:AUDITS])


def _measured(problems: Sequence[Problem], rounds: int) -> str:
    with tempfile.TemporaryDirectory(prefix="calibrant-overhead-") as folder, Loopback(Path(folder), NODES) as cluster:
        cluster.wait()
        here, there = Execution(NODES), Execution(cluster=cluster.address)
        with open_crew(_nothing, here) as local, open_crew(_nothing, there) as spread:
            for crew in (local, spread):
                _seconds(crew, problems)  # kernels are compiled and loaded
            found = [_round(local, spread, problems, cluster, number % 2 == 0) for number in range(rounds)]
    wall = [theirs.seconds / ours.seconds for ours, theirs in found]
    processor = [sum(theirs.by.values()) / (ours.by["jobs"] + ours.by["command"]) for ours, theirs in found]
    met = "met" if median(wall) < TARGET else "MISSED"
    ours, theirs = (_middle(column) for column in zip(*found, strict=True))
    return (
        f"{len(problems)} audits, {rounds} rounds, load {os.getloadavg()[0]:.1f}; medians\n"
        f"{NODES} processes: {ours}\n{NODES} nodes:     {theirs}\n"
        f"ratio of processor time {_spread(processor)}\n"
        f"ratio of wall time      {_spread(wall)}, target under {TARGET}: {met}"
    )


def _round(
    local: Crew, spread: Crew, problems: Sequence[Problem], cluster: Loopback, turned: bool
) -> tuple[Spent, Spent]:
    """What the local crew spent, and the other one. turned: whether the other one begins"""
    if turned:
        theirs = _spent(spread, problems, cluster)
        return _spent(local, problems, cluster), theirs
    return _spent(local, problems, cluster), _spent(spread, problems, cluster)


def _spread(ratios: Sequence[float]) -> str:
    """The median with the quartiles."""
    low, middle, high = quantiles(ratios, n=4, method="inclusive") if len(ratios) > 1 else [*ratios] * 3
    return f"{middle:.3f} (quartiles {low:.2f} to {high:.2f})"


class Spent(NamedTuple):
    """One round. seconds: wall; by: processor seconds by who spent them, jobs apart from what hands them around"""

    seconds: float
    by: Mapping[str, float]

    def __str__(self) -> str:
        return f"{self.seconds:.2f} s; processor {', '.join(f'{who} {spent:.2f}' for who, spent in self.by.items())}"


def _middle(rounds: Sequence[Spent]) -> Spent:
    """The median of each figure."""
    return Spent(
        median(one.seconds for one in rounds), {who: median(one.by[who] for one in rounds) for who in rounds[0].by}
    )


def _spent(crew: Crew, problems: Sequence[Problem], cluster: Loopback) -> Spent:
    before = _processor_seconds(cluster)
    seconds = _seconds(crew, problems)
    after = _processor_seconds(cluster)
    return Spent(seconds, {who: sum(after[who]) - sum(before[who]) for who in after})


def _processor_seconds(cluster: Loopback) -> dict[str, list[float]]:
    """By role, of each process."""
    from psutil import Process  # dask.distributed needs it too

    this, nodes = Process(), [node.pid for node in cluster.nodes]
    found: dict[str, list[float]] = {"jobs": [], "scheduler and nodes": [], "command": []}
    for process in (this, *this.children(recursive=True)):
        if process == this:
            who = "command"
        elif process.pid in (cluster.scheduler.pid, *nodes) or process.ppid() in nodes:
            who = "scheduler and nodes"
        else:
            who = "jobs"
        found[who].append(sum(process.cpu_times()[:2]))
    return found


def _seconds(crew: Crew, problems: Sequence[Problem]) -> float:
    started = time.perf_counter()
    found = dict(crew.completed(partial(timed_audit, options=AuditOptions()), dict(enumerate(problems))))
    seconds = time.perf_counter() - started
    failed = [one for one in found.values() if isinstance(one, Failure) or _unfinished(one)]
    if failed:
        raise CalibrantError(f"{len(failed)} of the audits have no findings")
    return seconds


def _unfinished(audited: Audited) -> bool:
    return audited.findings is None


def _nothing() -> None:
    pass


if __name__ == "__main__":
    sys.exit(main())
