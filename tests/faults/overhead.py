"""What a cluster costs where nothing is lost: `python -m tests.faults.overhead`.

The same audits by two local processes and by two nodes on this machine, in turns, both warm: audits of a second each,
for which the target holds, and audits of some hundredths of one, for which what a cluster costs shows. A ratio is
formed within a round, and its median over the rounds is compared with the target: of wall time, because two processes
work at once, and because who ends last counts too. Other work on the machine is in it; the ratio of processor times has
less of that, and by who spent it tells what the difference is made of.
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

from calibrant.audits.replayscm.generation.generate import generate
from calibrant.audits.replayscm.items import AuditOptions
from calibrant.bench.core.registry import bundled_pools
from calibrant.bench.replayscm.audit import ScmAudit
from calibrant.bench.runs.audits import AuditResult, timed_audit
from calibrant.bench.runs.executors import Execution, Executor, Failure, prepare_nothing
from calibrant.bench.runs.workers import open_executor
from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.replayscm.generation.strata import stratum
from calibrant.dsl.replayscm.item import Problem
from calibrant.dsl.replayscm.pools.files import read_pool
from tests.faults.scenarios import NODES, Loopback

AUDITS = 20
TARGET = 1.10  # of the time of local processes, where an audit takes a second or two
STRATUM, SEED = "large_n16", 5  # of problems whose audits take a second
LONG_ROUNDS, ROUNDS = 5, 21


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; 0, or 2 for bad input."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.overhead", description="Audits here and spread.")
    parser.add_argument("--pool", action="append", type=Path, help="pool to audit instead, without a target")
    rounds = f"how often both do all of them [default: {LONG_ROUNDS} of the long ones, {ROUNDS} of others]"
    parser.add_argument("--rounds", type=int, help=rounds)
    given = parser.parse_args(arguments)
    try:
        if not given.pool:
            print(_measured(_long(), given.rounds or LONG_ROUNDS, target=TARGET), flush=True)
        pools = [read_pool(path) for path in given.pool or bundled_pools()]
        short = _spread_out(list(chain.from_iterable(pool.problems for pool in pools)))
        print(_measured(short, given.rounds or ROUNDS))
    except CalibrantError as error:
        print(f"tests.faults.overhead: {error}", file=sys.stderr)
        return 2
    return 0


def _long() -> list[Problem]:
    return [generate(stratum(STRATUM), SEED + place).problem for place in range(AUDITS)]


def _spread_out(problems: Sequence[Problem]) -> list[Problem]:
    """AUDITS of them, from all parts of the pools."""
    step = max(1, len(problems) // AUDITS)
    return list(problems[::step][:AUDITS])


def _measured(problems: Sequence[Problem], rounds: int, target: float | None = None) -> str:
    with tempfile.TemporaryDirectory(prefix="calibrant-overhead-") as folder, Loopback(Path(folder), NODES) as cluster:
        cluster.wait()
        here, there = Execution(NODES), Execution(cluster=cluster.address)
        with open_executor(prepare_nothing, here) as local, open_executor(prepare_nothing, there) as spread:
            for executor in (local, spread):
                _seconds(executor, problems)  # kernels are compiled and loaded
            found = [_round(local, spread, problems, cluster, number % 2 == 0) for number in range(rounds)]
    wall = [theirs.seconds / ours.seconds for ours, theirs in found]
    processor = [sum(theirs.by.values()) / (ours.by["jobs"] + ours.by["command"]) for ours, theirs in found]
    met = "" if target is None else f", target under {target}: {'met' if median(wall) < target else 'MISSED'}"
    ours, theirs = (_middle(column) for column in zip(*found, strict=True))
    return (
        f"{len(problems)} audits, {rounds} rounds, load {os.getloadavg()[0]:.1f}; medians\n"
        f"{NODES} processes: {ours}\n{NODES} nodes:     {theirs}\n"
        f"ratio of processor time {_spread(processor)}\n"
        f"ratio of wall time      {_spread(wall)}{met}"
    )


def _round(
    local: Executor, spread: Executor, problems: Sequence[Problem], cluster: Loopback, turned: bool
) -> tuple[Spent, Spent]:
    """Return the cost of the local executor and of the other one.

    turned: whether the other one begins
    """
    if turned:
        theirs = _spent(spread, problems, cluster)
        return _spent(local, problems, cluster), theirs
    return _spent(local, problems, cluster), _spent(spread, problems, cluster)


def _spread(ratios: Sequence[float]) -> str:
    """Return the median with the quartiles."""
    low, middle, high = quantiles(ratios, n=4, method="inclusive") if len(ratios) > 1 else [*ratios] * 3
    return f"{middle:.3f} (quartiles {low:.2f} to {high:.2f})"


class Spent(NamedTuple):
    """One round.

    seconds: wall; by: processor seconds by who spent them, jobs apart from what hands them around
    """

    seconds: float
    by: Mapping[str, float]

    def __str__(self) -> str:
        return f"{self.seconds:.2f} s; processor {', '.join(f'{who} {spent:.2f}' for who, spent in self.by.items())}"


def _middle(rounds: Sequence[Spent]) -> Spent:
    """Return the median of each figure."""
    return Spent(
        median(one.seconds for one in rounds), {who: median(one.by[who] for one in rounds) for who in rounds[0].by}
    )


def _spent(executor: Executor, problems: Sequence[Problem], cluster: Loopback) -> Spent:
    before = _processor_seconds(cluster)
    seconds = _seconds(executor, problems)
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


def _seconds(executor: Executor, problems: Sequence[Problem]) -> float:
    started = time.perf_counter()
    found = dict(executor.as_completed(partial(timed_audit, ScmAudit(AuditOptions()).audit), dict(enumerate(problems))))
    seconds = time.perf_counter() - started
    failed = [one for one in found.values() if isinstance(one, Failure) or _unfinished(one)]
    if failed:
        raise CalibrantError(f"{len(failed)} of the audits have no findings")
    return seconds


def _unfinished(audited: AuditResult) -> bool:
    return audited.result is None


if __name__ == "__main__":
    sys.exit(main())
