"""calibrant alternatives"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from calibrant.bench.commands.guard import READS, RUN_FOLDER, WRITES, require_apart
from calibrant.bench.commands.options import AsJson, Cluster, execution
from calibrant.bench.commands.progress import progress_bar
from calibrant.dsl.atomic_write import write_pieces
from calibrant.dsl.errors import CalibrantError

if TYPE_CHECKING:
    from calibrant.bench.runs.records import Record

NUM_SEEDS = 50  # of a sweep


def alternatives(
    folders: Annotated[list[Path], typer.Argument(metavar="DIR...", help="Folders that `calibrant run` wrote."), READS],
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="JSON lines for `calibrant harden`."), WRITES],
    sweep: Annotated[
        list[Path] | None,
        typer.Option(metavar="POOL", help="First run bnlearn+dsl on this pool with many seeds, into the first DIR."),
        READS,
    ] = None,
    seeds: Annotated[
        int | None, typer.Option(min=1, help=f"How many seeds a sweep runs: 0, 1, and so on. [default: {NUM_SEEDS}]")
    ] = None,
    cluster: Cluster = None,
    as_json: AsJson = False,
) -> None:
    """Collect the train-exact SCMs that runs found and that are not gold, each meaning once.

    The file is for `calibrant harden --alternatives`. Printed is how often each system finds one; runs that differ in
    their seed alone count as one system. --json adds the numbers of every instance.
    """
    from itertools import chain

    for option, value in {"--cluster": cluster, "--seeds": seeds}.items():
        if value is not None and not sweep:
            raise typer.BadParameter("there is nothing to run without --sweep", param_hint=option)

    from calibrant.bench.pages.aligned import aligned
    from calibrant.bench.replayscm.distinct_models import FoundModels
    from calibrant.bench.runs.records import folder_records

    if sweep:
        _require_scms(sweep)
        require_apart(sweep, RUN_FOLDER.targets("DIR", folders[0]))
        _sweep(sweep, folders[0], seeds or NUM_SEEDS, cluster)
    found = FoundModels(lambda: map(_of_scms, chain.from_iterable(map(folder_records, folders))))
    others = found.alternatives()
    write_pieces(out, (f"{json.dumps(model.to_dict())}\n" for model in others))
    typer.echo(f"{len(others)} alternatives written to {out}", err=True)
    rows = found.rows()
    if as_json:
        typer.echo(json.dumps({"rows": found.figures(), "instances": found.counts()}, indent=1))
    elif rows:
        typer.echo(aligned(list(rows[0]), [list(row.values()) for row in rows]))


def _require_scms(pools: list[Path]) -> None:
    from calibrant.bench.core.registry import DEFAULT, one_benchmark

    of = one_benchmark(pools)
    if of.name != DEFAULT:
        raise CalibrantError(f"--sweep applies to ReplaySCM, not to {of.title} ({pools[0].name})")


def _of_scms(record: Record) -> Record:
    if isinstance(record.benchmark, str):
        raise CalibrantError(f"a run on a pool of {record.benchmark}; alternatives are SCMs, answers to ReplaySCM")
    return record


def _sweep(pools: list[Path], folder: Path, seeds: int, cluster: str | None) -> None:
    """In this process where there is no cluster: a seed takes milliseconds an instance, less than starting others."""
    from calibrant.bench.replayscm.protocols.score_portfolios import BnlearnThenFit
    from calibrant.bench.runs.runner import run

    by = execution(None if cluster else 1, cluster)
    for seed in range(seeds):
        with progress_bar(f"seed {seed} of {seeds}: ") as progress:
            run(BnlearnThenFit(seed=seed), pools, folder, execution=by, progress=progress)
