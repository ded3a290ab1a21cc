"""Command: calibrant harden."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from calibrant.bench.commands.guard import WRITES, WRITES_POOL, Writes
from calibrant.bench.commands.options import (
    Cluster,
    Limit,
    Only,
    PoolPath,
    Workers,
    execution,
    progress_bar,
    with_options,
)
from calibrant.bench.core.options import GivenOptions
from calibrant.bench.help import OUTPUT

Report: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--report", metavar="FILE", help="JSON lines: what each instance took and why.", rich_help_panel=OUTPUT
    ),
    WRITES,
]
Certificates: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--certificates", metavar="DIR", help="Write a certificate of what is left of each.", rich_help_panel=OUTPUT
    ),
    Writes(("*.json",)),
]


@with_options("harden")
def harden(
    pool: PoolPath,
    out: Annotated[
        Path,
        typer.Option("--out", metavar="POOL2", help="Native JSONL file to write.", rich_help_panel=OUTPUT),
        WRITES_POOL,
    ],
    given: GivenOptions,
    report: Report = None,
    certificates: Certificates = None,
    only: Only = None,
    limit: Limit = None,
    workers: Workers = None,
    cluster: Cluster = None,
) -> int:
    """Add gold-simulated training worlds to every instance; held-out worlds never change.

    cex completes local coverage, separates the alternatives, then reduces the SCMs that fit to the goal or proves that
    no admissible world can. Exit 1 unless every instance gets there. One that does not (impossible, out of budget)
    keeps the worlds that left fewest SCMs; one to which nothing can be added (no gold, gold outside the class) is
    written unchanged. What is done is kept in POOL2.unfinished until POOL2 is written; the same command goes on there.

    A CauSim question is told the least further values that leave one answer, with a certificate that no fewer do.
    """
    from calibrant.bench.core.registry import benchmark_of
    from calibrant.bench.pools.capabilities import HARDEN, HardenRequest
    from calibrant.bench.runs.runner import Selection
    from calibrant.bench.scoring.ids import PublicPool
    from calibrant.bench.terminal import NextCommand, print_next, unused_path

    of = benchmark_of(pool)
    options = given.convert(of.name, pool.name)  # names the option that the benchmark lacks, before the command
    hardening = of.require(HARDEN)
    hardening.check(given.values)
    named = frozenset(PublicPool(of, pool).check(only) if only else ())  # either id: pages have the public one
    selection = Selection(named, limit)
    by = execution(workers or (None if cluster else hardening.workers), cluster)
    with progress_bar() as progress:
        request = HardenRequest(pool, out, report, certificates, selection, by, progress)
        hardened = hardening.harden(request, options)
    for note in hardened.notes:
        typer.echo(note, err=True)
    for line in hardened.lines:
        typer.echo(line)
    written = sorted(certificates.glob("*.json"))[:1] if certificates is not None else []
    still_open = [NextCommand(("list", out, "--why"), "what is still open")] if hardened.num_short else []
    check = [NextCommand(("verify", *written, out), "check a certificate")] if written else []
    print_next(
        [
            *still_open,
            *check,
            NextCommand(("prompts", out, "--out", unused_path("prompts.jsonl")), "what a model is asked"),
            NextCommand(("run", "exact", out, "--out", unused_path("runs")), "the exact solver"),
        ]
    )
    return 1 if hardened.num_short else 0
