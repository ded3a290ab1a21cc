"""calibrant harden"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from bench.commands.options import PoolPath
from bench.commands.progress import progress_bar, usable_cores

if TYPE_CHECKING:
    from bench.hardened_pool import HardenedPool


def harden(
    pool: PoolPath,
    out: Annotated[Path, typer.Option("--out", metavar="POOL2", help="Native JSONL file to write.")],
    mode: Annotated[
        Literal["extra-worlds", "cex"], typer.Option(help="A few worlds for new patterns, or until one SCM is left.")
    ] = "cex",
    seed: Annotated[int, typer.Option(help="The same seed gives the same bytes.")] = 0,
    max_parents: Annotated[
        int | None, typer.Option(min=1, max=6, help="Class that is counted. [default: gold's, at least 4]")
    ] = None,
    report: Annotated[
        Path | None, typer.Option("--report", metavar="FILE", help="JSON lines: what each instance took and why.")
    ] = None,
    certificates: Annotated[
        Path | None, typer.Option("--certificates", metavar="DIR", help="Write a certificate of what is left of each.")
    ] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes. [default: one per usable core]")] = None,
) -> int:
    """Add gold-simulated training worlds to every instance; held-out worlds never change.

    cex completes local coverage, then reduces the SCMs that fit to one or proves that no admissible world can. Exit 1
    if an instance could not be hardened; it is then written unchanged.
    """
    from bench.hardened_pool import HardenOptions, harden_pool
    from dsl.pool import write_pool

    with progress_bar() as progress:
        options = HardenOptions(mode, seed, max_parents)
        made = harden_pool(pool, options, workers=workers or usable_cores(), progress=progress)
    write_pool(made.pool, out)
    if report:
        report.write_text("".join(f"{json.dumps(line)}\n" for line in made.reports), encoding="utf-8")
    typer.echo(f"{len(made.pool)} instances written to {out}", err=True)
    if certificates:
        from bench.audit_certificates import write_certificates

        hardened = [one for one, line in zip(made.pool.problems, made.reports, strict=True) if "members" in line]
        number = write_certificates(hardened, certificates, options.class_of)
        typer.echo(f"{number} certificates written to {certificates}", err=True)
    _print(made)
    return 1 if made.num_failed else 0


def _print(made: HardenedPool) -> None:
    for line in made.reports:
        if line["outcome"] not in ("reached", "done"):
            typer.echo(f"{line['instance']}: {line['outcome'].replace('_', ' ')}: {line['why']}", err=True)
    counted = Counter(line["outcome"] for line in made.reports)
    typer.echo(", ".join(f"{number} {name.replace('_', ' ')}" for name, number in sorted(counted.items())))
    added = [line["worlds"][1] - line["worlds"][0] for line in made.reports if "worlds" in line]
    if added:
        unique = sum(line.get("members", ["", ""])[1] == "1" for line in made.reports)
        typer.echo(f"worlds added: median {median(added):g}, up to {max(added)}; {unique} instances have one member")
