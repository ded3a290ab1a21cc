"""What a cluster costs where nothing is lost: `python -m bench.faults.overhead`.

The same audits by two local processes and by two nodes on this machine, in turns, both warm; wall time, because two
processes work at once. Ratios are formed within a round. Other work on the machine widens them, so the load is said.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from statistics import median

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
ROUNDS = 5


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; 0, or 2 for bad input."""
    parser = argparse.ArgumentParser(prog="python -m bench.faults.overhead", description="Audits, locally and spread.")
    parser.add_argument("--pool", action="append", type=Path, help="pool to audit [default: the bundled ones]")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="how often both do all of them")
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
            times = [(_seconds(local, problems), _seconds(spread, problems)) for _ in range(rounds)]
    ratios = [theirs / ours for ours, theirs in times]
    ours, theirs = (median(column) for column in zip(*times, strict=True))
    return (
        f"{len(problems)} audits, {NODES} processes: {ours:.2f} s, {NODES} nodes: {theirs:.2f} s, medians of {rounds}; "
        f"ratio {median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f}); load {os.getloadavg()[0]:.1f}"
    )


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
