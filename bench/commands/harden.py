"""calibrant harden"""

from __future__ import annotations

import json
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from statistics import fmean, median
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from calibrant.bench.commands.guard import WRITES, WRITES_POOL, Writes
from calibrant.bench.commands.options import Cluster, Limit, Only, PoolPath, Workers, execution, with_options
from calibrant.bench.commands.progress import progress_bar
from calibrant.bench.core.options import GivenOptions
from calibrant.dsl.errors import in_one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calibrant.bench.replayscm.pools.hardened import HardenedPool, HardenOptions
    from calibrant.bench.replayscm.pools.known_alternatives import SuppliedAnswer
    from calibrant.bench.runs.jobs import Execution
    from calibrant.bench.runs.runner import Selection

Report: TypeAlias = Annotated[
    Path | None,
    typer.Option("--report", metavar="FILE", help="JSON lines: what each instance took and why."),
    WRITES,
]
Certificates: TypeAlias = Annotated[
    Path | None,
    typer.Option("--certificates", metavar="DIR", help="Write a certificate of what is left of each."),
    Writes(("*.json",)),
]
PUBLISHED = "the published CEx has 8-11 training worlds before, 14.27 on average after, 11-23 (paper, Tables B.1, F.2)"


@with_options("harden")
def harden(
    pool: PoolPath,
    out: Annotated[Path, typer.Option("--out", metavar="POOL2", help="Native JSONL file to write."), WRITES_POOL],
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
    from calibrant.bench.core.registry import DEFAULT, benchmark_of
    from calibrant.bench.runs.runner import Selection

    selection = Selection(frozenset(only or ()), limit)
    of = benchmark_of(pool)
    asked = given.convert(of.name, pool.name)
    if of.name != DEFAULT:
        by = execution(workers or (None if cluster else 1), cluster)  # an item takes milliseconds
        return _decide(pool, out, selection, by, report, certificates)
    _require_cex(given)
    from calibrant.bench.replayscm.pools.hardened import HardenOptions, hardened_pool
    from calibrant.bench.replayscm.pools.known_alternatives import read_alternatives

    supplied = read_alternatives(asked.alternatives) if asked.alternatives else []
    options = HardenOptions(asked.mode, asked.seed, asked.max_parents, asked.goal)
    with ExitStack() as stack:
        with progress_bar() as progress:
            making = hardened_pool(
                pool,
                out,
                options,
                alternatives=supplied,
                selection=selection,
                execution=execution(workers, cluster),
                progress=progress,
            )
            made = stack.enter_context(making)
        _write(made, options, out, report, certificates)
    _print(made)
    if supplied:
        _print_alternatives(made, supplied)
    return 1 if made.num_short else 0


def _require_cex(given: GivenOptions) -> None:
    """Refuse what only cex heeds, where another mode is asked for."""
    if given.values.get("mode", "cex") != "cex":
        for name in ("alternatives", "goal"):
            if name in given.values:
                raise typer.BadParameter("it needs --mode cex", param_hint=f"--{name}")


def _decide(
    pool: Path,
    out: Path,
    selection: Selection,
    by: Execution,
    report: Path | None,
    certificates: Path | None,
) -> int:
    """The hardening of a pool of another benchmark."""
    from calibrant.bench.core.registry import benchmark_of
    from calibrant.bench.pools.hardened_items import harden_items, write_proofs
    from calibrant.dsl.atomic_write import write_pieces

    of = benchmark_of(pool)
    with progress_bar() as progress:
        made = harden_items(of, pool, selection, execution=by, progress=progress)
    if report:
        write_pieces(report, (f"{json.dumps(line)}\n" for line in made.reports))
    if certificates:
        typer.echo(f"{write_proofs(made, certificates)} certificates written to {certificates}", err=True)
    of.write_native(made.pool, out)
    typer.echo(f"{len(made.pool)} instances written to {out}", err=True)
    for line in made.reports:
        if line["why"]:
            typer.echo(in_one_line(f"{line['instance']}: {line['outcome'].replace('_', ' ')}: {line['why']}"), err=True)
    counted = Counter(line["outcome"].replace("_", " ") for line in made.reports)
    told = [len(line["told"]) for line in made.reports if line["outcome"] == "reached"]
    typer.echo(", ".join(f"{number} {name}" for name, number in sorted(counted.items())))
    if told:
        more = sum(map(bool, told))
        typer.echo(
            f"{more} of {len(told)} needed more evidence; values told: median {median(told):g}, up to {max(told)}"
        )
    return 1 if made.num_short else 0


def _write(
    made: HardenedPool, options: HardenOptions, out: Path, report: Path | None, certificates: Path | None
) -> None:
    from calibrant.dsl.atomic_write import write_pieces
    from calibrant.dsl.replayscm.pools.files import write_pool

    if report:
        write_pieces(report, (f"{json.dumps(line)}\n" for line in made.reports))
    if certificates:
        from calibrant.bench.replayscm.audit.certificates import write_certificates

        hardened = (one for one, line in zip(made.pool.problems, made.reports, strict=True) if "members" in line)
        for said in write_certificates(hardened, certificates, options.class_of):
            typer.echo(said, err=True)
    write_pool(made.pool, out)
    typer.echo(f"{len(made.pool)} instances written to {out}", err=True)


def _print(made: HardenedPool) -> None:
    for line in made.reports:
        if line["outcome"] not in ("reached", "done"):
            told = f"{line['instance']}: {line['outcome'].replace('_', ' ')}: {line['why']}"
            typer.echo(in_one_line(told), err=True)
    counted = Counter(line["outcome"] for line in made.reports)
    typer.echo(", ".join(f"{number} {name.replace('_', ' ')}" for name, number in sorted(counted.items())))
    worlds = [line["worlds"] for line in made.reports if "worlds" in line]
    if worlds:
        unique = sum(line.get("members", ["", ""])[1] == "1" for line in made.reports)
        before, after = [start for start, _ in worlds], [end for _, end in worlds]
        added = [end - start for start, end in worlds]
        typer.echo(
            f"training worlds, median: {median(before):g} before, {median(added):g} added (up to {max(added)}), "
            f"{median(after):g} after; mean {fmean(after):.2f} (range {min(after)}-{max(after)}); "
            f"{unique} instances have one member"
        )
        typer.echo(PUBLISHED)


def _print_alternatives(made: HardenedPool, supplied: Sequence[SuppliedAnswer]) -> None:
    told = [(line["instance"], one) for line in made.reports for one in line.get("alternatives", ())]
    for instance, one in told:
        if one["why"]:
            outcome = one["outcome"].replace("_", " ")
            typer.echo(in_one_line(f"{instance}: line {one['line']}: {outcome}: {one['why']}"), err=True)
    elsewhere = len(supplied) - len(told)
    counted = Counter(one["outcome"] for _, one in told)
    parts = [f"{counted[name]} {name.replace('_', ' ')}" for name in ("separated", "not_separated", "refused")]
    more = f"; {elsewhere} are about no instance that was hardened" if elsewhere else ""
    typer.echo(f"alternatives: {', '.join(parts)}{more}")
